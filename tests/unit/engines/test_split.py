"""Calls that become several requests, where an engine gives one answer at a time."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engines.policy import Edit
from engines.prepare import MOST_PARTS
from engines.profile import Build, EngineKind, Members, Operation, ParameterRefused, Profile, Split
from engines.registry import profile

from .support import as_bytes, members

TRITON = profile(EngineKind.TRITON)
RUST = profile(EngineKind.VLLM).for_build(Build("0.32.0", rust_frontend=True))
CHAT, COMPLETIONS, EMBEDDINGS = Operation.CHAT, Operation.COMPLETIONS, Operation.EMBEDDINGS
HELLO: dict[str, object] = {"model": "m", "messages": [{"role": "user", "content": "Hello"}]}
ONE_AT_A_TIME = pytest.mark.parametrize("engine", [TRITON, RUST], ids=["triton", "rust"])


def split_of(engine: Profile, operation: Operation, **body: object) -> Split:
    """Give the split of a call."""
    split = engine.prepare(operation, members({"model": "m", **body})).split
    assert split is not None
    return split


def applied(request: Members, edit: Edit) -> dict[str, bytes]:
    """Give the members of one part."""
    out = as_bytes(request)
    for name, value in edit.items():
        if value is None:
            out.pop(name, None)
        else:
            out[name] = value
    return out


@ONE_AT_A_TIME
def test_choices_become_requests(engine: Profile) -> None:
    """`n` is one request per choice (400 otherwise: `chat_n2`, `rust_chat_n2`), and is told."""
    split = split_of(engine, CHAT, **HELLO | {"n": 3})
    assert split == Split(({"n": None},) * 3, copies=3, names=("n",))


@ONE_AT_A_TIME
def test_each_choice_has_a_seed_of_its_own(engine: Profile) -> None:
    """With the same seed all choices would be the same."""
    split = split_of(engine, CHAT, **HELLO | {"n": 2, "seed": 41})
    assert split.edits == ({"n": None, "seed": b"41"}, {"n": None, "seed": b"42"})
    largest = 2**63 - 1
    split = split_of(engine, CHAT, **HELLO | {"n": 2, "seed": largest})
    assert [int(edit["seed"] or b"") for edit in split.edits] == [largest, -(2**63)]


@ONE_AT_A_TIME
def test_prompts_become_requests_each_with_its_choices(engine: Profile) -> None:
    """The order is OpenAI's: all choices of the first prompt, then those of the second."""
    split = split_of(engine, COMPLETIONS, n=2, prompt=["a", "b"], max_tokens=1)
    assert split.edits == (
        {"prompt": b'"a"', "n": None},
        {"prompt": b'"a"', "n": None},
        {"prompt": b'"b"', "n": None},
        {"prompt": b'"b"', "n": None},
    )
    assert (split.copies, set(split.names)) == (2, {"n", "prompt"})


def test_token_ids_are_prompts_on_the_rust_frontend() -> None:
    """It takes one text or one list of ids (`rust_comp_list`, `rust_comp_token_ids`)."""
    assert split_of(RUST, COMPLETIONS, prompt=[[1, 2], [3]]).edits == ({"prompt": b"[1,2]"}, {"prompt": b"[3]"})
    assert RUST.prepare(COMPLETIONS, members({"model": "m", "prompt": [1, 2]})).split is None


def test_inputs_become_requests_on_triton() -> None:
    """A list of texts is 422 there (`embeddings_list_of_strings`)."""
    split = split_of(TRITON, EMBEDDINGS, input=["a", "b"], encoding_format="base64")
    assert split == Split(({"input": b'"a"'}, {"input": b'"b"'}), copies=1, names=("input",))


@ONE_AT_A_TIME
@pytest.mark.parametrize("count", [0, 1, None, "2", 1.5, -1, True])
def test_what_is_no_number_of_choices_is_not_split(engine: Profile, count: object) -> None:
    """One choice is an ordinary request; what is no number is the engine's to refuse."""
    assert engine.prepare(CHAT, members(HELLO | {"n": count})).split is None


@ONE_AT_A_TIME
def test_there_is_a_limit(engine: Profile) -> None:
    """Nobody may make thousands of requests out of one."""
    with pytest.raises(ParameterRefused) as refused:
        engine.prepare(CHAT, members(HELLO | {"n": 129}))
    assert (refused.value.param, refused.value.code) == ("n", "invalid_value")
    with pytest.raises(ParameterRefused):
        engine.prepare(COMPLETIONS, members({"model": "m", "n": 128, "prompt": ["a"] * (MOST_PARTS // 128 + 1)}))


def test_an_engine_that_gives_several_choices_is_left_to_it() -> None:
    """vLLM's Python frontend and trtllm-serve take `n` and lists themselves."""
    for kind in (EngineKind.VLLM, EngineKind.TRTLLM):
        assert profile(kind).prepare(CHAT, members(HELLO | {"n": 3})).split is None
        request = members({"model": "m", "prompt": ["a", "b"], "max_tokens": 1, "n": 2})
        assert profile(kind).prepare(COMPLETIONS, request).split is None


@given(
    st.sampled_from([TRITON, RUST]),
    st.integers(1, 8),
    st.lists(st.text(max_size=5), min_size=1, max_size=5),
    st.none() | st.integers(-(2**63), 2**63 - 1),
)
def test_a_part_is_a_call_that_needs_no_splitting(
    engine: Profile, count: int, prompts: list[str], seed: int | None
) -> None:
    """Every part can be prepared for any engine, keeps what the client said otherwise, and there is one per choice."""
    body = {"model": "m", "prompt": prompts, "n": count, "temperature": 0.5, "max_tokens": 3}
    request = members(body if seed is None else body | {"seed": seed})
    split = engine.prepare(COMPLETIONS, request).split
    if split is None:
        assert count * len(prompts) == 1
        return
    assert len(split.edits) == count * len(prompts)
    for edit in split.edits:
        part = applied(request, edit)
        assert part["temperature"] == b"0.5"
        raw = members({}) | {name: type(request["model"])(value) for name, value in part.items()}
        assert engine.prepare(COMPLETIONS, raw).split is None
        assert profile(EngineKind.TRTLLM).prepare(COMPLETIONS, raw).split is None
