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

    __slots__ = ("event_stages", "every", "readers", "rest", "signs", "stages", "whole_stages")

    def __init__(self, stages: Sequence[Stage]) -> None:
        self.rest: Chain | None = None
        self.stages = tuple(stages)
        self.every = any(stage.signs is None for stage in stages)
        self.signs = () if self.every else _shortest(sign for stage in stages for sign in stage.signs or ())
        self.event_stages = tuple(stage for stage in stages if type(stage).take is not Stage.take)
        self.whole_stages = tuple(stage for stage in stages if type(stage).whole is not Stage.whole)
        self.readers = tuple(stage for stage in stages if stage.reads_text)

    @property
    def reads_text(self) -> bool:
        """Whether what becomes of an event depends on the text of the answer (`Stage.reads_text`)."""
        return bool(self.readers)

    def after(self, stage: Stage) -> "Chain":
        """These stages, behind one more. Little work: it is done for nearly every stream."""
        made = Chain.__new__(Chain)
        made.rest = self
        made.stages = (stage, *self.stages)
        made.every = self.every or stage.signs is None
        made.signs = self.signs if stage.signs is None else (*self.signs, *stage.signs)
        made.event_stages = (stage, *self.event_stages)
        made.whole_stages = self.whole_stages if type(stage).whole is Stage.whole else (stage, *self.whole_stages)
        made.readers = (stage, *self.readers) if stage.reads_text else self.readers
        return made

    def _without(self, stage: Stage) -> None:
        """Goes on without a stage."""
        rest = self.rest
        if rest is None or self.stages[0] is not stage:
            rest = Chain([one for one in self.stages if one is not stage])
        self.rest = rest.rest
        self.stages, self.every, self.signs = rest.stages, rest.every, rest.signs
        self.event_stages, self.whole_stages, self.readers = rest.event_stages, rest.whole_stages, rest.readers

    def concerns(self, data: bytes) -> bool:
        """Whether any of these events may have to change (`Stage.signs`)."""
        if self.every:
            return True
        for sign in self.signs:  # noqa: SIM110 - any() over a generator takes twice as long
            if sign in data:
                return True
        return False

    def take(self, event: Event) -> Sequence[Event] | None:
        """What to send in place of an event; None if it is right as it is."""
        events: Sequence[Event] = (event,)
        changed = False
        for stage in self.event_stages:
            if len(events) == 1:
                new = stage.take(events[0])
                if new is None:
                    continue
                changed = True
                events = new
            else:
                made: list[Event] = []
                for one in events:
                    new = stage.take(one)
                    if new is None:
                        made.append(one)
                    else:
                        changed = True
                        made.extend(new)
                events = made
            if not events:
                break
        for stage in self.readers:
            if stage.over:
                self._without(stage)
        return events if changed else None

    def end(self) -> Sequence[Event]:
        """What the stages held back; each stage's rest passes those after it."""
        events: list[Event] = []
        for stage in self.stages:
            made: list[Event] = []
            for one in events:
                new = stage.take(one)
                made.extend((one,) if new is None else new)
            made.extend(stage.end())
            events = made
        return events

    def whole(self, body: bytes) -> Event | None:
        """A whole answer put right; None if it is right as it is, or no answer that stages know."""
        concerned = [stage for stage in self.whole_stages if stage.concerns_whole(body)]
        if not concerned:
            return None
        try:
            answer = read_event(body)
        except (msgspec.DecodeError, RecursionError):
            return None
        changed = [stage.whole(answer) for stage in concerned]
        return answer if any(changed) else None
