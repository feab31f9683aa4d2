"""What a config.json says of a model's size agrees with what is published."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engines.advice.model import UnknownModelError, read_model
from tests.unit.engines.advice.published import PUBLISHED

LLAMA = dict(PUBLISHED["meta-llama/Llama-3.1-8B-Instruct"].config)


@pytest.mark.parametrize("name", PUBLISHED)
def test_parameters_are_within_two_percent_of_what_is_published(name: str) -> None:
    published = PUBLISHED[name]

    assert read_model(published.config).weights.total == pytest.approx(published.parameters, rel=0.02)


@pytest.mark.parametrize("name", PUBLISHED)
def test_weights_in_memory_are_within_two_percent_of_the_checkpoint(name: str) -> None:
    published = PUBLISHED[name]

    assert read_model(published.config).weight_bytes == pytest.approx(published.file_bytes, rel=0.02)


@pytest.mark.parametrize("name", PUBLISHED)
def test_a_token_in_the_kv_cache_is_exact(name: str) -> None:
    model = read_model(PUBLISHED[name].config)

    assert model.checked
    assert model.kv_bytes_per_token() == PUBLISHED[name].kv


@pytest.mark.parametrize(
    ("name", "windowed", "window", "beyond"),
    [
        ("google/gemma-2-9b-it", 21, 4096, 21 * 2 * 8 * 256 * 2),
        ("google/gemma-3-27b-it", 52, 1024, 10 * 2 * 16 * 128 * 2),
        ("openai/gpt-oss-20b", 12, 128, 12 * 2 * 8 * 64 * 2),
        ("microsoft/Phi-3-mini-4k-instruct", 32, 2047, 0),
        ("Qwen/Qwen2.5-7B-Instruct", 0, 0, 57_344),
        ("mistralai/Mistral-7B-Instruct-v0.3", 0, 0, 131_072),
    ],
)
def test_layers_with_a_window_keep_no_more_than_it_holds(name: str, windowed: int, window: int, beyond: int) -> None:
    model = read_model(PUBLISHED[name].config)

    assert (model.windowed, model.window) == (windowed, window)
    assert model.kv_bytes(200_001) - model.kv_bytes(200_000) == beyond


@given(name=st.sampled_from(sorted(PUBLISHED)), tokens=st.integers(1, 10**7))
def test_a_request_takes_at_most_its_tokens_times_a_token_and_never_less_than_a_shorter_one(
    name: str, tokens: int
) -> None:
    model = read_model(PUBLISHED[name].config)

    assert model.kv_bytes(tokens - 1) <= model.kv_bytes(tokens) <= tokens * model.kv_bytes_per_token()


def test_a_quantized_checkpoint_keeps_embeddings_and_norms_as_they_are() -> None:
    awq = {"quant_method": "awq", "bits": 4, "group_size": 128}
    model = read_model({**LLAMA, "quantization_config": awq})

    # hugging-quants/Meta-Llama-3.1-8B-Instruct-AWQ-INT4: 5.73 GB in its two files
    assert model.weight_bytes == pytest.approx(5.73e9, rel=0.02)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"quantization_config": {"quant_method": "marvel"}}, "marvel"),
        ({"model_type": "mamba2"}, "keep a state"),
        ({"layer_types": ["linear_attention", "full_attention"]}, "keep a state"),
        ({"hidden_size": None}, "hidden_size is missing"),
        ({"num_hidden_layers": 0}, "num_hidden_layers is 0"),
        ({"num_hidden_layers": "many"}, "num_hidden_layers is missing"),
    ],
)
def test_what_is_not_known_is_said(change: dict[str, object], said: str) -> None:
    with pytest.raises(UnknownModelError, match=said):
        read_model({**LLAMA, **change})


def test_a_family_that_was_not_compared_is_marked() -> None:
    assert not read_model({**LLAMA, "model_type": "novelty"}).checked


@given(
    st.dictionaries(
        st.sampled_from(["hidden_size", "num_attention_heads", "num_hidden_layers", "sliding_window", "kv_lora_rank"]),
        st.one_of(st.none(), st.integers(-3, 9), st.text(max_size=3), st.booleans(), st.lists(st.integers())),
    )
)
def test_a_configuration_of_any_form_is_read_or_refused(change: dict[str, object]) -> None:
    try:
        model = read_model({**LLAMA, **change})
    except UnknownModelError:
        return
    assert model.weight_bytes > 0
