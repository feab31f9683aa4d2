"""Triton Inference Server's OpenAI frontend (2.73 / 26.09), in front of its vLLM or TRT-LLM backends."""
