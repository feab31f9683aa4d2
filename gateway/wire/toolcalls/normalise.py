"""Engine-parsed answers made into what OpenAI's clients expect (tool-calls.md sections 2.1 and 2.4).

A choice that is right already comes back as the very same object, so that its bytes can be passed on.
"""

from collections.abc import Iterable, Mapping
from functools import partial
from typing import Any, Final, Literal, Protocol, TypeAlias

from gateway.wire.toolcalls.choice import choice_of
from gateway.wire.toolcalls.deltas import CallArguments, CallEnd, CallStart, Delta, Finish, ReasoningDelta, TextDelta
from gateway.wire.toolcalls.engine_calls import EngineCalls, Entry, fragment, head
from gateway.wire.toolcalls.finish import cut, finish_reason
from gateway.wire.toolcalls.ids import CallIds
from gateway.wire.toolcalls.quirks import Quirk

Choice: TypeAlias = Mapping[str, Any]
ReasoningField: TypeAlias = Literal["both", "reasoning", "reasoning_content", "keep"]

_THOUGHTS: Final = ("reasoning", "reasoning_content")
_SILENT: Final = ("content", "tool_calls", *_THOUGHTS, "refusal", "function_call")
"""Members of a delta that say nothing when they are null or empty."""


class Reads(Protocol):
    """Who finds calls and reasoning in content, as `Stream` does."""

    def feed(self, text: str, /) -> list[Delta]:
        """More content."""

    def finish(self, reason: str | None, /) -> list[Delta]:
        """The end, with the engine's finish reason."""


def _count_in(repairs: dict[str, int], name: str) -> None:
    repairs[name] = repairs.get(name, 0) + 1


