"""Functions for `Emulate` rows: the requests that a call becomes where the engine serves only one answer at a time."""

from collections.abc import Mapping
from typing import Final

import msgspec

from engines.policy import Edit, Members, ParameterRefused, Split

MOST_CHOICES: Final = 128
"""OpenAI's limit for `n`."""

_SMALLEST_SEED: Final = -(2**63)
_SEEDS: Final = 2**64


def choices(name: str, members: Members) -> tuple[Edit, ...] | None:
    """One request for each of `n` choices, each with a seed of its own if the client gave one.

    With the same seed all choices would be the same text. One choice goes on as the client wrote it.
    """
    raw = bytes(members[name])
    count = int(raw) if raw.isdigit() and len(raw) <= 9 else 1  # what is no number is the engine's to refuse
    if count <= 1:
        return None
    if count > MOST_CHOICES:
        raise ParameterRefused(name, f"'{name}' may be at most {MOST_CHOICES}.", "invalid_value")
    seed = members.get("seed")
    text = b"" if seed is None else bytes(seed)
    if not text.removeprefix(b"-").isdigit() or len(text) > 20:
        return ({name: None},) * count
    first = int(text)
    return tuple({name: None, "seed": str(_wrapped(first + number)).encode()} for number in range(count))


def _wrapped(seed: int) -> int:
    """Within 64 bits, as engines need it; a seed that the client gave within them stays."""
    return (seed - _SMALLEST_SEED) % _SEEDS + _SMALLEST_SEED


def prompts(name: str, members: Members) -> tuple[Edit, ...] | None:
    """One request for each prompt of a list; the engine takes one at a time, or one list of token ids."""
    return _items(name, members[name])


def text_prompts(name: str, members: Members) -> tuple[Edit, ...] | None:
    """As `prompts`, for Triton, which takes no token ids (`completions_prompt_tokens`)."""
    edits = _items(name, members[name])
    given = ({name: bytes(members[name])},) if edits is None else edits
    if any((value := edit[name]) is None or value[:1] == b"[" for edit in given):
        raise ParameterRefused(name, "Triton completes text: send strings, not token ids.", "unsupported_value")
    return edits


def inputs(name: str, members: Members) -> tuple[Edit, ...] | None:
    """One request for each input of an embeddings list; Triton takes one (`embeddings_list_of_strings`)."""
    return _items(name, members[name])


def batches(name: str, members: Members, size: int) -> Split | None:
    """Requests of at most `size` inputs each for a longer list; None for a list that is not longer, or no list."""
    raw = members.get(name)
    items = _items(name, raw) if raw is not None else None
    if items is None or len(items) <= size:
        return None
    values = [item[name] or b"" for item in items]
    parts = [values[start : start + size] for start in range(0, len(values), size)]
    return Split(tuple({name: b"[" + b",".join(part) + b"]"} for part in parts), 1, (name,), size)


def _items(name: str, raw: msgspec.Raw) -> tuple[Edit, ...] | None:
    """An edit for each text or list of ids in a list; None for anything else, lists of bare ids included."""
    if bytes(memoryview(raw)[:1]) != b"[":
        return None
    items = msgspec.json.decode(raw, type=list[msgspec.Raw])
    first = bytes(items[0])[:1] if items else b""
    if first not in {b'"', b"["}:
        return None
    edits: list[Mapping[str, bytes | None]] = [{name: bytes(item)} for item in items]
    return tuple(edits)
