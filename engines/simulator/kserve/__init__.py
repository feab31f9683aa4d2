"""Triton's KServe endpoints over one simulated model repository, as recorded from Triton 2.51. They compute nothing."""
