"""What a model's config.json says about its size: parameters, and what a token takes in the KV cache.

The members are those of Hugging Face's configurations; the shapes of the layers are those of its modeling files.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from engines.advice.table import FAMILIES, SCATTERED, Family

_PLAIN: Final = Family()
_BYTES: Final = {"float32": 4.0, "float": 4.0, "float16": 2.0, "half": 2.0, "bfloat16": 2.0, "float8_e4m3fn": 1.0}


class UnknownModelError(ValueError):
    """The configuration does not say enough; the message says what is missing or not understood."""


@dataclass(frozen=True, slots=True)
class Weights:
    """Numbers of parameters: `linear` ones may be quantized, `others` (embeddings, norms, routers) stay as they are."""

    linear: int
    experts: int
    others: int

    @property
    def total(self) -> int:
        """All parameters."""
        return self.linear + self.experts + self.others


@dataclass(frozen=True, slots=True)
class Quantization:
    """How linear layers are kept: `bits` per parameter, scales included; `experts_only` leaves the rest as it is."""

    method: str
    bits: float
    experts_only: bool = False


@dataclass(frozen=True, slots=True)
class Model:
    """A model as its config.json describes it."""

    family: str
    checked: bool
    """The arithmetic of this family has been compared with published sizes."""
    layers: int
    windowed: int
    """Layers that only keep the last `window` tokens."""
    window: int
    heads: int
    kv_heads: int
    head_dim: int
    hidden: int
    intermediate: int
    vocabulary: int
    latent: int
    """Numbers per token and layer of multi-head latent attention; 0 for other attention."""
    context: int | None
    dtype: str
    dtype_bytes: float
    quantization: Quantization | None
    weights: Weights
    pools: bool
    """It is an embedding or classification model."""
    sees: bool
    """It also reads images or sound; what does that is not counted here."""

    @property
    def numbers_per_layer(self) -> int:
        """Numbers that one token takes in one layer of the KV cache."""
        return self.latent or 2 * self.kv_heads * self.head_dim

    @property
    def weight_bytes(self) -> int:
        """All weights in memory."""
        wide, count = self.dtype_bytes, self.weights
        if self.quantization is None:
            return round(count.total * wide)
        narrow = self.quantization.bits / 8
        linear = wide if self.quantization.experts_only else narrow
        return round(count.linear * linear + count.experts * narrow + count.others * wide)

    def kv_bytes_per_token(self, kv_bytes: float = 2.0) -> int:
        """Bytes of one token in all layers."""
        return round(self.layers * self.numbers_per_layer * kv_bytes)

    def kv_bytes(self, tokens: int, kv_bytes: float = 2.0) -> int:
        """Bytes of one request of that many tokens; layers with a window keep no more than it holds."""
        full = (self.layers - self.windowed) * tokens
        kept = self.windowed * min(tokens, self.window)
        return round((full + kept) * self.numbers_per_layer * kv_bytes)


def read_model(config: Mapping[str, object]) -> Model:
    """Reads a config.json.

    Raises:
        UnknownModelError: members are missing, or it is of a family that this arithmetic does not fit.
    """
    inner = config.get("text_config")
    text = {**config, **inner} if isinstance(inner, Mapping) else dict(config)
    kind = str(text.get("model_type") or "")
    members = _Members(text)
    if kind in SCATTERED or "linear_attention" in members.words("layer_types"):
        raise UnknownModelError(f"{kind}: some of its layers keep a state instead of keys and values; not known here")
    family = FAMILIES.get(kind, _PLAIN)
    heads, hidden = members.number("num_attention_heads"), members.number("hidden_size")
    layers = members.number("num_hidden_layers")
    latent = members.number("kv_lora_rank", 0)
    window, windowed = _windows(members, family, layers)
    dtype = str(text.get("dtype") or text.get("torch_dtype") or "bfloat16")
    return Model(
        family=kind or "unknown",
        checked=kind in FAMILIES,
        layers=layers,
        windowed=windowed,
        window=window,
        heads=heads,
        kv_heads=members.number("num_key_value_heads", heads),
        head_dim=members.number("head_dim", hidden // heads),
        hidden=hidden,
        intermediate=members.number("intermediate_size", 4 * hidden),
        vocabulary=members.number("vocab_size"),
        latent=latent + members.number("qk_rope_head_dim", 0) if latent else 0,
        context=members.number("max_position_embeddings", 0) or None,
        dtype=dtype,
        dtype_bytes=_BYTES.get(dtype, 2.0),
        quantization=_quantization(text.get("quantization_config")),
        weights=_weights(members, family, layers, hidden, heads),
        pools=_pools(members.words("architectures")),
        sees=isinstance(inner, Mapping),
    )


class _Members:
    """A configuration's members by type."""

    def __init__(self, text: Mapping[str, object]) -> None:
        self._text = text

    def number(self, name: str, default: int | None = None) -> int:
        """A whole number. Raises UnknownModelError if it is missing and has no default."""
        found = self._text.get(name)
        if isinstance(found, int) and not isinstance(found, bool):
            if found < 0 or (found == 0 and default is None):
                raise UnknownModelError(f"{name} is {found}")
            return found
        if default is None:
            raise UnknownModelError(f"{name} is missing: is it a language model's config.json?")
        return default

    def flag(self, name: str, *, default: bool) -> bool:
        """A switch."""
        found = self._text.get(name)
        return found if isinstance(found, bool) else default

    def words(self, name: str) -> Sequence[str]:
        """A list of texts."""
        found = self._text.get(name)
        return [str(one) for one in found] if isinstance(found, list) else []

    def first(self, *names: str) -> int:
        """The first number that is there, else 0."""
        return next((number for name in names if (number := self.number(name, 0))), 0)


