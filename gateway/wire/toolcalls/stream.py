"""The parser's two faces: `Stream` for text that arrives in pieces, `parse` for text that is there."""

import re
from collections.abc import Container, Iterable
from typing import Final

from gateway.wire.toolcalls.aliases import format_named, reasoning_named
from gateway.wire.toolcalls.choice import Choice, choice_of
from gateway.wire.toolcalls.deltas import (
    Call,
    CallArguments,
    CallEnd,
    CallStart,
    Delta,
    Finish,
    Parsed,
    ReasoningDelta,
    TextDelta,
)
from gateway.wire.toolcalls.finish import cut, finish_reason
from gateway.wire.toolcalls.harmony import HarmonyMachine
from gateway.wire.toolcalls.ids import CallIds
from gateway.wire.toolcalls.machine import Machine
from gateway.wire.toolcalls.setting import Setting
from gateway.wire.toolcalls.sink import Sink
from gateway.wire.toolcalls.spec import Format
from gateway.wire.toolcalls.tools import Offer

_SURROGATE: Final = re.compile("[\ud800-\udfff]")
_PAIR: Final = re.compile("[\ud800-\udbff][\udc00-\udfff]")


class Stream:
    """One answer, read as it arrives.

    What it says does not depend on where the pieces of text end. It never takes anything back: deltas for a beginning
    of the text are a beginning of the deltas for the whole.

    Args:
        format: a format's name, any engine's name for it, or the format itself.
        tools: the offered tools in OpenAI's form; None if they are not known (any name is taken, arguments are typed
            by what they look like). With an empty list nothing is a call.
        tool_choice: as in the request. `none`: nothing is a call. `required` or a named tool: plain JSON calls are
            taken too, since engines guide the model to them.
        reasoning: `auto` (the format's family, and a leading `<think>` block), `off`, or a family's name.
        starts_in_reasoning: the prompt already opened the reasoning block.
        parallel: False keeps the first call only.
        id_seed: what the ids of calls that bring none are made from. Answers of one conversation need different ones.
        used_ids: ids that the conversation has already. A call that brings one of them gets another.

    Raises:
        UnknownFormatError: no such format or reasoning family.
    """

    __slots__ = ("_choice", "_finished", "_generator", "_half", "_ids", "_machine", "_sink")

    def __init__(
        self,
        format: str | Format,  # noqa: A002 - the public name of the parameter
        *,
        tools: Iterable[object] | None = None,
        tool_choice: object = None,
        reasoning: str | None = "auto",
        starts_in_reasoning: bool = False,
        parallel: bool = True,
        id_seed: str = "",
        used_ids: Container[str] = (),
    ) -> None:
        wire = format_named(format)
        offer = Offer(tools)
        self._choice: Final = choice_of(tool_choice, offer.names)
        self._ids: Final = CallIds(id_seed)
        self._sink = Sink(self._ids, parallel=parallel, used=used_ids)
        setting = _setting(wire, offer, self._choice, reasoning or "auto", starts_in_reasoning=starts_in_reasoning)
        kind = HarmonyMachine if wire.name == "harmony" else Machine
        self._machine = kind(setting, offer, self._sink)
        self._generator = self._machine.run()
        self._half = ""
        self._finished = False
        next(self._generator, None)

    @property
    def repairs(self) -> dict[str, int]:
        """How often each leniency was needed so far."""
        return dict(self._sink.repairs)

    def feed(self, text: str) -> list[Delta]:
        """Takes more text and returns what is certain now."""
        if self._half or not text.isascii():
            text = self._whole_characters(text)
        machine = self._machine
        cursor = machine.cursor
        if (
            machine.plain
            and text
            and cursor.pos >= len(cursor.buf)
            and self._sink.content.plain
            and not machine.words.may_begin_in(text)
        ):
            self._ids.note(text)
            return [TextDelta(text)]
        if not text:
            return []
        cursor.append(text)
        next(self._generator, None)
        return self._sink.drain()

    def finish(self, reason: str | None = "stop") -> list[Delta]:
        """Ends the answer with the engine's finish reason; the last delta is `Finish` with OpenAI's.

        Raises:
            ValueError: it was ended before.
        """
        if self._finished:
            raise ValueError("the stream was finished before")
        self._finished = True
        machine = self._machine
        if self._half:
            machine.cursor.append("\ufffd")
        machine.stop("length" if cut(reason) else "stop")
        for _ in self._generator:
            pass
        deltas = self._sink.finish()
        named = self._choice.mode == "named"
        deltas.append(Finish(finish_reason(reason, calls=self._sink.count, named=named)))
        return deltas

    def _whole_characters(self, text: str) -> str:
        """Joins surrogate halves, over pieces too; lone ones, which no encoding can carry, become U+FFFD."""
        text = self._half + text
        self._half = ""
        if not _SURROGATE.search(text):
            return text
        if "\ud800" <= text[-1] <= "\udbff":
            self._half = text[-1]
            text = text[:-1]
        text = _PAIR.sub(lambda pair: pair.group().encode("utf-16", "surrogatepass").decode("utf-16"), text)
        return _SURROGATE.sub("\ufffd", text)


