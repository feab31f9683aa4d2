"""Engine-parsed answers, put right."""

import json
from collections.abc import Iterable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.wire.toolcalls import Stream
from gateway.wire.toolcalls.normalise import Choice, Normaliser, normalise_message
from gateway.wire.toolcalls.quirks import Quirk, quirks_for

from .strategies import TOOLS

NAMED = {"type": "function", "function": {"name": "get_time"}}


def delta(reason: str | None = None, **members: Any) -> dict[str, Any]:  # noqa: ANN401 - members of a delta
    return {"index": 0, "delta": members, "logprobs": None, "finish_reason": reason}


def call(index: int | None = 0, arguments: object = None, **rest: Any) -> dict[str, Any]:  # noqa: ANN401 - members
    entry: dict[str, Any] = {} if index is None else {"index": index}
    function = {name: rest.pop(name) for name in ("name",) if name in rest}
    if arguments is not None:
        function["arguments"] = arguments
    return {**entry, **rest, "function": function}


def head(index: int, name: str, call_id: str = "") -> dict[str, Any]:
    return call(index, "", id=call_id or f"call_{index}", type="function", name=name)


def run(normaliser: Normaliser, choices: Iterable[Choice]) -> list[Choice]:
    return [out for choice in choices for out in normaliser.feed(choice)]


def followed(choices: Iterable[Choice]) -> tuple[str, list[tuple[str, str]], str | None]:
    """What an SDK's accumulator makes of a stream; it fails where an SDK would."""
    content = ""
    calls: list[dict[str, str]] = []
    reason = None
    for choice in choices:
        assert reason is None
        content += choice["delta"].get("content") or ""
        seen: set[int] = set()
        for entry in choice["delta"].get("tool_calls") or ():
            assert entry["index"] not in seen
            seen.add(entry["index"])
            if entry["index"] == len(calls):
                assert entry["type"] == "function"
                assert entry["function"]["arguments"] == ""
                calls.append({"id": entry["id"], "name": entry["function"]["name"], "arguments": ""})
            else:
                assert entry["index"] == len(calls) - 1
                assert set(entry) == {"index", "function"}
                assert set(entry["function"]) == {"arguments"}
                assert entry["function"]["arguments"]
            calls[entry["index"]]["arguments"] += entry["function"]["arguments"]
        reason = choice.get("finish_reason") or reason
    assert len({one["id"] for one in calls}) == len(calls)
    return content, [(one["name"], one["arguments"]) for one in calls], reason


CLEAN = [
    delta(role="assistant", content=""),
    delta(content="Hi. "),
    delta(tool_calls=[head(0, "f")]),
    delta(tool_calls=[call(0, '{"a":')]),
    delta(tool_calls=[call(0, " 1}")]),
    delta(tool_calls=[head(1, "g")]),
    delta(tool_calls=[call(1, "{}")]),
    delta("tool_calls"),
]


def test_a_clean_stream_passes_as_the_very_same_objects() -> None:
    """So that its bytes can be passed on."""
    for made, given_ in zip(run(Normaliser(), CLEAN), CLEAN, strict=True):
        assert made is given_


def test_a_plain_answer_passes_too() -> None:
    """Text, log probabilities on empty deltas, content in the last event, reasoning as the engine names it."""
    stream = [
        delta(role="assistant", content=""),
        delta(reasoning="hm"),
        delta(content="Hi"),
        {**delta(content=""), "logprobs": {"content": [{"token": ""}]}},
        delta("length", content=" you"),
    ]
    normaliser = Normaliser()
    assert all(made is given_ for made, given_ in zip(run(normaliser, stream), stream, strict=True))
    assert normaliser.repairs == {}


def test_vllm_leaves_out_the_empty_arguments() -> None:
    """Its first delta has no `arguments`, and content null beside it (recording tool_auto_stream)."""
    first = {"index": 0, "id": "chatcmpl-tool-1", "type": "function", "function": {"name": "f"}}
    stream = [
        delta(content=None, tool_calls=[first]),
        delta(tool_calls=[call(0, "{}")]),
        delta("tool_calls"),
    ]
    assert followed(run(Normaliser(), stream)) == ("", [("f", "{}")], "tool_calls")


