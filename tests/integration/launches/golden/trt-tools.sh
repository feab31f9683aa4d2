cat >./trt.trtllm.yaml <<'EOF'
# Made by `turnout engines command trt-tools --settings --config setups.yaml`. It wins over the flags.
kv_cache_config:
  enable_block_reuse: true
guided_decoding_backend: xgrammar
return_perf_metrics: true
cuda_graph_config:
  enable_padding: true
  max_batch_size: 128
EOF
CUDA_VISIBLE_DEVICES=1 trtllm-serve Qwen/Qwen3-8B --host 0.0.0.0 --port 8000 --max_batch_size 128 --max_num_tokens 16384 --max_seq_len 32768 --kv_cache_free_gpu_memory_fraction 0.85 --enable_chunked_prefill --tool_parser qwen3 --reasoning_parser qwen3 --config ./trt.trtllm.yaml
