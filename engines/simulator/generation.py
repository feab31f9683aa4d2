"""From an answer to generated tokens: length limit, stop strings, end token ignored."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import cycle, islice

from engines.simulator import tokens
from engines.simulator.markup import Markup, write
from engines.simulator.script import Answer


@dataclass(frozen=True, slots=True)
class Generated:
    """What the engine generated for one choice."""

    pieces: tuple[str, ...]
    """Text of each engine step; joined it is the answer. May hold empty ones."""
    tokens: int
    finish: str
    stop_reason: str | None = None

    @property
    def text(self) -> str:
        """The whole answer."""
        return "".join(self.pieces)


@dataclass(frozen=True, slots=True)
class Limits:
    """What ends a generation before the answer does."""

    tokens: int | None = None
    stops: tuple[str, ...] = ()
    keep_stop: bool = False
    ignore_end: bool = False
    hold_back: bool = False
    """Text is kept back by the longest stop string's length minus one, as vLLM streams it."""


def generate(answer: Answer, markup: Markup, limits: Limits) -> Generated:
    """Generates an answer within its limits."""
    pieces: Sequence[str] = answer.pieces or tokens.pieces(write(answer.segments, markup))
    finish: str = answer.finish
    limit = limits.tokens if answer.limited else None
    if limits.ignore_end and limit is not None and pieces:
        pieces, finish = tuple(islice(cycle(pieces), limit)), "length"
    elif limit is not None and len(pieces) > limit:
        pieces, finish = tuple(pieces[:limit]), "length"
    if limits.stops:
        return _stopped(pieces, finish, limits)
    return Generated(tuple(pieces), len(pieces), finish)


def _stopped(pieces: Sequence[str], finish: str, limits: Limits) -> Generated:
    text = "".join(pieces)
    found = [(text.find(stop), stop) for stop in limits.stops if stop in text]
    stop_reason, used = None, len(pieces)
    if found:
        at, stop_reason = min(found)
        end = at + len(stop_reason)
        used, length = 0, 0
        while length < end:
            length += len(pieces[used])
            used += 1
        text, finish = text[: end if limits.keep_stop else at], "stop"
    held = max(len(stop) for stop in limits.stops) - 1 if limits.hold_back else 0
    return Generated(_recut(pieces[:used], text, held), used, finish, stop_reason)


def _recut(pieces: Sequence[str], text: str, held: int) -> tuple[str, ...]:
    """The same text cut so that each step gives what is certain by then."""
    out: list[str] = []
    seen = given = 0
    for index, piece in enumerate(pieces):
        seen += len(piece)
        upto = len(text) if index == len(pieces) - 1 else min(len(text), max(given, seen - held))
        out.append(text[given:upto])
        given = upto
    return tuple(out)
