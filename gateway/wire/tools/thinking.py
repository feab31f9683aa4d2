"""The stage for answers without tool calls to read: a leading `<think>…</think>` is reasoning, not content."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from gateway.wire.shape.event import Event, choices_of
from gateway.wire.shape.stage import Stage
from gateway.wire.toolcalls import Format
from gateway.wire.toolcalls.detect import Sniffer
from gateway.wire.toolcalls.normalise import Normaliser, normalise_message
from gateway.wire.tools.choices import number_of, speaks, split_event, thinks
from gateway.wire.tools.thoughts import ReasoningRule, Thoughts


class Thinking(Stage):
    """Takes reasoning from the beginning of the content; then it is out of the way. One per answer.

    Args:
        rule: the model's, with `opened` as it is for this request.
        wire: the model's format, if it is known.
        choices: how many the answer has.
        on_leak: told the format of tool-call markup in the content; None if nobody wants to know.
    """

    reads_text = True
    __slots__ = ("_count", "_on_leak", "_open", "_opened", "_pairs", "_read", "_rule", "_sniffers")

    def __init__(
        self,
        rule: ReasoningRule,
        wire: Format | None = None,
        choices: int = 1,
        on_leak: Callable[[str], None] | None = None,
    ) -> None:
        self._rule = rule
        self._pairs = rule.pairs(wire)
        self._opened = rule.opened and bool(self._pairs)
        self._count = choices
        self._open = bool(self._pairs)
        self._read: dict[int, tuple[Thoughts, Normaliser]] = {}
        self._sniffers: dict[int, Sniffer] = {}
        self._on_leak = on_leak

    @property
    def over(self) -> bool:
        """Every choice has begun with something else, or is through with it."""
        return not self._open and self._on_leak is None

    def take(self, event: Event) -> Sequence[Event] | None:
        """The event with reasoning apart from content."""
        given = choices_of(event)
        made: list[Mapping[str, Any]] = []
        changed = False
        for choice in given:
            found = self._feed(choice)
            changed = changed or len(found) != 1 or found[0] is not choice
            made.extend(found)
        return split_event(event, made) if changed else None

    def concerns_whole(self, data: bytes) -> bool:
        """Answers that hold an opener or a closer, or whose prompt does."""
        if self._opened or self._on_leak is not None:
            return True
        return any(word.encode() in data for pair in self._pairs for word in pair)

    def whole(self, answer: Event) -> bool:
        """The messages' reasoning."""
        changed = False
        for at, choice in enumerate(given := choices_of(answer)):
            message = choice.get("message")
            if not isinstance(message, dict):
                continue
            self._sniff(at, message.get("content"))
            if self._pairs and not thinks(message):
                reader = Thoughts(self._pairs, opened=self._opened)
                new = normalise_message(choice, reasoning=self._rule.field.value, content=reader)
                if new is not choice:
                    given[at] = dict(new)
                    changed = True
        return changed

    def _feed(self, choice: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
        delta = choice.get("delta")
        if not isinstance(delta, Mapping) or not speaks(choice, delta):
            return [choice]
        index = number_of(choice)
        self._sniff(index, delta.get("content"))
        if index not in self._read:
            reader = Thoughts(self._pairs, opened=self._opened)
            self._read[index] = reader, Normaliser(reasoning=self._rule.field.value, content=reader)
        reader, normaliser = self._read[index]
        if thinks(delta) or delta.get("tool_calls"):
            reader.settle()
        if reader.settled:
            found: Sequence[Mapping[str, Any]] = [choice]
        else:
            found = normaliser.feed(choice)
        if reader.settled and len(self._read) >= self._count:
            self._open = any(not each.settled for each, _ in self._read.values())
        return found

    def _sniff(self, index: int, text: object) -> None:
        if self._on_leak is None or not isinstance(text, str):
            return
        sniffer = self._sniffers.setdefault(index, Sniffer())
        if sniffer.feed(text):
            tell, self._on_leak = self._on_leak, None
            tell(sniffer.finding.format)