def test_triton_repeats_the_name_without_id_or_type() -> None:
    """A forced tool: name in every delta (recording), finish `stop`."""
    stream = [delta(tool_calls=[call(0, piece, name="get_time")]) for piece in ('{"a"', ": 1}")]
    made = run(Normaliser(tool_choice=NAMED), [*stream, delta("stop")])
    assert followed(made) == ("", [("get_time", '{"a": 1}')], "stop")
    assert followed(run(Normaliser(tool_choice="required"), [*stream, delta("stop")]))[2] == "tool_calls"


def test_trtllm_says_nothing_for_every_token_and_its_type_every_time() -> None:
    """Empty deltas go; `type` and `name: null` on later deltas too; no-argument calls get `{}`."""
    empty = delta(content="", reasoning_content="")
    stream = [
        delta(role="assistant"),
        empty,
        delta(content="", reasoning_content="", tool_calls=[head(0, "f", "chatcmpl-tool-1")]),
        empty,
        delta(content="", tool_calls=[call(0, '{"a": 1}', type="function", name=None)]),
        empty,
        delta(tool_calls=[head(1, "g", "chatcmpl-tool-2")]),
        delta("stop", content=""),
    ]
    made = run(Normaliser(), stream)
    assert followed(made) == ("", [("f", '{"a": 1}'), ("g", "{}")], "tool_calls")
    assert len(made) == 5


def test_trtllm_resends_arguments_content_and_the_call() -> None:
    """minimax_m2: the whole object after each parameter, the text on every delta, the name under a new index."""
    stream = [
        delta(content="Let me see. "),
        delta(content="Let me see. ", tool_calls=[head(0, "f")]),
        delta(content="Let me see. ", tool_calls=[call(0, '{"a": 1}')]),
        delta(content="Let me see. ", tool_calls=[call(0, '{"a": 1, "b": 2}')]),
        delta(content="Let me see. ", tool_calls=[call(1, "", id="x", type="function", name="f")]),
        delta("tool_calls"),
    ]
    quirks = quirks_for("trtllm", "1.3.0", "minimax_m2")
    assert quirks >= {Quirk.RESENDS_ARGUMENTS, Quirk.REPEATS_CONTENT}
    made = run(Normaliser(quirks=quirks), stream)
    assert followed(made) == ("Let me see. ", [("f", '{"a": 1, "b": 2}')], "tool_calls")
    two = [*stream[:-1], delta(tool_calls=[call(1, '{"a": 9}')]), stream[-1]]
    assert followed(run(Normaliser(quirks=quirks), two))[1] == [("f", '{"a": 1, "b": 2}'), ("f", '{"a": 9}')]


def test_triton_appends_the_whole_object_to_its_beginning() -> None:
    """llama3 with non-ASCII arguments (recording): the last whole one counts."""
    pieces = ('{"city": "\\u5317', "\\u4eac na\\u00efve", '{"city": "北京 naïve", "o": {"city": 1}}')
    stream = [delta(tool_calls=[head(0, "f")]), *(delta(tool_calls=[call(0, piece)]) for piece in pieces)]
    made = run(Normaliser(quirks=quirks_for("triton", "", "llama3")), [*stream, delta("tool_calls")])
    assert followed(made)[1] == [("f", '{"city": "北京 naïve", "o": {"city": 1}}')]


def test_text_after_the_arguments_is_dropped() -> None:
    """vLLM takes a named tool's content as arguments without looking."""
    stream = [
        delta(tool_calls=[head(0, "get_time")]),
        delta(tool_calls=[call(0, '{"a": 1}')]),
        delta(tool_calls=[call(0, "}\n</tool")]),
        delta(tool_calls=[call(0, "_call>Sure!")]),
        delta("stop"),
    ]
    normaliser = Normaliser(tool_choice=NAMED)
    assert followed(run(normaliser, stream)) == ("", [("get_time", '{"a": 1}')], "stop")
    assert normaliser.repairs == {"text_after_arguments": 2}


