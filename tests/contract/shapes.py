"""What makes two answers the same to a client: members in their order and types, and the values that mean something."""

import json
import sys
from collections.abc import Iterator
from typing import Any, TypeAlias

Shape: TypeAlias = list[str]
"""One line per member, in the order of the members: its path, and its type or telling value."""

TELLING = frozenset(
    {"finish_reason", "object", "role", "type", "stop_reason", "code", "param", "name", "index", "owned_by"}
)
"""Members whose values are compared, not only their types."""

BY_TOKEN = "top_logprobs"
"""In completions an object whose member names are tokens."""


def shape(value: object) -> Shape:
    """Members in order, types of values, values where they tell something; a list is the set of its items' lines."""
    return list(dict.fromkeys(_lines(value, "", "")))


def _lines(value: object, path: str, name: str) -> Iterator[str]:
    if isinstance(value, dict):
        yield f"{path} {{}}"
        for key, each in value.items():
            if name == BY_TOKEN and isinstance(each, float):
                yield f"{path}.* number"
            else:
                yield from _lines(each, f"{path}.{key}", key)
    elif isinstance(value, list):
        yield f"{path} []"
        for each in value:
            yield from _lines(each, f"{path}[]", name)
    elif name in TELLING:
        yield f"{path} {value!r}"
    elif value is None or isinstance(value, bool):
        yield f"{path} {'null' if value is None else 'bool'}"
    else:
        yield f"{path} {'text' if isinstance(value, str) else 'number'}"


def without(value: object, paths: frozenset[str], path: str = "") -> object:
    """The value with null in place of the members at these dotted paths (list items have no part in a path)."""
    if isinstance(value, dict):
        return {
            key: None if f"{path}{key}" in paths else without(each, paths, f"{path}{key}.")
            for key, each in value.items()
        }
    if isinstance(value, list):
        return [without(each, paths, path) for each in value]
    return value


def event_shape(raw: str, ignored: frozenset[str] = frozenset()) -> tuple[str, str, Shape | None]:
    """What stands before and behind an event's data, and the shape of the data."""
    line = raw.rstrip("\n")
    ending = raw[len(line) :]
    if line.endswith(" "):
        line, ending = line[:-1], f" {ending}"
    head, found, text = line.partition("data: ")
    if not found or text == "[DONE]":
        return line, ending, None
    return head, ending, shape(without(json.loads(text), ignored))


def alike(one: str, other: str) -> bool:
    """Whether two events have one shape."""
    return event_shape(one) == event_shape(other)


def collapsed(events: list[str], ignored: frozenset[str] = frozenset()) -> list[Any]:
    """The shapes of events, of runs of equal ones only one."""
    out: list[Any] = []
    for raw in events:
        found = event_shape(raw, ignored)
        if not out or out[-1] != found:
            out.append(found)
    return out


def by_choice(events: list[str]) -> list[str]:
    """The events of each choice together; choices are interleaved as chance will have it."""

    def order(raw: str) -> int:
        text = raw.partition("data: ")[2].strip()
        choices = json.loads(text).get("choices") if text.startswith("{") else None
        return int(choices[0]["index"]) if choices else sys.maxsize

    return sorted(events, key=order)


def said(events: list[str]) -> list[list[Any]]:
    """The texts that a stream adds up to, by choice: content, reasoning, names and arguments of the calls."""
    texts: dict[tuple[int, str], str] = {}
    for raw in events:
        text = raw.partition("data: ")[2].strip()
        if not text.startswith("{"):
            continue
        for choice in json.loads(text).get("choices") or ():
            parts = dict(choice.get("delta") or {"content": choice.get("text")})
            for call in parts.pop("tool_calls", None) or ():
                parts |= {f"{name} {call['index']}": part for name, part in call["function"].items()}
            for name, part in parts.items():
                if isinstance(part, str) and name != "role":
                    key = (choice["index"], name)
                    texts[key] = texts.get(key, "") + part
    return [[*key, text] for key, text in sorted(texts.items())]