def _setting(wire: Format, offer: Offer, choice: Choice, reasoning: str, *, starts_in_reasoning: bool) -> Setting:
    calls = choice.mode != "none" and not offer.nothing
    family = None if reasoning == "off" else reasoning_named(wire.reasoning if reasoning == "auto" else reasoning)
    guided = calls and (choice.forced or wire.name == "guided")
    forced = choice.name
    if guided and not forced and len(offer.names) == 1:
        forced = offer.names[0]
    return Setting(wire, family, starts_in_reasoning, calls, guided, forced if guided else "")


def parse(
    text: str | Iterable[str],
    *,
    format: str | Format,  # noqa: A002 - the public name of the parameter
    tools: Iterable[object] | None = None,
    finish_reason: str | None = "stop",
    reasoning: str | None = "auto",
    starts_in_reasoning: bool = False,
    tool_choice: object = None,
    parallel: bool = True,
    id_seed: str = "",
    used_ids: Container[str] = (),
) -> Parsed:
    """Reads a whole answer; `Stream` says what the arguments mean.

    Args:
        text: the model's raw text, at once or in pieces; the result is the same.
        finish_reason: the engine's. With `length`, a call that was cut off stays open: its arguments are as they were
            generated and `Call.complete` is False.

    Raises:
        UnknownFormatError: no such format or reasoning family.
    """
    stream = Stream(
        format,
        tools=tools,
        tool_choice=tool_choice,
        reasoning=reasoning,
        starts_in_reasoning=starts_in_reasoning,
        parallel=parallel,
        id_seed=id_seed,
        used_ids=used_ids,
    )
    deltas: list[Delta] = []
    for piece in (text,) if isinstance(text, str) else text:
        deltas.extend(stream.feed(piece))
    deltas.extend(stream.finish(finish_reason))
    return collect(deltas, stream.repairs)


def collect(deltas: Iterable[Delta], repairs: dict[str, int] | None = None) -> Parsed:
    """Puts the deltas of one answer together."""
    content: list[str] = []
    thoughts: list[str] = []
    begun: list[CallStart] = []
    arguments: dict[int, list[str]] = {}
    complete: set[int] = set()
    reason = "stop"
    for delta in deltas:
        match delta:
            case TextDelta(text):
                content.append(text)
            case ReasoningDelta(text):
                thoughts.append(text)
            case CallStart(index):
                begun.append(delta)
                arguments[index] = []
            case CallArguments(index, text):
                arguments[index].append(text)
            case CallEnd(index, whole):
                if whole:
                    complete.add(index)
            case Finish(reason):
                pass
    calls = tuple(Call(it.id, it.name, "".join(arguments[it.index]), it.index in complete) for it in begun)
    said = "".join(content)
    thought = "".join(thoughts)
    return Parsed(
        said if said or not (calls or thought) else None,
        thought or None,
        calls,
        reason,
        dict(repairs or {}),
    )