def test_indices_become_dense_and_names_are_waited_for() -> None:
    """Jumping indices, arguments before the name, no index at all, several calls in one delta."""
    stream = [
        delta(tool_calls=[call(3, '{"a"')]),
        delta(tool_calls=[call(3, ": 1}", name="f")]),
        delta(tool_calls=[call(7, "{}", name="g", id="x"), call(9, "{}", name="h", id="x")]),
        delta("tool_calls"),
    ]
    made = run(Normaliser(), stream)
    assert followed(made) == ("", [("f", '{"a": 1}'), ("g", "{}"), ("h", "{}")], "tool_calls")
    no_index = [delta(tool_calls=[call(None, "{}", name="f")]), delta("stop")]
    assert followed(run(Normaliser(), no_index))[1] == [("f", "{}")]


def test_interleaved_calls_come_one_after_the_other() -> None:
    """A second call waits for the first; list-based clients would file its fragments wrongly."""
    stream = [
        delta(tool_calls=[head(0, "f"), head(1, "g")]),
        delta(tool_calls=[call(0, '{"a"')]),
        delta(tool_calls=[call(1, '{"b"')]),
        delta(tool_calls=[call(0, ": 1}"), call(1, ": 2}")]),
        delta("tool_calls"),
    ]
    assert followed(run(Normaliser(), stream))[1] == [("f", '{"a": 1}'), ("g", '{"b": 2}')]


def test_calls_that_share_an_index_are_told_apart() -> None:
    """By another name, or by another id once the arguments are whole."""
    stream = [
        delta(tool_calls=[head(0, "f", "a")]),
        delta(tool_calls=[call(0, "{}")]),
        delta(tool_calls=[head(0, "g", "b")]),
        delta(tool_calls=[call(0, '{"x": 1}')]),
        delta(tool_calls=[head(0, "g", "c")]),
        delta("tool_calls"),
    ]
    assert followed(run(Normaliser(), stream))[1] == [("f", "{}"), ("g", '{"x": 1}'), ("g", "{}")]


@pytest.mark.parametrize(
    ("arguments", "wanted"),
    [
        ("null", "{}"),
        ("[]", "{}"),
        ('"{\\"a\\": 1}"', '{"a": 1}'),
        ('  {"a": 1}', '  {"a": 1}'),
        ({"a": 1}, '{"a": 1}'),
        ("oops", "oops"),
    ],
)
def test_odd_arguments(arguments: object, wanted: str) -> None:
    """Nothing, a string, an object that was never written as JSON."""
    stream = [delta(tool_calls=[head(0, "f")]), delta(tool_calls=[call(0, arguments)]), delta("stop")]
    assert followed(run(Normaliser(), stream))[1] == [("f", wanted)]


def test_a_cut_call_is_not_closed() -> None:
    """`length` stays, empty arguments stay empty; missing braces are counted at a stop, and closed only if asked."""
    stream = [delta(tool_calls=[head(0, "f")]), delta(tool_calls=[call(0, '{"a": [1')])]
    assert followed(run(Normaliser(), [*stream, delta("length")])) == ("", [("f", '{"a": [1')], "length")
    assert followed(run(Normaliser(), [stream[0], delta("length")])) == ("", [("f", "")], "length")
    counted = Normaliser()
    assert followed(run(counted, [*stream, delta(tool_calls=[call(0, " ")]), delta("stop")]))[1] == [("f", '{"a": [1 ')]
    assert counted.repairs["missing_brace"] == 1
    closing = Normaliser(close_missing_braces=True)
    closed = run(closing, [*stream, delta(tool_calls=[call(0, ", 2]")]), delta("stop")])
    assert followed(closed)[1] == [("f", '{"a": [1, 2]}')]


