"""Facts of well-known models as they are published.

`config`: the members of the model's config.json on Hugging Face that say its size. `parameters`: the number of its
parameters that its page there shows (the safetensors total), or that its report states where the file is quantized:
gpt-oss-20b: the gpt-oss model card, table 1 (20.91B parameters, checkpoint of 12.8 GiB); DeepSeek-V3:
README_WEIGHTS.md of its repository (671B in the main model, which is what engines load; the file has a further 14B for
multi-token prediction); Gemma 3: its page counts the vision tower too. `kv`: bytes of one token in a cache of 16 bits,
by hand: 2 (keys and values) * layers * key-value heads * head size * 2 bytes; of latent attention layers *
(kv_lora_rank + qk_rope_head_dim) * 2 bytes.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True)
class Published:
    """One model."""

    config: Mapping[str, object]
    parameters: int
    kv: int
    file_bytes: float


def _llama(
    kind: str,
    hidden: int,
    intermediate: int,
    layers: int,
    heads: int,
    kv_heads: int,
    vocabulary: int,
    context: int,
    **more: object,
) -> dict[str, object]:
    return {
        "model_type": kind,
        "hidden_size": hidden,
        "intermediate_size": intermediate,
        "num_hidden_layers": layers,
        "num_attention_heads": heads,
        "num_key_value_heads": kv_heads,
        "vocab_size": vocabulary,
        "max_position_embeddings": context,
        "torch_dtype": "bfloat16",
        **more,
    }  # fmt: skip


_FP8: Final = {"quant_method": "fp8", "fmt": "e4m3", "weight_block_size": [128, 128]}
_MXFP4: Final = {"quant_method": "mxfp4", "modules_to_not_convert": ["model.layers.*.self_attn", "lm_head"]}
_LATENT: Final = {
    "kv_lora_rank": 512, "q_lora_rank": 1536, "qk_nope_head_dim": 128, "qk_rope_head_dim": 64, "v_head_dim": 128,
    "first_k_dense_replace": 3, "moe_intermediate_size": 2048, "n_routed_experts": 256, "n_shared_experts": 1,
    "num_nextn_predict_layers": 1, "quantization_config": _FP8, "tie_word_embeddings": False,
}  # fmt: skip
_OSS: Final = {
    "head_dim": 64, "num_local_experts": 32, "attention_bias": True, "sliding_window": 128,
    "tie_word_embeddings": False, "layer_types": ["sliding_attention", "full_attention"] * 12,
    "quantization_config": _MXFP4, "torch_dtype": None,
}  # fmt: skip
_GEMMA3: Final = _llama(
    "gemma3_text", 5376, 21504, 62, 32, 16, 262208, 131072, head_dim=128, sliding_window=1024, torch_dtype=None
)

PUBLISHED: Final[Mapping[str, Published]] = {
    "meta-llama/Llama-3.1-8B-Instruct": Published(
        _llama("llama", 4096, 14336, 32, 32, 8, 128256, 131072, tie_word_embeddings=False),
        8_030_261_248, 131_072, 2 * 8_030_261_248,
    ),
    "meta-llama/Llama-3.1-70B-Instruct": Published(
        _llama("llama", 8192, 28672, 80, 64, 8, 128256, 131072, tie_word_embeddings=False),
        70_553_706_496, 327_680, 2 * 70_553_706_496,
    ),
    "Qwen/Qwen2.5-7B-Instruct": Published(
        _llama("qwen2", 3584, 18944, 28, 28, 4, 152064, 32768, sliding_window=131072, use_sliding_window=False,
               tie_word_embeddings=False),
        7_615_616_512, 57_344, 2 * 7_615_616_512,
    ),
    "Qwen/Qwen3-8B": Published(
        _llama("qwen3", 4096, 12288, 36, 32, 8, 151936, 40960, head_dim=128, attention_bias=False, sliding_window=None,
               use_sliding_window=False, tie_word_embeddings=False),
        8_190_735_360, 147_456, 2 * 8_190_735_360,
    ),
    "Qwen/Qwen3-30B-A3B": Published(
        _llama("qwen3_moe", 2048, 6144, 48, 32, 4, 151936, 40960, head_dim=128, num_experts=128,
               moe_intermediate_size=768, decoder_sparse_step=1, mlp_only_layers=[], tie_word_embeddings=False),
        30_532_122_624, 98_304, 2 * 30_532_122_624,
    ),
    "mistralai/Mistral-7B-Instruct-v0.3": Published(
        _llama("mistral", 4096, 14336, 32, 32, 8, 32768, 32768, sliding_window=None, tie_word_embeddings=False),
        7_248_023_552, 131_072, 2 * 7_248_023_552,
    ),
    "mistralai/Mixtral-8x7B-Instruct-v0.1": Published(
        _llama("mixtral", 4096, 14336, 32, 32, 8, 32000, 32768, num_local_experts=8, sliding_window=None,
               tie_word_embeddings=False),
        46_702_792_704, 131_072, 2 * 46_702_792_704,
    ),
    "google/gemma-2-9b-it": Published(
        _llama("gemma2", 3584, 14336, 42, 16, 8, 256000, 8192, head_dim=256, sliding_window=4096),
        9_241_705_984, 344_064, 2 * 9_241_705_984,
    ),
    "google/gemma-3-27b-it": Published(
        {"model_type": "gemma3", "torch_dtype": "bfloat16", "architectures": ["Gemma3ForConditionalGeneration"],
         "text_config": {**_GEMMA3, "torch_dtype": "bfloat16"}},
        27_432_406_640, 507_904, 2 * 27_432_406_640,
    ),
    "microsoft/Phi-3-mini-4k-instruct": Published(
        _llama("phi3", 3072, 8192, 32, 32, 32, 32064, 4096, sliding_window=2047, tie_word_embeddings=False),
        3_821_079_552, 393_216, 2 * 3_821_079_552,
    ),
    "microsoft/phi-4": Published(
        _llama("phi3", 5120, 17920, 40, 40, 10, 100352, 16384, sliding_window=None, tie_word_embeddings=False),
        14_659_507_200, 204_800, 2 * 14_659_507_200,
    ),
    "openai/gpt-oss-20b": Published(
        _llama("gpt_oss", 2880, 2880, 24, 64, 8, 201088, 131072, **_OSS), 20_910_000_000, 49_152, 12.8 * 2**30
    ),
    "deepseek-ai/DeepSeek-V3": Published(
        _llama("deepseek_v3", 7168, 18432, 61, 128, 128, 129280, 163840, **_LATENT),
        671_000_000_000, 70_272, 688_586_727_753 * 671 / 685,
    ),
}  # fmt: skip
