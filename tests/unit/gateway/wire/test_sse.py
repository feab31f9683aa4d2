"""Events are cut from a stream the same way wherever the packets end."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.wire.sse import DONE, EventCutter, event_data, with_data, without_noise
from tests.unit.gateway.wire.strategies import cuts, line_ends

lines = st.sampled_from(
    [
        b"data: a",
        b"data:b",
        b"data",
        b"data:",
        b"data:  c",
        b": ping",
        b":",
        b"id: 1",
        b"event: x",
        b"retry: 5",
        b"\xe5\x8c\x97",
    ]
)


@st.composite
def streams(draw: st.DrawFn) -> list[bytes]:
    """Events, each with its blank line, in one kind of line end per event."""
    events = []
    for _ in range(draw(st.integers(0, 4))):
        end = draw(line_ends)
        events.append(b"".join(line + end for line in draw(st.lists(lines, min_size=1, max_size=3))) + end)
    return events


@given(st.data(), streams())
def test_every_split_gives_the_same_events(data: st.DataObject, events: list[bytes]) -> None:
    stream = b"".join(events)
    whole, split = EventCutter(), EventCutter()
    expected = whole.feed(stream)
    found = [event for part in data.draw(cuts(stream)) for event in split.feed(part)]

    assert found == expected
    assert split.rest() == whole.rest()


@given(st.data(), st.binary(max_size=60) | st.text(alphabet="\r\nd:a ", max_size=30).map(str.encode))
def test_any_bytes_are_neither_lost_nor_made_up(data: st.DataObject, stream: bytes) -> None:
    cutter = EventCutter()
    found = [event for part in data.draw(cuts(stream)) for event in cutter.feed(part)]

    assert b"".join(found) + cutter.rest() == stream.removeprefix(b"\xef\xbb\xbf")
    assert cutter.empty


@given(st.data(), st.text(alphabet="\r\nd", max_size=30).map(str.encode))
def test_any_line_ends_split_anywhere_give_the_same_events(data: st.DataObject, stream: bytes) -> None:
    whole, split = EventCutter(), EventCutter()
    expected = [*whole.feed(stream), whole.rest()]
    found = [event for part in data.draw(cuts(stream)) for event in split.feed(part)]

    assert [*found, split.rest()] == expected


@given(streams())
def test_each_event_is_one(events: list[bytes]) -> None:
    cutter = EventCutter()
    found = cutter.feed(b"".join(events))
    rest = cutter.rest()

    # The last event of bare CRs waits for an LF that may belong to it.
    assert found + ([rest] if rest else []) == events


def test_a_byte_order_mark_is_left_out_even_in_pieces() -> None:
    cutter = EventCutter()
    found = [event for byte in b"\xef\xbb\xbfdata: a\n\n" for event in cutter.feed(bytes([byte]))]

    assert found == [b"data: a\n\n"]


def test_an_event_without_end_is_refused_at_the_limit() -> None:
    cutter = EventCutter(limit=100)
    cutter.feed(b"x" * 100)

    with pytest.raises(OverflowError):
        cutter.feed(b"x")


@pytest.mark.parametrize(
    ("event", "data"),
    [
        (b"data: a\n\n", b"a"),
        (b"data:a\n\n", b"a"),
        (b"data:  a\n\n", b" a"),
        (b"data: a\r\n\r\n", b"a"),
        (b"data: a\r\r", b"a"),
        (b"data: a\ndata: b\n\n", b"a\nb"),
        (b"data\n\n", b""),
        (b"data:\n\n", b""),
        (b": ping\n\n", None),
        (b": ping\ndata: a\n\n", b"a"),
        (b"id: 1\nevent: e\ndata: a\nretry: 1\n\n", b"a"),
        (b"id: 1\n\n", None),
        (b"\n\n", None),
        (b"database: a\n\n", None),
        (b"data: a", b"a"),
    ],
)
def test_event_data(event: bytes, data: bytes | None) -> None:
    assert event_data(event) == data


@given(streams())
def test_noise_is_taken_out_and_data_stays(events: list[bytes]) -> None:
    for event in events:
        quiet = without_noise(event)
        assert event_data(quiet) == event_data(event) if quiet else event_data(event) is None
        for line in quiet.splitlines():
            assert line == b"" or line.startswith((b"data", b"event:"))
        assert quiet == b"" or quiet.endswith((b"\n", b"\r"))


def test_noise_free_events_are_the_same_object() -> None:
    event = b'data: {"a":1}\n\n'

    assert without_noise(event) is event


def test_data_becomes_an_event() -> None:
    assert with_data(b"[DONE]") == DONE
