"""The calls of one streamed choice as an engine numbers and cuts them, made into OpenAI's deltas."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

from gateway.wire.toolcalls.jsonscan import JsonScanner
from gateway.wire.toolcalls.jsontext import as_value, dumps
from gateway.wire.toolcalls.quirks import Quirk

Entry: TypeAlias = dict[str, Any]

_TRIES: Final = 256


def head(index: int, call_id: str, name: str) -> Entry:
    """The first delta of a call."""
    return {"index": index, "id": call_id, "type": "function", "function": {"name": name, "arguments": ""}}


def fragment(index: int, text: str) -> Entry:
    """A later delta of a call."""
    return {"index": index, "function": {"arguments": text}}


@dataclass(slots=True)
class _Call:
    """One call of the engine.

    Args:
        index: ours; -1 as long as its name is not known.
        held: arguments that wait for a name, or to be whole.
        plain: the arguments are an object and go out as they come.
    """

    index: int = -1
    id: str = ""
    name: str = ""
    held: list[str] = field(default_factory=list)
    plain: bool = False
    closed: bool = False
    dropped: bool = False
    scanner: JsonScanner = field(default_factory=lambda: JsonScanner(_nowhere, _nowhere))


def _nowhere(_text: str) -> None:
    """Takes text that nobody wants: scanners here only watch."""


class EngineCalls:
    """Puts the calls of one choice right.

    Args:
        quirks: what the engine is known for.
        count: told the name of each repair.
        parallel: False keeps the first call only.
        close_missing_braces: an object that lacks only closing brackets at a natural stop is closed.
        new_id: makes ids for calls that have none.
    """

    def __init__(
        self,
        quirks: frozenset[Quirk],
        count: Callable[[str], None],
        *,
        parallel: bool,
        close_missing_braces: bool,
        new_id: Callable[[], str],
    ) -> None:
        self.count = 0
        self._tell = count
        self._parallel = parallel
        self._close = close_missing_braces
        self._new_id = new_id
        self._resends = Quirk.RESENDS_ARGUMENTS in quirks
        self._whole = self._resends or Quirk.RESTARTS_ARGUMENTS in quirks
        self._by_index: dict[int, _Call] = {}
        self._last: _Call | None = None
        self._ids: set[str] = set()
        self._finished_calls: list[tuple[str, str]] = []

    def adopt(self) -> int:
        """Takes the next index for a call that comes from elsewhere."""
        self.count += 1
        return self.count - 1

    def feed(self, entries: Iterable[Mapping[str, Any]]) -> list[list[Entry]] | None:
        """Takes the `tool_calls` of a delta.

        Returns:
            Groups of entries, one group per delta to give out; None if they are right as they are.
        """
        made: list[Entry] = []
        same = True
        seen = 0
        for entry in entries:
            out = self._entry(entry)
            seen += 1
            same = same and len(out) == 1 and out[0] == entry
            made.extend(out)
        if not seen or (same and seen == 1):
            return None
        return [[entry] for entry in made]

    def finish(self, *, stopped: bool) -> list[list[Entry]]:
        """The engine said why it ended; `stopped`: of itself. What was held back comes out."""
        made: list[Entry] = []
        for call in self._by_index.values():
            made.extend(self._end(call, stopped=stopped))
        return [[entry] for entry in made]

    def _entry(self, entry: Mapping[str, Any]) -> list[Entry]:
        function: Mapping[str, Any] = entry.get("function") or {}
        call, made = self._call(entry, function.get("name"))
        arguments = function.get("arguments")
        if isinstance(arguments, dict):
            arguments = dumps(arguments)
        name = function.get("name")
        if name and not call.name:
            made.extend(self._begin(call, entry, str(name)))
        elif name or (entry.get("id") and call.index >= 0):
            self._tell("repeated_name")
        if isinstance(arguments, str) and arguments:
            made.extend(self._arguments(call, arguments))
        return made

    def _call(self, entry: Mapping[str, Any], name: object) -> tuple[_Call, list[Entry]]:
        """The call that an entry belongs to, and what its beginning ends."""
        at = entry.get("index")
        if not isinstance(at, int):
            at = 0
        call = self._by_index.get(at)
        made: list[Entry] = []
        if call is not None and call.name and self._is_another(call, entry, name):
            self._tell("shared_index")
            made.extend(self._end(call, stopped=True))
            call = None
        if call is None:
            if self._last is not None and self._last.name and not self._last.closed:
                made.extend(self._end(self._last, stopped=True))
            call = self._by_index[at] = _Call()
        self._last = call
        return call, made

    def _is_another(self, call: _Call, entry: Mapping[str, Any], name: object) -> bool:
        """Whether an entry under the index of a call begins another one."""
        if not name:
            return False
        new_id = entry.get("id")
        return name != call.name or bool(new_id and call.id and new_id != call.id and call.scanner.done)

    def _begin(self, call: _Call, entry: Mapping[str, Any], name: str) -> list[Entry]:
        call.name = name
        if not self._parallel and self.count:
            call.dropped = True
            self._tell("second_call_dropped")
            return []
        own = entry.get("id")
        call.id = own if isinstance(own, str) and own and own not in self._ids else ""
        if self._resends and self._finished_calls and self._finished_calls[-1][0] == name:
            return []
        return self._announce(call)

    def _announce(self, call: _Call) -> list[Entry]:
        if not call.id:
            self._tell("missing_id")
            call.id = self._new_id()
        self._ids.add(call.id)
        call.index = self.adopt()
        held, call.held = call.held, []
        made = [head(call.index, call.id, call.name)]
        for text in held:
            made.extend(self._arguments(call, text))
        return made

    def _arguments(self, call: _Call, text: str) -> list[Entry]:
        """More arguments: as they come, held until they are whole, or dropped after their end."""
        if call.dropped or call.closed:
            return []
        if not call.name or self._whole or call.index < 0:
            call.held.append(text)
            return []
        if not call.plain:
            so_far = "".join((*call.held, text)).lstrip()
            if so_far[:1] != "{":
                call.held.append(text)
                return []
            text = "".join((*call.held, text))
            call.held.clear()
            call.plain = True
        if call.scanner.done:
            if text.strip():
                self._tell("text_after_arguments")
            return []
        end = len(text) if call.scanner.bad else call.scanner.feed(text, 0)
        if call.scanner.bad:
            end = len(text)
        if text[end:].strip():
            self._tell("text_after_arguments")
        return [fragment(call.index, text[:end])]

    def _end(self, call: _Call, *, stopped: bool) -> list[Entry]:
        if call.closed or call.dropped:
            return []
        call.closed = True
        if not call.name:
            self._tell("nameless_call")
            return []
        made: list[Entry] = []
        if call.plain:
            missing = call.scanner.missing() if stopped and not call.scanner.done else ""
            if missing:
                self._tell("missing_brace")
            if missing and self._close:
                made.append(fragment(call.index, missing))
            return made
        text = self._settled("".join(call.held), stopped=stopped)
        if call.index < 0:
            if not text or (call.name, text) == self._finished_calls[-1] or text == "{}":
                self._tell("resent_call")
                return []
            call.held.clear()
            made.extend(self._announce(call))
        self._finished_calls.append((call.name, text))
        if text:
            made.append(fragment(call.index, text))
        return made

    def _settled(self, text: str, *, stopped: bool) -> str:
        """Arguments that were held: one object, where they stand for one."""
        bare = text.strip()
        if not bare:
            if stopped:
                self._tell("empty_arguments")
            return "{}" if stopped else ""
        if found := _object(bare):
            if found != text:
                self._tell("odd_arguments")
            return found
        if self._whole and (found := _last_object(bare)):
            self._tell("resent_arguments")
            return found
        return text


def _object(text: str) -> str:
    """JSON text of the object that `text` is, or stands for; empty if it is none."""
    if text in ("null", "[]"):
        return "{}"
    try:
        value = as_value(text)
        if isinstance(value, str):
            text = value.strip() or "{}"
            value = as_value(text)
    except ValueError:
        return ""
    return text if isinstance(value, dict) else ""


def _last_object(text: str) -> str:
    """The last whole object in a text that repeats one: it begins with `{` and ends with the text."""
    start = len(text)
    for _ in range(_TRIES):
        start = text.rfind("{", 0, start)
        if start < 0:
            break
        if (start == 0 or _starts_alike(text, start)) and (found := _object(text[start:])):
            return found
    return _first_objects(text)


def _starts_alike(text: str, start: int) -> bool:
    """Whether the text from `start` begins as the whole text does, up to its first key."""
    key = text.find(":")
    return key > 0 and text[start : start + key].split('"')[1:2] == text[:key].split('"')[1:2]


def _first_objects(text: str) -> str:
    """The last of several objects that follow one another."""
    found = ""
    pos = 0
    while pos < len(text):
        scanner = JsonScanner(_nowhere, _nowhere)
        end = scanner.feed(text, pos)
        if not scanner.done:
            break
        if piece := _object(text[pos:end].strip()):
            found = piece
        pos = end
    return found
