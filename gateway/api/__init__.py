"""The control plane: everything that is not a forwarded path. It may take its time."""