class Normaliser:
    """One choice of a streamed answer.

    Args:
        quirks: what its engine is known for.
        tool_choice: as in the request.
        parallel: False keeps the first call only.
        reasoning: the fields that reasoning is given in; `keep` leaves them as the engine named them.
        content: reads calls and reasoning out of the content: the engine does not parse, or its parser leaks.
        close_missing_braces: an object that lacks only closing brackets at a natural stop is closed.
        id_seed: what the ids of calls that have none are made from. Answers of one conversation need different ones.

    `repairs` counts what was put right.
    """

    def __init__(
        self,
        *,
        quirks: frozenset[Quirk] = frozenset(),
        tool_choice: object = None,
        parallel: bool = True,
        reasoning: ReasoningField = "keep",
        content: Reads | None = None,
        close_missing_braces: bool = False,
        id_seed: str = "",
    ) -> None:
        self.repairs: Final[dict[str, int]] = {}
        # No method of this object: it and what counts for it would wait for the garbage collector, with every stream.
        self._count = partial(_count_in, self.repairs)
        self._named = choice_of(tool_choice).mode == "named"
        self._reasoning = reasoning
        self._parser = content
        self._repeats = Quirk.REPEATS_CONTENT in quirks
        self._said = ""
        self._calls = EngineCalls(
            quirks,
            self._count,
            parallel=parallel,
            close_missing_braces=close_missing_braces,
            new_id=CallIds(f"{id_seed}/engine"),
        )
        self._parsed: dict[int, int] = {}
        self._finished = False

    @property
    def calls(self) -> int:
        """How many calls were given out."""
        return self._calls.count

    def feed(self, choice: Choice) -> list[Choice]:
        """Takes one choice of a chunk and returns what the client gets: nothing, the same object, or several."""
        delta: Mapping[str, Any] = choice.get("delta") or {}
        reason = choice.get("finish_reason")
        if reason is None and len(delta) == 1 and "content" in delta and self._parser is not None:
            if (content := self._content(delta)) is None:
                return [choice]
            return _chunks(choice, delta, content or ([{}] if carries_more(choice) else []), None)
        if reason is None and delta.get("tool_calls") is None and self._passes(delta):
            return [choice]
        parts = self._parts(delta)
        if reason is not None and not self._finished:
            self._finished = True
            return self._finish(choice, delta, parts, reason)
        if parts is None or (not parts and carries_more(choice) and not _says_something(delta)):
            return [choice]
        return _chunks(choice, delta, parts or ([{}] if carries_more(choice) else []), None)

    def more_arguments(self, at: int, text: str) -> tuple[int, str] | None:
        """As `EngineCalls.more`: for a choice that has arguments of one call and nothing else."""
        return self._calls.more(at, text)

    def _passes(self, delta: Mapping[str, Any]) -> bool:
        """Whether this delta is plain content of an answer that needs no reading."""
        if self._parser is not None or self._repeats or not delta.get("content"):
            return False
        return self._reasoning == "keep" or not any(delta.get(name) for name in _THOUGHTS)

    def _parts(self, delta: Mapping[str, Any]) -> list[dict[str, Any]] | None:
        """The deltas to give out for this one; None if it is right as it is."""
        thoughts = self._thoughts(delta)
        content = self._content(delta)
        calls = self._calls.feed(delta.get("tool_calls") or ())
        if thoughts is None and content is None and calls is None:
            return None if _says_something(delta) else []
        parts: list[dict[str, Any]] = []
        if thoughts is None:
            thoughts = [{name: delta[name] for name in _THOUGHTS if delta.get(name)}]
        if content is None:
            content = [{"content": delta["content"]}] if delta.get("content") else []
        if calls is None:
            calls = [[entry] for entry in delta.get("tool_calls") or ()]
        parts.extend(part for part in thoughts if part)
        parts.extend(content)
        parts.extend({"tool_calls": entries} for entries in calls)
        return parts

    def _thoughts(self, delta: Mapping[str, Any]) -> list[dict[str, Any]] | None:
        text = next((delta[name] for name in _THOUGHTS if delta.get(name)), None)
        if self._reasoning == "keep" or text is None:
            return None
        wanted = self._thought(text)
        return None if wanted == {name: delta[name] for name in _THOUGHTS if delta.get(name)} else [wanted]

    def _thought(self, text: str) -> dict[str, Any]:
        names = ("reasoning_content", "reasoning") if self._reasoning in ("both", "keep") else (self._reasoning,)
        return dict.fromkeys(names, text)

    def _content(self, delta: Mapping[str, Any]) -> list[dict[str, Any]] | None:
        text = delta.get("content")
        if not isinstance(text, str) or not text:
            return None
        if self._repeats:
            begun = self._calls.count or delta.get("tool_calls")
            if begun and self._said and text.strip() == self._said.strip():
                self._count("repeated_content")
                return []
            self._said += text
        return None if self._parser is None else self._read(self._parser.feed(text), text)

    def _read(self, deltas: Iterable[Delta], text: str | None) -> list[dict[str, Any]] | None:
        """What a parser found, as OpenAI's deltas; None if it is the text itself."""
        found = list(deltas)
        if len(found) == 1 and isinstance(same := found[0], TextDelta) and same.text == text:
            return None
        return [part for delta in found if (part := self._part(delta))]

    def _part(self, delta: Delta) -> dict[str, Any]:
        match delta:
            case TextDelta(text):
                return {"content": text}
            case ReasoningDelta(text):
                return self._thought(text)
            case CallStart(index, call_id, name):
                self._parsed[index] = self._calls.adopt()
                return {"tool_calls": [head(self._parsed[index], call_id, name)]}
            case CallArguments(index, text):
                return {"tool_calls": [fragment(self._parsed[index], text)]}
            case CallEnd() | Finish():
                return {}

    def _finish(
        self, choice: Choice, delta: Mapping[str, Any], parts: list[dict[str, Any]] | None, reason: str
    ) -> list[Choice]:
        more: list[dict[str, Any]] = [
            {"tool_calls": entries} for entries in self._calls.finish(stopped=not cut(reason))
        ]
        if self._parser is not None:
            more = [*(self._read(self._parser.finish(reason), None) or ()), *more]
        wanted = finish_reason(reason, calls=self._calls.count, named=self._named)
        if wanted != reason:
            self._count("finish_reason")
        elif not more and not parts and (parts is None or not delta.get("tool_calls")):
            return [choice]
        if parts is None:
            parts = [{name: delta[name] for name in _SILENT if delta.get(name)}] if _says_something(delta) else []
        return _chunks(choice, delta, [*(part for part in parts if part), *more], wanted)


def _says_something(delta: Mapping[str, Any]) -> bool:
    """Whether a delta carries anything at all; a role counts."""
    return any(value not in (None, "", []) for value in delta.values())


