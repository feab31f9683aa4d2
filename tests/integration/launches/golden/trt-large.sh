cat >./deepseek.trtllm.yaml <<'EOF'
# Made by `turnout engines command trt-large --settings --config setups.yaml`. It wins over the flags.
kv_cache_config:
  host_cache_size: 68719476736
EOF
trtllm-serve deepseek-ai/DeepSeek-V3 --host 0.0.0.0 --port 8000 --tensor_parallel_size 8 --moe_expert_parallel_size 8 --tool_parser deepseek_v3 --num_postprocess_workers 4 --config ./deepseek.trtllm.yaml
