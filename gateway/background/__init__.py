"""What goes on beside the requests: health checks, and the discovery of models."""
