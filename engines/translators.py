"""Functions for `Translate` rows that look at one member's value. Messages and tools have modules of their own."""

import re
from collections.abc import Mapping

import msgspec

from engines.policy import NULL, Edit, Members, ParameterRefused, Translator

GUIDED_FIELDS: Mapping[str, bytes] = {
    "guided_json": b"json",
    "guided_regex": b"regex",
    "guided_choice": b"choice",
    "guided_grammar": b"grammar",
    "guided_whitespace_pattern": b"whitespace_pattern",
}
STREAM_OPTIONS = frozenset({"include_usage", "continuous_usage_stats"})


def compact(raw: msgspec.Raw) -> bytes:
    """Give a small JSON value without blanks between its tokens; for comparison only."""
    return b"".join(bytes(raw).split())


def leave_out(*values: bytes) -> Translator:
    """Leave a member out when it has one of these values, which this engine does not take for its default."""

    def translate(name: str, members: Members) -> Edit | None:
        return {name: None} if compact(members[name]) in values else None

    return translate


def structured_outputs(name: str, members: Members) -> Edit | None:
    """Turn vLLM's old `guided_*` members into the new one; the old are not read (`chat_guided_choice_legacy`)."""
    there = members.get("structured_outputs")
    if there is not None and there != NULL:
        raise ParameterRefused(name, f"'{name}' cannot be used together with 'structured_outputs'.", "invalid_value")
    given = [(key, members[old]) for old, key in GUIDED_FIELDS.items() if old in members and members[old] != NULL]
    if not given:
        return {name: None}
    body = b",".join(b'"' + key + b'":' + bytes(raw) for key, raw in given)
    return {name: None, "structured_outputs": b"{" + body + b"}"}


def stream_options(name: str, members: Members) -> Edit | None:
    """Say `include_usage: false` where the client is silent and leave out keys that trtllm-serve refuses.

    There `{}` turns usage on (`chat_stream_options_empty`), and OpenAI's `include_obfuscation` is an unknown key.
    """
    try:
        options = msgspec.json.decode(members[name], type=dict[str, msgspec.Raw])
    except msgspec.DecodeError:
        return None
    if "include_usage" in options and options["include_usage"] != NULL and options.keys() <= STREAM_OPTIONS:
        return None
    kept = {key: raw for key, raw in options.items() if key in STREAM_OPTIONS and raw != NULL}
    kept.setdefault("include_usage", msgspec.Raw(b"false"))
    return {name: msgspec.json.encode(kept)}


def reasoning_effort(name: str, members: Members) -> Edit | None:
    """Give the nearest of low, medium and high, the only values trtllm-serve has in every version."""
    value = bytes(members[name])
    nearest = {b'"minimal"': b'"low"', b'"xhigh"': b'"high"', b'"max"': b'"high"'}.get(value)
    if nearest is not None:
        return {name: nearest}
    if value == b'"none"':
        raise ParameterRefused(
            name,
            "'reasoning_effort: none' is not supported by trtllm-serve; use 'chat_template_kwargs' if the model has a "
            "switch for thinking.",
        )
    return None


def echo(name: str, members: Members) -> Edit | None:
    """Refuse echo in a stream, which Triton answers by cutting the connection (`completions_echo_stream`)."""
    stream = members.get("stream")
    if bytes(members[name]) == b"true" and stream is not None and bytes(stream) == b"true":
        raise ParameterRefused(name, "'echo' is not supported together with 'stream' by Triton.")
    return None


def encoding_format(name: str, members: Members) -> Edit | None:
    """Refuse vectors as bare bytes, which no answer in OpenAI's form can carry (vLLM's `bytes`, `bytes_only`)."""
    if b"bytes" in bytes(members[name]):
        raise ParameterRefused(name, "'encoding_format' must be 'float' or 'base64'.", "invalid_value")
    return None


def constraint_for_trtllm(name: str, members: Members) -> Edit | None:
    """Say vLLM's constraints on the output as a `response_format` that trtllm-serve knows.

    Its forms beside OpenAI's are `json` (with `schema`), `regex` and `ebnf`; a choice becomes a regular expression.
    """
    wanted = _constraint(name, members[name])
    if wanted is None:
        return {name: None}
    there = members.get("response_format")
    others = [other for other in CONSTRAINTS if other != name and members.get(other, NULL) != NULL]
    if others or (there is not None and there != NULL):
        raise ParameterRefused(name, f"'{name}' cannot be used together with another constraint.", "invalid_value")
    return {name: None, "response_format": msgspec.json.encode(wanted)}


CONSTRAINTS: Mapping[str, str] = {
    "guided_json": "json",
    "guided_regex": "regex",
    "guided_choice": "choice",
    "guided_grammar": "grammar",
    "structured_outputs": "",
}
"""vLLM's constraints, old and new, and the key of the new one that an old one is."""


def _constraint(name: str, raw: msgspec.Raw) -> Mapping[str, object] | None:
    key = CONSTRAINTS[name]
    try:
        given = {key: msgspec.Raw(bytes(raw))} if key else msgspec.json.decode(raw, type=dict[str, msgspec.Raw])
    except msgspec.DecodeError:
        given = {"": raw}
    given = {key: value for key, value in given.items() if value != NULL}
    if not given:
        return None
    if len(given) == 1 and (made := _as_format(*given.popitem())) is not None:
        return made
    raise ParameterRefused(name, f"'{name}' asks for a constraint that trtllm-serve does not have.")


def _as_format(key: str, raw: msgspec.Raw) -> Mapping[str, object] | None:
    value = msgspec.json.decode(raw)
    match key, value:
        case "json", dict():
            return {"type": "json", "schema": raw}
        case "json", str():
            return {"type": "json", "schema": msgspec.Raw(value.encode())} if _is_object(value) else None
        case "json_object", True:
            return {"type": "json_object"}
        case "regex", str():
            return {"type": "regex", "regex": value}
        case "grammar", str():
            return {"type": "ebnf", "ebnf": value}
        case "choice", [_, *_] if all(isinstance(item, str) for item in value):
            return {"type": "regex", "regex": "(" + "|".join(map(re.escape, value)) + ")"}
        case _:
            return None


def _is_object(text: str) -> bool:
    try:
        return isinstance(msgspec.json.decode(text), dict)
    except msgspec.DecodeError:
        return False
