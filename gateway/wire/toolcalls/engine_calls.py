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
        index: ours; -1 as long as it was not given out.
        waiting: arguments that were not given out yet.
        plain: the arguments are an object and go out as they come.
        ended: the engine began another call in its place.
        closed: everything of it was given out.
    """

    index: int = -1
    id: str = ""
    name: str = ""
    waiting: list[str] = field(default_factory=list)
    plain: bool = False
    ended: bool = False
    closed: bool = False
    scanner: JsonScanner = field(default_factory=lambda: JsonScanner(_nowhere, _nowhere))

    @property
    def whole(self) -> bool:
        """Whether its arguments have come to their end, as far as can be told."""
        return self.ended or self.scanner.done or self.scanner.bad

    @property
    def has_arguments(self) -> bool:
        """Whether anything of its arguments came."""
        return self.plain or bool(self.waiting)


def _nowhere(_text: str) -> None:
    """Takes text that nobody wants: scanners here only watch."""


class EngineCalls:
    """Puts the calls of one choice right: one after the other, each with its head once, arguments that are an object.

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
        self._queue: list[_Call] = []
        self._ids: set[str] = set()
        self._given: tuple[str, str] = ("", "")

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
            self._take(entry)
            out = self._advance()
            seen += 1
            same = same and len(out) == 1 and out[0] == entry
            made.extend(out)
        if not seen or (same and seen == 1):
            return None
        return [[entry] for entry in made]

    def more(self, at: int, text: str) -> tuple[int, str] | None:
        """More arguments of the call that the engine numbers `at`, and nothing else.

        Returns:
            Our index of the call and what goes out; None, and nothing is taken, if that call is not the one whose
            arguments go out as they come.
        """
        call = self._by_index.get(at)
        if call is None or self._whole or self._queue != [call] or call.closed or not call.plain or call.waiting:
            return None
        call.waiting.append(text)
        given = self._flushed(call)
        return call.index, given[0]["function"]["arguments"] if given else ""

    def finish(self, *, stopped: bool) -> list[list[Entry]]:
        """The engine said why it ended; `stopped`: of itself. What was held back comes out."""
        made: list[Entry] = []
        for call in self._queue:
            made.extend(self._end(call, stopped=stopped))
        if any(not call.name and call.waiting for call in self._by_index.values()):
            self._tell("nameless_call")
        self._queue.clear()
        return [[entry] for entry in made]

    def _take(self, entry: Mapping[str, Any]) -> None:
        """Notes what an entry says."""
        function: Mapping[str, Any] = entry.get("function") or {}
        name = function.get("name")
        call = self._call(entry, name)
        if name and not call.name:
            call.name = str(name)
            self._queue.append(call)
        elif name or (entry.get("id") and call.index >= 0):
            self._tell("repeated_name")
        own = entry.get("id")
        if not call.id and call.index < 0 and isinstance(own, str):
            call.id = own
        arguments = function.get("arguments")
        if isinstance(arguments, dict):
            arguments = dumps(arguments)
        if isinstance(arguments, str) and arguments and not call.closed:
            call.waiting.append(arguments)

    def _call(self, entry: Mapping[str, Any], name: object) -> _Call:
        """The call that an entry belongs to."""
        at = entry.get("index")
        if not isinstance(at, int):
            at = 0
        call = self._by_index.get(at)
        if call is not None and call.name and _is_another(call, entry, name):
            self._tell("shared_index")
            call.ended = True
            call = None
        if call is None:
            call = self._by_index[at] = _Call()
        return call

    def _advance(self) -> list[Entry]:
        """Gives out what can be: the first open call as it comes, the next one when that is whole."""
        made: list[Entry] = []
        while self._queue:
            call = self._queue[0]
            made.extend(self._announced(call))
            made.extend(self._flushed(call))
            if len(self._queue) == 1 or not self._over(call):
                break
            made.extend(self._end(call, stopped=True))
            self._queue.pop(0)
        return made

    def _over(self, call: _Call) -> bool:
        """Whether nothing more can come for a call that others follow."""
        later = any(other.has_arguments for other in self._queue[1:])
        return call.whole or self._whole or (later and not call.plain)

    def _announced(self, call: _Call) -> list[Entry]:
        """The head of a call, once; not yet for one that may be sent again."""
        if call.index >= 0 or call.closed or (self._resends and call.name == self._given[0]):
            return []
        if not self._parallel and self.count:
            call.closed = True
            call.waiting.clear()
            self._tell("second_call_dropped")
            return []
        if not call.id or call.id in self._ids:
            self._tell("missing_id")
            call.id = self._new_id()
        self._ids.add(call.id)
        call.index = self.adopt()
        return [head(call.index, call.id, call.name)]

    def _flushed(self, call: _Call) -> list[Entry]:
        """Arguments that can go out now."""
        if call.closed or self._whole or not call.waiting or call.index < 0:
            return []
        text = "".join(call.waiting)
        if not call.plain and text.lstrip()[:1] != "{":
            return []
        call.plain = True
        call.waiting.clear()
        end = 0 if call.scanner.done else call.scanner.feed(text, 0)
        if call.scanner.bad:
            end = len(text)
        if text[end:].strip():
            self._tell("text_after_arguments")
        return [fragment(call.index, text[:end])] if end else []

    def _end(self, call: _Call, *, stopped: bool) -> list[Entry]:
        """The rest of a call."""
        made = [*self._announced(call), *self._flushed(call)]
        if call.closed:
            return made
        call.closed = True
        if call.plain:
            missing = call.scanner.missing() if stopped else ""
            if missing:
                self._tell("missing_brace")
            if missing and self._close:
                made.append(fragment(call.index, missing))
            return made
        text = self._settled("".join(call.waiting), stopped=stopped)
        if call.index < 0:
            if text in ("", "{}", self._given[1]):
                self._tell("resent_call")
                return made
            self._given = ("", "")
            call.closed = False
            made.extend(self._announced(call))
            call.closed = True
        self._given = (call.name, text)
        if text and call.index >= 0:
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


def _is_another(call: _Call, entry: Mapping[str, Any], name: object) -> bool:
    """Whether an entry under the index of a call begins another one."""
    if not name:
        return False
    new_id = entry.get("id")
    return name != call.name or bool(new_id and call.id and new_id != call.id and (call.scanner.done or call.closed))


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
