trtllm-serve embeddings BAAI/bge-large-en-v1.5 --host 0.0.0.0 --port 8000 --max_batch_size 64
