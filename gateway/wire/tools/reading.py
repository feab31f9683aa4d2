"""How the answer to a request with tools is read, and the stage that does it."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum, auto
from typing import Any

from gateway.wire.shape.event import Event, choices_of
from gateway.wire.shape.stage import Ahead, Stage
from gateway.wire.toolcalls import Format, Stream
from gateway.wire.toolcalls.detect import Sniffer
from gateway.wire.toolcalls.normalise import Normaliser, Reads, normalise_message
from gateway.wire.toolcalls.quirks import Quirk
from gateway.wire.tools.ahead import ReadAhead, ahead_of
from gateway.wire.tools.ask import Ask
from gateway.wire.tools.choices import number_of, speaks, split_event, thinks
from gateway.wire.tools.leaks import LeakReader
from gateway.wire.tools.legacy import LegacyWords
from gateway.wire.tools.thinking import Thinking
from gateway.wire.tools.thoughts import OFF, ReasoningRule, Thoughts

OnLeak = Callable[[str], None]
"""Told the format of markup that should not have been in the content, once per answer."""


class Content(Enum):
    """What is read out of content."""

    NOTHING = auto()
    MARKUP = auto()
    """Calls from the first marker on, whatever the format."""
    FORMAT = auto()
    """Calls in the model's format; as `MARKUP` if that is not known."""


@dataclass(frozen=True, slots=True)
class Reading:
    """How an answer is read.

    Args:
        ask: what the request wanted.
        content: what is read out of content.
        known: the model's format.
        quirks: what the engine's parser is known for.
        union: the name of the tool that stood for all.
        watch: markup in the content is told, and stays there.
        calls: the engine's calls are put right.
    """

    ask: Ask
    content: Content = Content.NOTHING
    known: Format | None = None
    quirks: frozenset[Quirk] = frozenset()
    union: str = ""
    watch: bool = False
    calls: bool = True

    def stage(self, rule: ReasoningRule, choices: int, on_leak: OnLeak, seed: str = "") -> Stage:
        """The stage for an answer of so many choices. ``rule``: with `opened` as it is for this request.

        ``seed``: what makes the ids of this answer's calls unlike those of any other answer.
        """
        if not self.calls:
            return Thinking(rule, self.known, choices, on_leak if self.watch else None)
        return Calls(self, rule, on_leak, seed)

    @property
    def only_reads(self) -> bool:
        """Whether what becomes of content depends on nothing but who reads it."""
        return not self.watch and Quirk.REPEATS_CONTENT not in self.quirks

    def reader(self, rule: ReasoningRule, on_leak: OnLeak, seed: str, *, thinks: bool) -> Reads:
        """Who reads the content of one choice. ``thinks``: the engine gives reasoning by itself."""
        opened = rule.opened and not thinks
        wire = _GUIDED if self.union or (self.known is None and self.ask.choice.forced) else self.known
        if self.content is Content.FORMAT and wire is not None:
            return self._parser(wire, rule, seed, opened=opened)
        thoughts = Thoughts(() if thinks else rule.pairs(self.known), opened=opened)
        if self.content is Content.NOTHING:
            return thoughts

        def parser(wire: Format) -> Stream:
            return self._parser(wire, ReasoningRule(OFF), seed)

        return LeakReader(thoughts, self.known, parser, _unheard if self.content is Content.FORMAT else on_leak)

    def _parser(self, wire: Format | str, rule: ReasoningRule, seed: str, *, opened: bool = False) -> Stream:
        ask = self.ask
        return Stream(
            wire,
            tools=ask.tools,
            tool_choice=ask.choice,
            reasoning=rule.format,
            starts_in_reasoning=opened,
            parallel=ask.parallel,
            id_seed=seed,
            used_ids=ask.used_ids,
        )


_GUIDED = "guided"


def _unheard(_found: str) -> None:
    """Markup in text that was asked for is no leak."""


class _Choice:
    """What one choice of a streamed answer is read with; made at its first event that says something."""

    __slots__ = ("ahead", "normaliser", "sniffer")

    def __init__(self, normaliser: Normaliser, ahead: ReadAhead, sniffer: Sniffer | None) -> None:
        self.normaliser = normaliser
        self.ahead = ahead
        self.sniffer = sniffer


