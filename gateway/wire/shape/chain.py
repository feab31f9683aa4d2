"""Stages one after the other."""

from collections.abc import Sequence

import msgspec

from gateway.wire.shape.event import Event, read_event
from gateway.wire.shape.stage import Stage


class Chain:
    """The stages of one stream or one whole answer, in their order."""

    __slots__ = ("_stages", "reads_text")

    def __init__(self, stages: Sequence[Stage]) -> None:
        self._stages = tuple(stages)
        self.reads_text = any(stage.reads_text for stage in stages)

    def after(self, stage: Stage) -> "Chain":
        """These stages, behind one more."""
        return Chain((stage, *self._stages))

    def concerns(self, data: bytes) -> bool:
        """Whether any of these events may have to change (`Stage.concerns`)."""
        for stage in self._stages:  # noqa: SIM110 - any() over a generator takes twice as long
            if stage.concerns(data):
                return True
        return False

    def take(self, event: Event) -> Sequence[Event] | None:
        """What to send in place of an event; None if it is right as it is."""
        events: Sequence[Event] = (event,)
        changed = False
        for stage in self._stages:
            made: list[Event] = []
            for one in events:
                new = stage.take(one)
                if new is None:
                    made.append(one)
                else:
                    changed = True
                    made.extend(new)
            if not made:
                return made
            events = made
        return events if changed else None

    def end(self) -> Sequence[Event]:
        """What the stages held back; each stage's rest passes those after it."""
        events: list[Event] = []
        for stage in self._stages:
            made: list[Event] = []
            for one in events:
                new = stage.take(one)
                made.extend((one,) if new is None else new)
            made.extend(stage.end())
            events = made
        return events

    def whole(self, body: bytes) -> Event | None:
        """A whole answer put right; None if it is right as it is, or no answer that stages know."""
        concerned = [stage for stage in self._stages if stage.concerns_whole(body)]
        if not concerned:
            return None
        try:
            answer = read_event(body)
        except (msgspec.DecodeError, RecursionError):
            return None
        changed = [stage.whole(answer) for stage in concerned]
        return answer if any(changed) else None