@pytest.mark.parametrize(
    ("reason", "choice", "calls", "wanted"),
    [
        ("stop", None, True, "tool_calls"),
        ("tool_calls", NAMED, True, "stop"),
        ("tool_calls", None, False, "stop"),
        ("length", None, True, "length"),
        ("content_filter", None, True, "content_filter"),
    ],
)
def test_the_finish_reason_is_recomputed(reason: str, choice: object, calls: bool, wanted: str) -> None:
    """From the calls seen, the engine's reason and the tool choice."""
    stream = [delta(tool_calls=[head(0, "f")]), delta(tool_calls=[call(0, "{}")])] if calls else []
    assert run(Normaliser(tool_choice=choice), [*stream, delta(reason)])[-1]["finish_reason"] == wanted


def test_reasoning_goes_into_the_configured_fields() -> None:
    """Both names by default of the gateway; never in content."""
    for given_ in ("reasoning", "reasoning_content"):
        for field in ("reasoning", "reasoning_content"):
            [made] = Normaliser(reasoning=field).feed(delta(**{given_: "hm"}))
            assert made["delta"] == {field: "hm"}
        [both] = Normaliser(reasoning="both").feed(delta(**{given_: "hm"}))
        assert both["delta"] == {"reasoning": "hm", "reasoning_content": "hm"}
    ready = delta(reasoning="hm", reasoning_content="hm")
    assert Normaliser(reasoning="both").feed(ready)[0] is ready


def test_content_is_read_where_the_engine_does_not() -> None:
    """Raw mode: calls and reasoning come out of the content; plain pieces stay the same objects."""
    text = '<think>hm</think>Ok <tool_call>{"name": "f", "arguments": {"a": 1}}</tool_call>'
    normaliser = Normaliser(content=Stream("hermes"), reasoning="both")
    made = run(
        normaliser, [delta(role="assistant", content=""), *(delta(content=char) for char in text), delta("stop")]
    )
    assert followed(made) == ("Ok ", [("f", '{"a": 1}')], "tool_calls")
    assert "".join(choice["delta"].get("reasoning") or "" for choice in made) == "hm"
    plain = [delta(content="Hello"), delta(content=" world"), delta("stop")]
    normaliser = Normaliser(content=Stream("hermes", tools=TOOLS))
    assert all(out is given_ for out, given_ in zip(run(normaliser, plain), plain, strict=True))


def test_leaked_markup_joins_the_engines_own_calls() -> None:
    """One numbering for both."""
    stream = [
        delta(tool_calls=[head(0, "f")]),
        delta(tool_calls=[call(0, "{}")]),
        delta(content='<tool_call>{"name": "g", "arguments": {}}</tool_call>'),
        delta("stop"),
    ]
    made = run(Normaliser(content=Stream("hermes")), stream)
    assert followed(made) == ("", [("f", "{}"), ("g", "{}")], "tool_calls")


def test_only_the_first_call_where_calls_may_not_be_parallel() -> None:
    """Engines that do not know the field."""
    assert followed(run(Normaliser(parallel=False), CLEAN))[1] == [("f", '{"a": 1}')]


ENTRIES = st.builds(
    call,
    st.sampled_from((0, 1, 2, 5, None)),
    st.sampled_from((None, "", "{", '{"a": 1}', "}", ' "x', "null", "{}", '{"a": 1, "b": 2}', "北")),
).flatmap(
    lambda entry: st.builds(
        lambda name, call_id, kind: {
            **entry,
            **({"id": call_id} if call_id is not None else {}),
            **({"type": "function"} if kind else {}),
            "function": {**entry["function"], **({"name": name} if name else {})},
        },
        st.sampled_from((None, None, "f", "g")),
        st.sampled_from((None, "", "call_1", "call_2")),
        st.booleans(),
    )
)
DELTAS = st.one_of(
    st.lists(ENTRIES, min_size=1, max_size=2).map(lambda entries: delta(tool_calls=entries)),
    st.sampled_from([delta(content="x"), delta(content=""), delta(reasoning="r"), delta()]),
)


@settings(max_examples=200, deadline=None)
@given(st.lists(DELTAS, max_size=8), st.sampled_from(("stop", "tool_calls", "length")), st.sampled_from((False, True)))
def test_whatever_an_engine_sends_a_client_can_follow_it(stream: list[Choice], reason: str, quirky: bool) -> None:
    """And what was put right once passes a second time as it is, if its arguments are whole."""
    quirks = quirks_for("trtllm", "", "minimax_m2") if quirky else frozenset[Quirk]()
    once = run(Normaliser(quirks=quirks), [*stream, delta(reason)])
    _, calls, _ = followed(once)
    twice = run(Normaliser(), once)
    assert followed(twice) == followed(once)
    if all(_is_object(arguments) for _, arguments in calls):
        assert json.dumps(twice) == json.dumps(once)


