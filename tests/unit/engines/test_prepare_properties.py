"""Laws of `prepare` that hold for every request."""

import re

import msgspec
from hypothesis import assume, given
from hypothesis import strategies as st

from engines.parameters import BOOKKEEPING, ENGINE_EXTRAS, GUIDED, PROMISES
from engines.policy import Pass
from engines.profile import EngineKind, Members, Operation, ParameterRefused, Prepared, Unknown
from engines.registry import profile

from .support import as_bytes, raw_members

# The members each strict engine takes; all else is 422 or 400 there (recordings `chat_field_*`, and the schemas).
TRITON_CHAT = frozenset(
    re.findall(
        r"\w+",
        """
        messages model frequency_penalty ignore_eos logit_bias logprobs top_logprobs max_completion_tokens max_tokens
        min_tokens n presence_penalty response_format seed stop stream stream_options temperature top_p tools
        tool_choice user function_call functions
        """,
    )
)
TRTLLM_CHAT = frozenset(
    re.findall(
        r"\w+",
        """
        messages model frequency_penalty logit_bias logprobs top_logprobs max_tokens n presence_penalty response_format
        seed stop stream stream_options temperature top_p tools tool_choice user reasoning_effort thinking
        thinking_token_budget prompt_ignore_length best_of use_beam_search top_k top_p_min min_p repetition_penalty
        length_penalty early_stopping stop_token_ids include_stop_str_in_output ignore_eos min_tokens
        skip_special_tokens spaces_between_special_tokens truncate_prompt_tokens lora_request echo add_generation_prompt
        add_special_tokens documents chat_template chat_template_kwargs media_io_kwargs disaggregated_params cache_salt
        mm_processor_kwargs
        """,
    )
)
TRITON_COMPLETIONS = frozenset(
    re.findall(
        r"\w+",
        """
        model prompt best_of echo frequency_penalty ignore_eos logit_bias logprobs max_tokens min_tokens n
        presence_penalty seed stop stream stream_options suffix temperature top_p user
        """,
    )
)
TRITON_EMBEDDINGS = frozenset({"input", "model", "dimensions", "encoding_format", "user"})
STRICT = [
    (EngineKind.TRITON, Operation.CHAT, TRITON_CHAT),
    (EngineKind.TRITON, Operation.COMPLETIONS, TRITON_COMPLETIONS),
    (EngineKind.TRITON, Operation.EMBEDDINGS, TRITON_EMBEDDINGS),
    (EngineKind.TRTLLM, Operation.CHAT, TRTLLM_CHAT),
]

NAMES = sorted(
    {
        *BOOKKEEPING,
        *ENGINE_EXTRAS,
        *GUIDED,
        *PROMISES,
        *(n for kind in EngineKind for t in profile(kind).tables.values() for n in t.policies),
        "model",
        "unheard_of",
    }
)
VALUES = st.sampled_from(
    b"""null true false 0 1 1.0 -1 5 "" "auto" "none" "low" [] {} ["text"] ["a"] {"type":"text"}
    {"include_usage":true} [{"type":"function","function":{}}] [{"role":"user","content":"x"}]
    [{"role":"developer","content":[{"type":"text","text":"x"}]}]""".split()
)
REQUESTS = st.dictionaries(st.sampled_from(NAMES), VALUES, max_size=12).map(
    lambda found: raw_members(b"{" + b",".join(b'"%s": %s' % (n.encode(), v) for n, v in found.items()) + b"}")
)
SERVED = st.sampled_from([(kind, operation) for kind in EngineKind for operation in profile(kind).tables])
UNKNOWN = st.sampled_from(Unknown)


def prepared_or_refused(
    kind: EngineKind, operation: Operation, request: Members, unknown: Unknown = Unknown.DROP
) -> Prepared:
    """Prepare a request; a refused one is no example."""
    try:
        return profile(kind).prepare(operation, request, unknown)
    except ParameterRefused:
        assume(False)
        raise


@given(SERVED, REQUESTS, UNKNOWN)
def test_passed_members_keep_their_bytes(
    where: tuple[EngineKind, Operation], request: Members, unknown: Unknown
) -> None:
    """A member the table passes, the model's name included, reaches the engine byte for byte unless it is null."""
    kind, operation = where
    prepared = prepared_or_refused(kind, operation, request, unknown)
    if prepared.members is None:
        return
    table = profile(kind).tables[operation]
    after = as_bytes(prepared.members)
    defaults = {default.name for default in table.defaults}
    for name, raw in as_bytes(request).items():
        replaced = name in {"max_tokens", "structured_outputs", *prepared.translated, *prepared.dropped} | defaults
        if name == "model" or (isinstance(table.policies.get(name), Pass) and raw != b"null" and not replaced):
            assert after[name] == raw


@given(SERVED, REQUESTS)
def test_preparing_twice_changes_nothing_more(where: tuple[EngineKind, Operation], request: Members) -> None:
    """What was prepared for an engine is what that engine wants."""
    kind, operation = where
    first = prepared_or_refused(kind, operation, request)
    once = request if first.members is None else first.members
    second = profile(kind).prepare(operation, once)
    assert second.dropped == ()
    assert second.translated == ()
    assert second.members is None or as_bytes(second.members) == as_bytes(once)


@given(st.sampled_from(STRICT), REQUESTS)
def test_a_strict_engine_knows_every_member_it_gets(
    where: tuple[EngineKind, Operation, frozenset[str]], request: Members
) -> None:
    """Engines that refuse unknown fields get none, and no null."""
    kind, operation, schema = where
    prepared = prepared_or_refused(kind, operation, request)
    result = request if prepared.members is None else prepared.members
    assert result.keys() <= schema
    assert all(bytes(raw) != b"null" for name, raw in result.items() if name != "model")


@given(SERVED, REQUESTS, UNKNOWN)
def test_what_is_told_is_what_happened(where: tuple[EngineKind, Operation], request: Members, unknown: Unknown) -> None:
    """Names told as dropped or translated are the client's own; nothing disappears with a value and without a word."""
    kind, operation = where
    prepared = prepared_or_refused(kind, operation, request, unknown)
    assert {*prepared.dropped, *prepared.translated} <= request.keys()
    if prepared.members is None:
        assert prepared.dropped == prepared.translated == ()
        return
    assert msgspec.json.decode(msgspec.json.encode(prepared.members)) is not None
    for name in prepared.dropped:
        assert as_bytes(prepared.members).get(name) != bytes(request[name]) or name == "max_tokens"
