"""Stages one after the other."""

from collections.abc import Iterable, Sequence

import msgspec

from gateway.wire.shape.event import Event, read_event
from gateway.wire.shape.stage import Stage


def _shortest(signs: Iterable[bytes]) -> tuple[bytes, ...]:
    """Those signs that have no other one inside, which would be found wherever they are."""
    distinct = dict.fromkeys(signs)
    return tuple(sign for sign in distinct if not any(other != sign and other in sign for other in distinct))


class Chain:
    """The stages of one stream or one whole answer, in their order."""

    __slots__ = ("_every", "_signs", "_stages", "_whole", "reads_text")

    def __init__(self, stages: Sequence[Stage]) -> None:
        self._set(stages)

    def _set(self, stages: Sequence[Stage]) -> None:
        self._stages = tuple(stages)
        self._every = any(stage.signs is None for stage in stages)
        self._signs = () if self._every else _shortest(sign for stage in stages for sign in stage.signs or ())
        self._whole = tuple(stage for stage in stages if type(stage).whole is not Stage.whole)
        self.reads_text = any(stage.reads_text for stage in stages)

    def after(self, stage: Stage) -> "Chain":
        """These stages, behind one more."""
        return Chain((stage, *self._stages))

    def concerns(self, data: bytes) -> bool:
        """Whether any of these events may have to change (`Stage.signs`)."""
        if self._every:
            return True
        for sign in self._signs:  # noqa: SIM110 - any() over a generator takes twice as long
            if sign in data:
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
            events = made
            if not made:
                break
        if self.reads_text and any(stage.over for stage in self._stages):
            self._set([stage for stage in self._stages if not stage.over])
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
        concerned = [stage for stage in self._whole if stage.concerns_whole(body)]
        if not concerned:
            return None
        try:
            answer = read_event(body)
        except (msgspec.DecodeError, RecursionError):
            return None
        changed = [stage.whole(answer) for stage in concerned]
        return answer if any(changed) else None