def _is_object(text: str) -> bool:
    try:
        return isinstance(json.loads(text), dict)
    except ValueError:
        return False


def test_a_right_message_is_the_same_object() -> None:
    """Not streamed."""
    entry = {"id": "call_1", "type": "function", "function": {"name": "f", "arguments": '{"a": 1}'}}
    right = {
        "index": 0,
        "message": {"role": "assistant", "content": None, "tool_calls": [entry]},
        "finish_reason": "tool_calls",
    }
    assert normalise_message(right) is right
    plain = {"index": 0, "message": {"role": "assistant", "content": "Hi", "tool_calls": None}, "finish_reason": "stop"}
    assert normalise_message(plain) is plain
    empty = {"index": 0, "message": {"role": "assistant", "content": ""}, "finish_reason": "length"}
    assert normalise_message(empty) is empty


def test_a_wrong_message_is_put_right() -> None:
    """Ids, types, arguments, content and finish reason."""
    entries = [
        {"id": "", "function": {"name": "f", "arguments": ""}},
        {"function": {"name": "g", "arguments": {"a": 1}}},
    ]
    wrong = {
        "index": 0,
        "message": {"role": "assistant", "content": "", "tool_calls": entries, "x": 1},
        "finish_reason": "stop",
    }
    made = normalise_message(wrong)
    assert made["finish_reason"] == "tool_calls"
    message = made["message"]
    assert (message["content"], message["x"]) == (None, 1)
    assert [one["function"] for one in message["tool_calls"]] == [
        {"name": "f", "arguments": "{}"},
        {"name": "g", "arguments": '{"a": 1}'},
    ]
    assert all(one["type"] == "function" and one["id"].startswith("call_") for one in message["tool_calls"])
    assert "index" not in message["tool_calls"][0]
    assert normalise_message(made) is made


def test_a_raw_message_is_read() -> None:
    """Markup in the content of an engine without a parser, and its reasoning."""
    content = '<think>hm</think>Ok <tool_call>{"name": "f", "arguments": {}}</tool_call>'
    raw = {"index": 0, "message": {"role": "assistant", "content": content}, "finish_reason": "stop"}
    made = normalise_message(raw, content=Stream("hermes"), reasoning="reasoning")
    assert made["message"]["content"] == "Ok "
    assert made["message"]["reasoning"] == "hm"
    assert made["message"]["tool_calls"][0]["function"] == {"name": "f", "arguments": "{}"}
    assert made["finish_reason"] == "tool_calls"


@pytest.mark.parametrize(
    ("engine", "version", "parser", "quirk", "has"),
    [
        ("vllm", "0.27.3", "hermes", Quirk.NEVER_SAYS_LENGTH, True),
        ("vllm", "0.28.0", "hermes", Quirk.NEVER_SAYS_LENGTH, False),
        ("vllm", "", "hermes", Quirk.NEVER_SAYS_LENGTH, True),
        ("vllm", "0.33.0rc1.dev5", "xlam", Quirk.RESTARTS_ARGUMENTS, True),
        ("triton", "2.73.0", "", Quirk.NEVER_SAYS_LENGTH, True),
        ("triton", "2.73.0", "llama3", Quirk.RESTARTS_ARGUMENTS, True),
        ("trtllm", "1.2.1", "qwen3", Quirk.RESENDS_ARGUMENTS, False),
        ("other", "1", "minimax_m2", Quirk.RESENDS_ARGUMENTS, False),
    ],
)
def test_quirks_go_by_engine_version_and_parser(
    engine: str, version: str, parser: str, quirk: Quirk, has: bool
) -> None:
    """An unknown version has the quirks of all."""
    assert (quirk in quirks_for(engine, version, parser)) is has
