"""A stream of named events depends on its bytes, never on its packets, and is whole only when it says so."""

import json
from collections.abc import Callable, Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engines.profile import Operation
from gateway.errors import ContextLengthExceeded, StreamInterrupted
from gateway.wire.answer import AnswerNames, Usage
from gateway.wire.named_stream import NAMED, NamedStream, farewell
from tests.support.json_type import Json
from tests.support.named_bytes import message_events, named, read_named, response, response_events
from tests.unit.gateway.wire.strategies import cuts, line_ends, texts

OWN = b"0" * 24
BROKEN = StreamInterrupted("It broke.")
KINDS: dict[Operation, Callable[..., list[bytes]]] = {
    Operation.RESPONSES: response_events,
    Operation.MESSAGES: message_events,
}
both = pytest.mark.parametrize("operation", KINDS)


def relay(operation: Operation, asked: str = "m") -> NamedStream:
    return NamedStream(NAMED[operation], AnswerNames(operation, asked), OWN)


def run(operation: Operation, parts: Sequence[bytes], asked: str = "m") -> tuple[bytes, NamedStream]:
    into = relay(operation, asked)
    out = b"".join(into.feed(part) for part in parts)
    return out + (into.end() or b""), into


def names(stream: bytes) -> list[str]:
    """Every name of a model where the API has one."""
    holders = [event.get("response") or event.get("message") for _, event in read_named(stream)]
    return [holder["model"] for holder in holders if holder]


@both
def test_a_whole_stream(operation: Operation) -> None:
    """Each event arrives, with the client's name for the model, in the engine's order."""
    events = KINDS[operation]("Hel", "lo")
    out, into = run(operation, events)
    assert [kind for kind, _ in read_named(out)] == [kind for kind, _ in read_named(b"".join(events))]
    assert set(names(out)) == {"m"}
    assert into.done
    assert into.usage == Usage(13, 12)


@both
def test_only_the_models_name_changes(operation: Operation) -> None:
    """A tool or a text that speaks of the model keeps what it says."""
    events = KINDS[operation]('"model":"org/m"', "org/m")
    expected = [event.replace(b'"model":"org/m","object"', b'"model":"m","object"') for event in events]
    expected = [event.replace(b'"model":"org/m","stop_reason"', b'"model":"m","stop_reason"') for event in expected]
    assert run(operation, events)[0] == b"".join(expected)


@both
def test_nothing_changes_for_a_model_with_one_name(operation: Operation) -> None:
    events = KINDS[operation]("Hel", "lo")
    assert run(operation, events, asked="org/m")[0] == b"".join(events)


@both
def test_packets_in_which_nothing_changes_leave_as_they_came(operation: Operation) -> None:
    """The same object, neither read nor copied."""
    events = KINDS[operation]("a", "b", "c")
    into = relay(operation)
    for event in events[:4]:
        into.feed(event)
    packet = b"".join(KINDS[operation]("b", "c", end=None)[-2:]) if operation is Operation.RESPONSES else events[3] * 2
    before = into.events
    assert into.feed(packet) is packet
    assert into.events == before + 2


@both
@settings(max_examples=60)
@given(data=st.data())
def test_the_packets_do_not_matter(operation: Operation, data: st.DataObject) -> None:
    """Any split of any byte, any line end, comments and fields that clients must not see, a ``[DONE]`` at the end."""
    said = data.draw(st.lists(texts, min_size=1, max_size=4))
    noise = data.draw(st.sampled_from([b"", b": ping\n\n", b"id: 7\n", b"retry: 5\n\n"]))
    end = data.draw(line_ends)
    stream = b"".join(noise + event for event in KINDS[operation](*said)) + data.draw(
        st.sampled_from([b"", b"data: [DONE]\n\n"])
    )
    out, into = run(operation, data.draw(cuts(stream.replace(b"\n", end))))
    assert out == run(operation, KINDS[operation](*said))[0]
    assert into.done


@both
def test_openings_wait_for_more(operation: Operation) -> None:
    """What only says that the request has been read is held: another replica may still serve it."""
    events = KINDS[operation]("Hi")
    held = 2 if operation is Operation.RESPONSES else 1
    into = relay(operation)
    assert [into.feed(event) for event in events[:held]] == [b""] * held
    assert not into.committed
    assert len(read_named(into.feed(events[held]))) == held + 1
    assert into.committed


@both
@pytest.mark.parametrize("count", [0, 1, 2, 3, 4])
def test_a_stream_without_its_closing_event_is_not_whole(operation: Operation, count: int) -> None:
    into = relay(operation)
    for event in KINDS[operation]("a", "b")[:count]:
        into.feed(event)
    assert into.end() is None
    assert into.usage is None


@both
def test_a_closing_event_may_lack_its_blank_line(operation: Operation) -> None:
    stream = b"".join(KINDS[operation]("Hi"))
    assert run(operation, [stream.removesuffix(b"\n\n")])[0] == run(operation, [stream])[0]


