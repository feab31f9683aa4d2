"""trtllm-serve of 2026. Its recordings are of transcribed code that was run, not of a real server."""