def carries_more(choice: Choice) -> bool:
    """Whether a choice says something beside its delta: log probabilities, token ids."""
    return any(value is not None for name, value in choice.items() if name not in ("index", "delta", "finish_reason"))


def _chunks(choice: Choice, delta: Mapping[str, Any], parts: list[dict[str, Any]], reason: str | None) -> list[Choice]:
    """One choice per part; members beside the delta go with the first, the finish reason with the last."""
    rest = {name: value for name, value in delta.items() if name not in _SILENT and value is not None}
    if not parts and (rest or reason is not None):
        parts = [{}]
    made: list[Choice] = []
    for at, part in enumerate(parts):
        one: dict[str, Any] = dict(choice) if at == 0 else {"index": choice.get("index", 0)}
        one["delta"] = {**rest, **part} if at == 0 else part
        one["finish_reason"] = reason if at == len(parts) - 1 else None
        made.append(one)
    return made


def normalise_message(
    choice: Choice,
    *,
    tool_choice: object = None,
    parallel: bool = True,
    reasoning: ReasoningField = "keep",
    content: Reads | None = None,
    close_missing_braces: bool = False,
    id_seed: str = "",
) -> Choice:
    """One choice of an answer that was not streamed, put right; the very same object if it was.

    The arguments mean what they mean for `Normaliser`.
    """
    message: Mapping[str, Any] = choice.get("message") or {}
    reason = choice.get("finish_reason")
    entries = [_entry(at, call) for at, call in enumerate(message.get("tool_calls") or ())]
    normaliser = Normaliser(
        tool_choice=tool_choice,
        parallel=parallel,
        reasoning=reasoning,
        content=content,
        close_missing_braces=close_missing_braces,
        id_seed=id_seed,
    )
    said = {name: message[name] for name in ("content", *_THOUGHTS) if message.get(name)}
    deltas = [{"index": 0, "delta": said}] if said else []
    deltas += [{"index": 0, "delta": {"tool_calls": [entry]}} for entry in entries]
    deltas.append({"index": 0, "delta": {}, "finish_reason": reason or "stop"})
    whole = _joined(one for delta in deltas for one in normaliser.feed(delta))
    return _rebuilt(choice, message, whole, reason)


def _entry(at: int, call: object) -> Entry:
    if not isinstance(call, Mapping):
        return {"index": at}
    entry: Entry = dict(call)
    entry["index"] = at
    entry["function"] = dict(entry.get("function") or {})
    return entry


def _joined(choices: Iterable[Choice]) -> dict[str, Any]:
    """What a client that follows a stream has at its end."""
    whole: dict[str, Any] = {"content": None, "tool_calls": [], "finish_reason": None}
    for choice in choices:
        for name, value in choice["delta"].items():
            if isinstance(value, str):
                whole[name] = (whole.get(name) or "") + value
            for entry in value if name == "tool_calls" and value else ():
                if "id" in entry:
                    whole[name].append({**entry, "function": dict(entry["function"])})
                else:
                    whole[name][entry["index"]]["function"]["arguments"] += entry["function"]["arguments"]
        whole["finish_reason"] = choice.get("finish_reason") or whole["finish_reason"]
    return whole


def _rebuilt(choice: Choice, message: Mapping[str, Any], whole: dict[str, Any], reason: object) -> Choice:
    calls = [{name: value for name, value in call.items() if name != "index"} for call in whole["tool_calls"]]
    content, given = whole["content"], message.get("content")
    if content is None and not calls:
        content = given if not given else None if any(name in whole for name in _THOUGHTS) else ""
    elif isinstance(content, str) and calls and not content.strip():
        content = None
    thoughts: dict[str, Any] = {name: whole[name] for name in _THOUGHTS if name in whole}
    same_calls = calls == list(message.get("tool_calls") or ())
    same_thoughts = thoughts == {name: message[name] for name in _THOUGHTS if message.get(name)}
    if same_calls and same_thoughts and content == message.get("content") and whole["finish_reason"] == reason:
        return choice
    made: dict[str, Any] = {name: value for name, value in message.items() if name not in _THOUGHTS}
    made.update({**thoughts, "content": content})
    if calls:
        made["tool_calls"] = calls
    elif message.get("tool_calls"):
        del made["tool_calls"]
    return {**choice, "message": made, "finish_reason": whole["finish_reason"]}