def _windows(members: _Members, family: Family, layers: int) -> tuple[int, int]:
    """The window, and how many layers have it."""
    window = members.number("sliding_window", 0)
    if not window or not members.flag("use_sliding_window", default=True):
        return 0, 0
    types = members.words("layer_types")
    if types:
        return window, sum("sliding" in one for one in types)
    match family.attention:
        case "all":
            return window, layers
        case "even":
            return window, (layers + 1) // 2
        case "sixth":
            every = members.number("sliding_window_pattern", 6)
            return window, layers - layers // every
        case _:
            return 0, 0


def _weights(members: _Members, family: Family, layers: int, hidden: int, heads: int) -> Weights:
    vocabulary = members.number("vocab_size") * hidden
    tied = members.flag("tie_word_embeddings", default=family.tied)
    others = vocabulary if tied else 2 * vocabulary
    attention, head_norms = _attention(members, family, hidden, heads)
    others += layers * (family.norms * hidden + head_norms) + hidden
    intermediate = members.number("intermediate_size", 4 * hidden)
    experts = members.first("num_local_experts", "n_routed_experts", "num_experts")
    if not experts:
        return Weights(layers * (attention + 3 * hidden * intermediate), 0, others)
    size = members.number("moe_intermediate_size", intermediate)
    dense = members.number("first_k_dense_replace", 0)
    shared = members.number("shared_expert_intermediate_size", members.number("n_shared_experts", 0) * size)
    sparse = layers - dense
    linear = layers * attention + 3 * hidden * (dense * intermediate + sparse * shared)
    others += sparse * (experts * hidden)
    each = 3 * hidden * size + (2 * size + hidden if family is FAMILIES["gpt_oss"] else 0)
    return Weights(linear, sparse * experts * each, others)


def _attention(members: _Members, family: Family, hidden: int, heads: int) -> tuple[int, int]:
    """Parameters of one layer's attention, and of its norms."""
    latent = members.number("kv_lora_rank", 0)
    if latent:
        rope, nope = members.number("qk_rope_head_dim"), members.number("qk_nope_head_dim")
        value, query = members.number("v_head_dim"), members.number("q_lora_rank", 0)
        asked = hidden * query + query * heads * (nope + rope) if query else hidden * heads * (nope + rope)
        kept = hidden * (latent + rope) + latent * heads * (nope + value)
        return asked + kept + heads * value * hidden, latent + query
    size, kv_heads = members.number("head_dim", hidden // heads), members.number("num_key_value_heads", heads)
    queries, keys = heads * size, kv_heads * size
    bias = members.flag("attention_bias", default=False)
    biases = queries + 2 * keys if bias or family.qkv_bias else 0
    return hidden * (2 * queries + 2 * keys) + biases + (hidden if bias else 0), 2 * size if family.head_norms else 0


def _quantization(given: object) -> Quantization | None:
    """What quantization_config says. Raises UnknownModelError for a method whose size is not known."""
    if not isinstance(given, Mapping):
        return None
    method = str(given.get("quant_method") or "")
    bits = given.get("bits")
    group = given.get("group_size")
    scales = 20 / group if isinstance(group, int) and group > 0 else 0.0  # a scale of 16 bits and a zero point of 4
    match method:
        case "fp8" | "fbgemm_fp8":
            return Quantization("fp8", 8.0)
        case "mxfp4":
            return Quantization("mxfp4", 4.25, experts_only=True)  # a scale of 8 bits for 32 numbers
        case "awq" | "gptq" if isinstance(bits, int):
            return Quantization(method, bits + scales)
        case "bitsandbytes":
            return Quantization(method, 4.5 if given.get("load_in_4bit") else 8.0)
        case "compressed-tensors" if (packed := _compressed(given)) is not None:
            return packed
    raise UnknownModelError(f"quantization_config has the method {method or '(none)'}, whose size is not known here")


def _compressed(given: Mapping[str, object]) -> Quantization | None:
    groups = given.get("config_groups")
    for group in groups.values() if isinstance(groups, Mapping) else ():
        weights = group.get("weights") if isinstance(group, Mapping) else None
        if isinstance(weights, Mapping) and isinstance(weights.get("num_bits"), int):
            size = weights.get("group_size")
            return Quantization(
                f"compressed-tensors {weights.get('type', 'int')}{weights['num_bits']}",
                weights["num_bits"] + (16 / size if isinstance(size, int) and size > 0 else 0.0),
            )
    return None


def _pools(architectures: Sequence[str]) -> bool:
    generates = ("ForCausalLM", "ForConditionalGeneration", "LMHeadModel")
    return bool(architectures) and not any(name.endswith(generates) for name in architectures)