class Calls(Stage):
    """Calls as OpenAI's clients expect them, whoever found them. One per answer."""

    reads_text = True
    __slots__ = ("_choices", "_last", "_legacy", "_on_leak", "_reading", "_rule", "_seed", "_told")

    def __init__(self, reading: Reading, rule: ReasoningRule, on_leak: OnLeak, seed: str = "") -> None:
        self._reading = reading
        self._seed = seed
        self._rule = rule
        self._on_leak = on_leak
        self._told = False
        self._choices: dict[int, _Choice] = {}
        self._legacy = LegacyWords() if reading.ask.legacy else None
        self._last: tuple[Mapping[str, Any], Sequence[Mapping[str, Any]]] | None = None

    @property
    def ahead(self) -> Ahead | None:
        """With one choice, and nothing else to do with its text than to read it."""
        reading = self._reading
        if self._last is None or len(self._choices) != 1 or reading.union or reading.ask.legacy:
            return None
        choice, made = self._last
        if len(made) != 1:
            return None
        (state,) = self._choices.values()
        return ahead_of(choice, made[0], state.normaliser, state.ahead if reading.only_reads else None)

    def take(self, event: Event) -> Sequence[Event] | None:
        """The event's choices read, each part an event of its own."""
        given = choices_of(event)
        made: list[Mapping[str, Any]] = []
        changed = False
        for choice in given:
            found = self._feed(choice)
            changed = changed or len(found) != 1 or found[0] is not choice
            made.extend(found)
        self._last = (given[0], made) if len(given) == 1 else None
        if not changed:
            return None
        return split_event(event, made)

    def concerns_whole(self, data: bytes) -> bool:
        """Any answer."""
        del data
        return True

    def whole(self, answer: Event) -> bool:
        """The choices' messages."""
        given = choices_of(answer)
        read = [self._read(choice) for choice in given]
        if all(new is old for new, old in zip(read, given, strict=True)):
            return False
        answer["choices"] = read
        return True

    # ---- one choice

    def _feed(self, choice: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
        delta = choice.get("delta")
        if not isinstance(delta, Mapping):
            return [choice]
        if self._reading.union and (said := _unwrapped(delta)) is not None:
            choice, delta = {**choice, "delta": said}, said
        index = number_of(choice)
        state = self._choices.get(index)
        if state is None:
            if not speaks(choice, delta):
                return [choice]
            state = self._choices[index] = self._begin(delta, index)
        if state.sniffer is not None and isinstance(text := delta.get("content"), str):
            self._sniff(state.sniffer, text)
        found: Sequence[Mapping[str, Any]] = state.normaliser.feed(choice)
        if self._legacy is not None:
            found = [self._legacy.delta(one) for one in found]
        return found

    def _begin(self, delta: Mapping[str, Any], index: int) -> _Choice:
        reading = self._reading
        ahead = ReadAhead(self._reader(delta, index))
        normaliser = Normaliser(
            quirks=reading.quirks,
            tool_choice=reading.ask.choice,
            parallel=reading.ask.parallel,
            reasoning=self._rule.field.value,
            content=ahead,
            id_seed=f"{self._seed}/{index}",
        )
        return _Choice(normaliser, ahead, Sniffer() if reading.watch else None)

    def _reader(self, says: Mapping[str, Any], index: int) -> Reads:
        return self._reading.reader(self._rule, self._leaked, f"{self._seed}/{index}", thinks=thinks(says))

    def _read(self, choice: dict[str, Any]) -> Mapping[str, Any]:
        message = choice.get("message")
        if not isinstance(message, Mapping):
            return choice
        new: Mapping[str, Any] = choice
        if self._reading.union and (said := _unwrapped(message)) is not None:
            new = {**choice, "message": {**message, "tool_calls": None, **said}}
        if self._reading.watch and isinstance(text := message.get("content"), str):
            self._sniff(Sniffer(), text)
        new = normalise_message(
            new,
            tool_choice=self._reading.ask.choice,
            parallel=self._reading.ask.parallel,
            reasoning=self._rule.field.value,
            content=self._reader(message, number_of(choice)),
            id_seed=f"{self._seed}/{number_of(choice)}",
        )
        return new if self._legacy is None else self._legacy.message(new)

    # ---- leaks

    def _sniff(self, sniffer: Sniffer, text: str) -> None:
        if sniffer.feed(text):
            self._leaked(sniffer.finding.format)

    def _leaked(self, found: str) -> None:
        if not self._told:
            self._told = True
            self._on_leak(found)


def _unwrapped(says: Mapping[str, Any]) -> dict[str, Any] | None:
    """The arguments of the tool that stood for all, as content; None if there are none."""
    calls = says.get("tool_calls")
    if not calls:
        return None
    texts = [call.get("function", {}).get("arguments") or "" for call in calls if isinstance(call, Mapping)]
    rest = {name: value for name, value in says.items() if name not in ("tool_calls", "content")}
    return {**rest, "content": "".join(texts)}
