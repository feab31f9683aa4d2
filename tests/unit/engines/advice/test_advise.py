"""What is advised for a model and a GPU, and that the arithmetic behind it holds together."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engines.advice.advise import EngineAdvice, Need, Subject, Wanted, advise, cautions
from engines.advice.memory import Layout, kv_on_one, layouts, longest, trtllm_room, vllm_room
from engines.advice.model import read_model
from engines.advice.table import FAMILIES, GPUS, Gpu, find_gpu
from engines.launch.flags.trtllm import REASONING_PARSERS as TRTLLM_REASONING
from engines.launch.flags.trtllm import TOOL_PARSERS as TRTLLM_TOOLS
from engines.launch.flags.vllm_parsers import REASONING_PARSERS, TOOL_PARSERS
from engines.launch.kinds import LAUNCHES
from engines.profile import EngineKind
from tests.unit.engines.advice.published import PUBLISHED

NAMES = sorted(PUBLISHED)
EMBEDDER = {**PUBLISHED["Qwen/Qwen3-8B"].config, "architectures": ["Qwen3Model"]}


def subject(name: str, config: dict[str, object] | None = None) -> Subject:
    model = read_model(config or PUBLISHED[name].config)
    return Subject(name, model.weight_bytes, model)


def gpu(name: str) -> Gpu:
    found = find_gpu(name)
    assert found is not None
    return found


def advice(name: str, card: str, *needs: Need, gpus: int = 1, **more: int) -> dict[EngineKind, EngineAdvice]:
    found = advise(subject(name), Wanted(gpu(card), gpus, needs=frozenset(needs), **more))
    return {one.kind: one for one in found}


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("H100", "H100"),
        ("h100-sxm", "H100"),
        ("NVIDIA H100 80GB HBM3", "H100"),
        ("NVIDIA A100-SXM4-40GB", "A100 40GB"),
        ("NVIDIA A100-SXM4-80GB", "A100"),
        ("a100", "A100"),
        ("NVIDIA H200", "H200"),
        ("NVIDIA L40S", "L40S"),
        ("Tesla T4", "T4"),
        ("NVIDIA GeForce RTX 4090", "RTX 4090"),
        ("NVIDIA GB10", "DGX Spark"),
        ("Tesla V100-SXM2-16GB", "V100 16GB"),
    ],
)
def test_a_gpu_is_known_by_the_names_that_people_and_nvidia_smi_use(text: str, name: str) -> None:
    assert gpu(text).name == name


@pytest.mark.parametrize("text", ["H900", "", "A100 20GB", "MI300X", "Radeon"])
def test_a_gpu_that_is_not_in_the_table_is_not_taken_for_another(text: str) -> None:
    assert find_gpu(text) is None


def test_every_gpu_is_found_by_its_own_name() -> None:
    assert [gpu(one.name) for one in GPUS] == list(GPUS)


@pytest.mark.parametrize("card", GPUS, ids=lambda card: card.name)
def test_each_kind_is_offered_where_its_documentation_says(card: Gpu) -> None:
    found = advice("microsoft/Phi-3-mini-4k-instruct", card.name)
    listed = ("B200", "GB200", "B300", "GB300", "DGX Spark", "H100", "H200", "GH200", "L20", "L40", "A100")

    assert found[EngineKind.VLLM].supported == (card.capability >= 7.5)
    assert found[EngineKind.TRITON].supported == (card.capability >= 7.5)
    assert found[EngineKind.TRTLLM].supported == card.name.startswith(listed)


def test_fp8_on_tensorrt_llm_needs_an_h100() -> None:
    assert "FP8 on H100" in advice("deepseek-ai/DeepSeek-V3", "A100", gpus=64)[EngineKind.TRTLLM].why
    assert advice("deepseek-ai/DeepSeek-V3", "H200", gpus=8)[EngineKind.TRTLLM].fits


def test_newer_cuda_is_named() -> None:
    assert "CUDA 12.8" in advice("Qwen/Qwen3-8B", "B200")[EngineKind.VLLM].why


@pytest.mark.parametrize(
    ("name", "card", "gpus", "fits"),
    [
        ("meta-llama/Llama-3.1-8B-Instruct", "L4", 1, True),
        ("meta-llama/Llama-3.1-8B-Instruct", "T4", 1, False),
        ("meta-llama/Llama-3.1-70B-Instruct", "H100", 1, False),
        ("meta-llama/Llama-3.1-70B-Instruct", "H100", 2, True),
        ("openai/gpt-oss-20b", "RTX 4090", 1, True),
        ("deepseek-ai/DeepSeek-V3", "H100", 8, False),
        ("deepseek-ai/DeepSeek-V3", "H200", 8, True),
        ("deepseek-ai/DeepSeek-V3", "H100", 16, True),
    ],
)
def test_whether_it_fits_is_what_is_known_of_it(name: str, card: str, gpus: int, fits: bool) -> None:
    assert advice(name, card, gpus=gpus)[EngineKind.VLLM].fits == fits


def test_no_more_gpus_are_used_than_needed_and_heads_are_never_split_unevenly() -> None:
    found = advice("meta-llama/Llama-3.1-8B-Instruct", "H100", gpus=8)[EngineKind.VLLM]

    assert found.room.layout == Layout(1, 1)
    assert [layout.tensor for layout in layouts(8, 28)] == [1, 2, 4, 7]


def test_a_context_that_does_not_fit_is_refused_or_made_shorter_if_nobody_asked_for_it() -> None:
    shorter = advice("meta-llama/Llama-3.1-8B-Instruct", "L4")[EngineKind.VLLM]
    asked = advice("meta-llama/Llama-3.1-8B-Instruct", "L4", context=131_072)[EngineKind.VLLM]

    assert shorter.fits
    assert shorter.room.context is not None
    assert 1024 <= shorter.room.context < 131_072
    assert not asked.fits
    assert "KV cache does not fit" in asked.why


def test_what_applications_need_decides_among_the_kinds() -> None:
    chat = advice("Qwen/Qwen3-8B", "H100", Need.JSON, Need.TOOLS)
    vectors = advice("Qwen/Qwen3-8B", "H100", Need.EMBEDDINGS)

    assert {kind for kind, one in chat.items() if one.supported} == {EngineKind.VLLM, EngineKind.TRTLLM}
    assert (chat[EngineKind.TRTLLM].settings or {})["guided_decoding_backend"] == "xgrammar"
    assert (chat[EngineKind.VLLM].settings or {})["tool_parser"] == "hermes"
    assert not any(one.supported for one in vectors.values())


def test_an_embedding_model_is_started_as_one() -> None:
    model = read_model(EMBEDDER)
    wanted = Wanted(gpu("H100"), needs=frozenset({Need.EMBEDDINGS}))
    found = {one.kind: one for one in advise(Subject("a/b", model.weight_bytes, model), wanted)}

    assert all(one.fits and one.apis[0] == "/v1/embeddings" for one in found.values())
    assert found[EngineKind.VLLM].settings == {"model": "a/b", "runner": "pooling"}
    assert found[EngineKind.TRTLLM].settings == {"model": "a/b", "task": "embedding"}


def test_doubts_are_said() -> None:
    model = read_model({**PUBLISHED["Qwen/Qwen3-8B"].config, "model_type": "novelty"})
    said = " ".join(cautions(Subject("a/b", model.weight_bytes, model), Wanted(gpu("T4"), context=50_000)))

    assert "novelty" in said
    assert "no bfloat16" in said
    assert "40960 tokens" in said
    assert "not known" in " ".join(cautions(Subject("a/b", 16 * 10**9, None), Wanted(gpu("H100"))))


@pytest.mark.parametrize("needs", [(), (Need.TOOLS,), (Need.JSON, Need.TOOLS)])
@pytest.mark.parametrize("name", NAMES)
def test_what_is_advised_is_a_launch_of_its_kind(name: str, needs: tuple[Need, ...]) -> None:
    found = advice(name, "B200", *needs, gpus=16, requests=4)

    assert found[EngineKind.VLLM].fits
    for kind, one in found.items():
        if one.settings is not None:
            LAUNCHES[kind].model_validate(one.settings)


def test_parsers_are_ones_that_the_engines_have() -> None:
    for family in FAMILIES.values():
        assert {family.vllm} <= {"", *TOOL_PARSERS}
        assert {family.vllm_reasoning} <= {"", *REASONING_PARSERS}
        assert {family.trtllm} <= {"", *TRTLLM_TOOLS}
        assert {family.trtllm_reasoning} <= {"", *TRTLLM_REASONING}
        assert family.triton in {"", "llama3", "mistral"}


@given(
    name=st.sampled_from(NAMES),
    card=st.sampled_from(GPUS),
    gpus=st.integers(1, 16),
    context=st.integers(1, 200_000),
    requests=st.integers(1, 300),
)
def test_more_gpus_or_a_shorter_context_or_fewer_requests_never_stop_it_from_fitting(
    name: str, card: Gpu, gpus: int, context: int, requests: int
) -> None:
    def fits(gpus: int, context: int, requests: int) -> list[bool]:
        found = advise(subject(name), Wanted(card, gpus, context, requests=requests))
        return [one.fits for one in found]

    before = fits(gpus, context, requests)
    for easier in (fits(gpus + 1, context, requests), fits(gpus, context - 1 or 1, requests)):
        assert all(now >= then for now, then in zip(easier, before, strict=True))
    fewer = fits(gpus, context, requests - 1 or 1)
    assert all(now >= then for now, then in zip(fewer, before, strict=True))


@given(name=st.sampled_from(NAMES), card=st.sampled_from(GPUS), tensor=st.sampled_from([1, 2, 4, 8]))
def test_the_parts_of_a_gpu_add_up_to_no_more_than_its_memory(name: str, card: Gpu, tensor: int) -> None:
    one = subject(name)
    for make in (vllm_room, trtllm_room):
        room = make(card, Layout(tensor, 1), one.weight_bytes, one.model, None, 1)
        assert room.weights + room.computing + room.kv_room <= card.memory
        assert room.weights * tensor >= one.weight_bytes
        if room.fits and room.tokens is not None and room.kv_per_token is not None:
            assert room.tokens * room.kv_per_token <= room.kv_room


@given(name=st.sampled_from(NAMES), room=st.integers(0, 2**38), tensor=st.sampled_from([1, 2, 4, 8]))
def test_the_longest_context_fits_and_the_next_step_does_not(name: str, room: int, tensor: int) -> None:
    model = read_model(PUBLISHED[name].config)
    layout = Layout(tensor, 1)
    found = longest(model, layout, room)

    assert kv_on_one(model, layout, found) <= room or found == 0
    assert found == model.context or kv_on_one(model, layout, min(found + 1024, model.context or 0)) > room
