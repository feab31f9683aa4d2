trtllm-serve Qwen/Qwen3-1.7B --host 127.0.0.1 --port 8020
