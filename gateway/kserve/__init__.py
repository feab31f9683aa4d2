"""Triton's models through KServe's HTTP or gRPC, by tritonclient (the extra `triton`)."""
