"""Frames survive any cut of the stream."""

from hypothesis import given
from hypothesis import strategies as st

from gateway.supervisor.frames import Frame, FrameReader, Kind

FRAMES = st.builds(Frame, st.sampled_from(Kind), st.integers(0, 2**64 - 1), st.binary(max_size=300))


@given(st.lists(FRAMES, max_size=8), st.data())
def test_frames_come_out_as_they_went_in_however_the_bytes_are_cut(frames: list[Frame], data: st.DataObject) -> None:
    stream = b"".join(frame.encode() for frame in frames)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(stream)), max_size=6)))
    reader = FrameReader()
    found: list[Frame] = []
    for start, end in zip([0, *cuts], [*cuts, len(stream)], strict=True):
        found += reader.feed(stream[start:end])

    assert found == frames


@given(FRAMES, FRAMES)
def test_a_frame_that_was_not_ended_is_no_frame(first: Frame, cut: Frame) -> None:
    reader = FrameReader()

    assert list(reader.feed(first.encode() + cut.encode()[:-1])) == [first]
