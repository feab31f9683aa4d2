"""Choices of answers, as stages look at them."""

from collections.abc import Mapping, Sequence
from typing import Any

from gateway.wire.shape.event import Event


def number_of(choice: Mapping[str, Any]) -> int:
    """Which choice of the answer it is."""
    index = choice.get("index")
    return index if isinstance(index, int) else 0


def thinks(says: Mapping[str, Any]) -> bool:
    """Whether the engine itself gives reasoning in a delta or message."""
    return bool(says.get("reasoning") or says.get("reasoning_content"))


def speaks(choice: Mapping[str, Any], delta: Mapping[str, Any]) -> bool:
    """Whether there is more in a choice of an event than a role."""
    if choice.get("finish_reason") is not None:
        return True
    return any(value not in (None, "", []) for name, value in delta.items() if name != "role")


def split_event(event: Event, choices: Sequence[Mapping[str, Any]]) -> Sequence[Event]:
    """An event for each of these choices; its usage comes with the last."""
    rest = {name: value for name, value in event.items() if name != "usage"}
    made: list[Event] = [{**rest, "choices": [choice]} for choice in choices]
    if made and "usage" in event:
        made[-1]["usage"] = event["usage"]
    return made
