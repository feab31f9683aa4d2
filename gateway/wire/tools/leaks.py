"""Tool-call markup in content where none should be: an engine without a parser, or one whose parser let it through."""

import re
from collections.abc import Callable
from typing import Final

from gateway.wire.toolcalls import FORMATS, Delta, Format, Stream, TextDelta, format_named
from gateway.wire.toolcalls.detect import MARKERS, from_text
from gateway.wire.tools.thoughts import Thoughts

_LOOK_AHEAD: Final = 64
"""Characters after a marker that are waited for where several formats share it."""

_SHARED: Final = frozenset(
    word for word in MARKERS.words if sum(word in wire.openers for wire in FORMATS) > 1 and word != "<|python_tag|>"
)
_XML: Final = re.compile(r"<tool_call>\s*<function")
_JSON: Final = re.compile(r"<tool_call>\s*[\[{]")
_KEYS: Final = re.compile(r"<tool_call>\s*[^\s<>{\[]+\s*<arg_key>")


def format_of(text: str, marker: str, known: Format | None) -> Format:
    """The format of markup that begins with this marker; ``known`` is what the model is taken to speak."""
    if _XML.match(text):
        return format_named("qwen3_xml")
    if _KEYS.match(text):
        return known if known is not None and known.name in ("glm45", "glm47") else format_named("glm45")
    if known is not None and marker in known.openers and (_JSON.match(text) is None or not _is_xml(known)):
        return known
    return format_named(from_text(text).format or "hermes")


def _is_xml(wire: Format) -> bool:
    return wire.name in ("qwen3_xml", "glm45", "glm47")


class LeakReader:
    """Passes content on, and reads it from the first marker of a tool call on (`normalise.Reads`).

    Args:
        thoughts: takes reasoning from the content's beginning.
        known: the model's format, if it is known.
        parser: makes the parser for what was found.
        on_leak: told the name of the format that was found.
    """

    __slots__ = ("_held", "_known", "_marker", "_parser", "_read", "_tell", "_thoughts")

    def __init__(
        self,
        thoughts: Thoughts,
        known: Format | None,
        parser: Callable[[Format], Stream],
        on_leak: Callable[[str], None],
    ) -> None:
        self._thoughts = thoughts
        self._known = known
        self._parser = parser
        self._tell = on_leak
        self._held = ""
        self._marker = ""
        self._read: Stream | None = None

    def feed(self, text: str, /) -> list[Delta]:
        """More content."""
        if self._read is not None:
            return self._read.feed(text)
        made: list[Delta] = []
        for delta in self._thoughts.feed(text):
            made.extend(self._look(delta.text) if isinstance(delta, TextDelta) else (delta,))
        return made

    def finish(self, reason: str | None, /) -> list[Delta]:
        """The end: what was held."""
        made: list[Delta] = []
        if self._read is None:
            for delta in self._thoughts.finish(reason):
                made.extend(self._look(delta.text) if isinstance(delta, TextDelta) else (delta,))
        if self._read is None and self._marker:
            made.extend(self._begin())
        if self._read is not None:
            return [*made, *self._read.finish(reason)]
        held, self._held = self._held, ""
        return [*made, TextDelta(held)] if held else made

    def _look(self, text: str) -> list[Delta]:
        if self._read is not None:
            return self._read.feed(text)
        if not self._held and not MARKERS.may_begin_in(text):
            return [TextDelta(text)]
        seen = self._held + text
        made: list[Delta] = []
        if not self._marker:
            at, self._marker = MARKERS.find(seen, 0)
            end = at if self._marker else MARKERS.hold(seen, 0)
            if end:
                made.append(TextDelta(seen[:end]))
            seen = seen[end:]
        self._held = seen
        if self._marker and (self._marker not in _SHARED or len(seen) - len(self._marker) >= _LOOK_AHEAD):
            made.extend(self._begin())
        return made

    def _begin(self) -> list[Delta]:
        held, self._held = self._held, ""
        wire = format_of(held, self._marker, self._known)
        self._tell(wire.name)
        self._read = self._parser(wire)
        return self._read.feed(held)
