vllm serve Qwen/Qwen2.5-1.5B-Instruct --host 127.0.0.1 --port 8000