@both
def test_nothing_comes_after_the_end(operation: Operation) -> None:
    into = relay(operation)
    into.feed(b"".join(KINDS[operation]("Hi")))
    assert into.feed(named("ping") + b"data: [DONE]\n\n") == b""
    assert into.end() == b""


@both
@pytest.mark.parametrize(
    "failure",
    [
        named("error", error={"type": "internal_error", "message": "boom"}),
        b'data: {"error":{"message":"boom","type":"InternalServerError","code":500}}\n\n',
    ],
    ids=["named", "bare"],
)
@pytest.mark.parametrize("count", [0, 1, 5])
def test_an_error_is_kept_and_not_passed_on(operation: Operation, failure: bytes, count: int) -> None:
    into = relay(operation)
    out = b"".join(into.feed(event) for event in [*KINDS[operation]("a", "b", "c")[:count], failure])
    assert b"boom" not in out
    assert into.error is not None
    assert json.loads(into.error)["error"]["message"] == "boom"
    assert into.feed(KINDS[operation]("d")[-1]) == b""
    assert not into.done


def test_a_failed_response_is_an_error() -> None:
    """cases.md 73: no success, whatever the status was."""
    error: Json = {"code": "server_error", "message": "boom"}
    failed = named("response.failed", response=response("failed", error=error), sequence_number=3)
    into = relay(Operation.RESPONSES)
    out = b"".join(into.feed(event) for event in [*response_events("a", end=None), failed])
    assert b"response.failed" not in out
    assert into.error == b'{"error":{"code":"server_error","message":"boom"}}'


def test_a_flat_error_of_the_responses_api_is_an_error() -> None:
    into = relay(Operation.RESPONSES)
    assert into.feed(named("error", code="server_error", message="boom", param=None, sequence_number=0)) == b""
    assert into.error is not None


def test_an_incomplete_response_is_whole() -> None:
    """Its limit of tokens cut it, not a fault."""
    out, into = run(Operation.RESPONSES, response_events("a", end="incomplete"))
    assert read_named(out)[-1][0] == "response.incomplete"
    assert into.done
    assert into.usage == Usage(13, 12)


def test_events_that_cannot_be_read_are_not_lost() -> None:
    odd = b"event: odd\ndata: <b>\n\n"
    into = relay(Operation.RESPONSES)
    out = b"".join(into.feed(event) for event in [*response_events("a", end=None), odd])
    assert out.endswith(odd)


def test_an_event_without_end_is_refused() -> None:
    into = relay(Operation.MESSAGES)
    into.feed(b"x" * 2**24)
    with pytest.raises(OverflowError):
        into.feed(b"x")


@pytest.mark.parametrize("count", [2, 3, 5])
def test_the_farewell_of_a_response(count: int) -> None:
    """The API's own closing event, numbered on, of the same response; the error also where the SDKs look for it."""
    into = relay(Operation.RESPONSES)
    for event in response_events("a", "b", "c", end=None)[:count]:
        into.feed(event)
    ((kind, event),) = read_named(farewell(Operation.RESPONSES, BROKEN, into, OWN))
    assert kind == "response.failed"
    assert event["sequence_number"] == count
    assert event["response"]["id"] == response()["id"]
    assert event["response"]["created_at"] == response()["created_at"]
    assert (event["response"]["status"], event["response"]["model"]) == ("failed", "m")
    assert event["response"]["error"] == {"code": "stream_interrupted", "message": "It broke."}
    assert event["error"]["message"] == "It broke."


def test_the_farewell_of_a_response_that_never_began() -> None:
    ((_, event),) = read_named(farewell(Operation.RESPONSES, BROKEN, None, OWN))
    assert event["sequence_number"] == 0
    assert event["response"]["id"] == f"resp_{OWN.decode()}"


def test_the_number_of_a_farewell_is_not_read_from_texts() -> None:
    into = relay(Operation.RESPONSES)
    for event in response_events('"sequence_number":99,', end=None):
        into.feed(event)
    assert into.told.sequence_number == 4
    into.told.last = b'{"sequence_number": x}'
    assert into.told.sequence_number == 0


def test_the_farewell_of_a_message() -> None:
    assert read_named(farewell(Operation.MESSAGES, BROKEN, relay(Operation.MESSAGES), OWN)) == [
        ("error", {"type": "error", "error": {"type": "api_error", "message": "It broke."}})
    ]
    ((_, told),) = read_named(farewell(Operation.MESSAGES, ContextLengthExceeded("Too much."), None, OWN))
    assert told["error"] == {"type": "invalid_request_error", "message": "prompt is too long: Too much."}


def test_the_farewell_of_a_chat_is_the_plain_error() -> None:
    assert farewell(Operation.CHAT, BROKEN, None, OWN) == b"data: " + BROKEN.body() + b"\n\n"
