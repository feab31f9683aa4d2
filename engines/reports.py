"""Reads error bodies of any shape and turns them into a sentence for people.

Shapes seen on the wire: OpenAI's object, a bare string under `error`, trtllm-serve's flat object, FastAPI's `detail` as
text or list, Anthropic's envelope, validation dumps inside a string (pydantic, serde, validator), plain text, HTML,
nothing.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import msgspec

INVALID_JSON = "The request body could not be parsed as JSON."
UNREADABLE = "The engine could not read the request."
BAD_PART = "A message has a content part that the engine does not understand."
LONGEST_TEXT = 8192
"""Characters of an error text that are looked at: it may quote the client, who must not make us read for long."""
LONGEST_MESSAGE = 600


@dataclass(frozen=True, slots=True)
class Report:
    """What an error body says: the raw text for rules to match, and a message that is safe to show."""

    text: str
    message: str = ""
    param: str | None = None
    code: str | int | None = None
    type: str | None = None
    structured: bool = False
    """False for plain text, HTML and nothing: perhaps not the engine speaking but something before it."""


@dataclass(frozen=True, slots=True)
class Complaint:
    """One entry of a validation dump: pydantic's type, the path without model names, the union's branch, the text."""

    type: str
    path: tuple[str, ...]
    branch: str
    said: str


def read(body: bytes) -> Report:
    """Read an HTTP error body."""
    try:
        decoded = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        text = body[:LONGEST_TEXT].decode("utf-8", "replace")
        return Report(text, "" if "<" in text else safe(text))
    return of_json(decoded)


def of_json(decoded: object) -> Report:
    """Read an error body that is JSON."""
    if not isinstance(decoded, dict):
        return Report(str(decoded)[:LONGEST_TEXT])
    error = decoded.get("error")
    detail = decoded.get("detail")
    if isinstance(error, dict):
        return _object(error)
    if isinstance(error, str):
        return _text(error)
    if isinstance(detail, str):
        return _text(detail)
    if isinstance(detail, list):
        complaints = tuple(_of_detail(detail))
        return _complaints(complaints, _said(complaints))
    return _object(decoded)


def _object(error: Mapping[str, object]) -> Report:
    message, param, code, kind = (error.get(key) for key in ("message", "param", "code", "type"))
    found = _text(message if isinstance(message, str) else "")
    return Report(
        found.text,
        found.message,
        found.param or (_param(param.removeprefix("body.").split(".")) if isinstance(param, str) else None),
        code if isinstance(code, str | int) else None,
        kind if isinstance(kind, str) else None,
        structured=True,
    )


def _text(text: str) -> Report:
    """Read a message that may hold a validation dump."""
    text = _unwrapped(text[:LONGEST_TEXT])
    complaints = tuple(_of_dump(text))
    if complaints:
        return _complaints(complaints, _said(complaints))
    if _PYDANTIC_TEXT.match(text) is not None:
        return Report(text, BAD_PART, "messages", structured=True)
    if (serde := _SERDE.match(text)) is not None:
        return _of_serde(serde, text)
    if (named := _NAMED.match(text)) is not None and named["param"] != "__all__":
        return Report(
            text,
            safe(f"Invalid value for '{named['param']}': {_range(named['said'])}"),
            named["param"],
            structured=True,
        )
    message = text.removeprefix("__all__: ")
    marked = _MARKED_PARAM.match(message, max(message.rfind(" (parameter="), 0))
    if marked is not None:
        return Report(text, safe(message[: marked.start()]), _param(marked["param"].split(".")), structured=True)
    first = _FIRST_WORD.match(message)
    return Report(text, safe(message), first["param"] if first is not None else None, structured=True)


def _said(complaints: Sequence[Complaint]) -> str:
    """What the engine itself says in a dump, without the values that it quotes: those are a client's words."""
    return "\n".join(complaint.said for complaint in complaints)[:LONGEST_TEXT]


def _unwrapped(text: str) -> str:
    """The engine's own words out of `('Error generating stream: …', InferenceResponse(…))`.

    Triton shows its exceptions so (`chat_engine_error_nonstream`, `chat_trt_engine_error_nonstream`).
    """
    found = _TUPLE.match(text)
    if found is None:
        return text
    said = _ESCAPED.sub(lambda escape: _ESCAPES.get(escape[1], escape[1]), found["said"][1:-1])
    return said.removeprefix("Error generating stream: ")


def _complaints(complaints: Sequence[Complaint], text: str) -> Report:
    """Say the complaint that fits: of a union, the branch whose tag (role, type) was not the one refused."""
    if not complaints:
        return Report(text, structured=True)
    wrong = {c.branch for c in complaints if c.branch and c.type in _TAG_MISMATCH and c.path[-1:] in _TAGS}
    fitting = [c for c in complaints if not c.branch or c.branch not in wrong]
    first = (fitting or complaints)[0]
    # Of a union like "string or list", the branch that got past the type has more to say.
    chosen = next((c for c in fitting if c.path == first.path and not c.type.endswith("_type")), first)
    param = _param(chosen.path)
    if param is None and chosen.type == "value_error":
        return _text(_VALUE_ERROR.sub("", chosen.said))
    if not fitting:
        return Report(
            text, f"The value of '{param}' is not supported." if param else UNREADABLE, param, structured=True
        )
    return Report(text, _sentence(chosen, param), param, structured=True)


def _sentence(complaint: Complaint, param: str | None) -> str:
    if complaint.type == "json_invalid":
        return INVALID_JSON
    if param is None:
        return UNREADABLE
    if complaint.type == "missing":
        return f"Missing required parameter: '{param}'."
    if complaint.type == "extra_forbidden":
        return f"Unsupported parameter: '{param}'."
    said = _VALUE_ERROR.sub("", complaint.said)
    return safe(f"Invalid value for '{param}': {said[:1].lower()}{said[1:]}")


def _of_serde(found: re.Match[str], text: str) -> Report:
    """`max_tokens: invalid type: ..., expected u32 at line 1 column 110` (vLLM's Rust frontend)."""
    if found["syntax"]:
        return Report(text, INVALID_JSON, None, structured=True)
    param, said = found["param"], _AT_LINE.sub("", found["said"])
    missing = _SERDE_MISSING.match(said)
    if missing is not None:
        param = f"{param}.{missing['name']}" if param else missing["name"]
        return Report(text, f"Missing required parameter: '{param}'.", param, structured=True)
    message = f"Invalid value for '{param}': {said}" if param else f"The request could not be read: {said}"
    return Report(text, safe(message), param, structured=True)


def _range(said: str) -> str:
    """`Validation error: range [{"min": Number(0.0), ...}]` (vLLM's Rust frontend) in words."""
    low, high = _RANGE_MIN.search(said), _RANGE_MAX.search(said)
    if not said.startswith("range") or (low is None and high is None):
        return said.partition(" [{")[0]
    if low is not None and high is not None:
        return f"must be between {low[1]} and {high[1]}"
    return f"must be at least {low[1]}" if low is not None else f"must be at most {high[1] if high else ''}"


def safe(text: str) -> str:
    """Make an engine's own words fit to show: one line, a full stop, and nothing of its inside.

    Gives "" when the words are code rather than words (reprs, tracebacks, paths, addresses).
    """
    line = _ADVICE.sub("", " ".join(text[:LONGEST_TEXT].split()))
    if not line or _INSIDE.search(line) is not None:
        return ""
    if len(line) > LONGEST_MESSAGE:
        line = line[: LONGEST_MESSAGE - 1].rstrip() + "…"
    return line if line[-1] in ".!?…" else line + "."


def _of_detail(entries: Sequence[object]) -> Iterator[Complaint]:
    """FastAPI's `detail` list (Triton's 422)."""
    for entry in entries:
        if isinstance(entry, dict):
            loc = entry.get("loc")
            yield _complaint(
                str(entry.get("type", "")), loc if isinstance(loc, list) else (), str(entry.get("msg", ""))
            )


def _of_dump(text: str) -> Iterator[Complaint]:
    """Python reprs of the same entries inside a string (vLLM: dotted `loc`; trtllm-serve: a tuple)."""
    for found in _DUMP_ENTRY.finditer(text):
        loc = found["loc"]
        parts = [m[1] or m[2] or m[3] for m in _TUPLE_ITEM.finditer(loc)] if loc[0] == "(" else loc[1:-1].split(".")
        yield _complaint(found["type"], parts, found["msg"][1:-1])


def _complaint(kind: str, loc: Sequence[object], said: str) -> Complaint:
    parts = [str(part) for part in loc]
    if parts[:1] == ["body"]:
        parts = parts[1:]
    branch = next((part for part in parts if _MODEL_NAME.match(part) is not None), "")
    return Complaint(kind, tuple(p for p in parts if _MODEL_NAME.match(p) is None and p != ""), branch, said)


def _param(path: Sequence[str]) -> str | None:
    """Write a path as OpenAI does: `messages[0].role`. None for what is no member of a client's request."""
    if not path or not path[0] or path[0].isdigit() or path[0] in _NOT_THE_CLIENTS:
        return None
    out = path[0]
    for part in path[1:]:
        if part.isdigit():
            out += f"[{part}]"
        elif _MODEL_NAME.match(part) is None:
            out += f".{part}"
    return out


_TUPLE = re.compile(r"""\((?P<said>'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"), InferenceResponse\(""", re.DOTALL)
_ESCAPED = re.compile(r"\\(.)", re.DOTALL)
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r"}
_TAG_MISMATCH = frozenset({"enum", "literal_error"})
_TAGS = (("role",), ("type",))
_NOT_THE_CLIENTS = frozenset({"body", "input_tokens", "input_text", "type"})
"""What engines name as a parameter although no client sends it."""

# Names of model classes and union branches in a pydantic path: `ChatCompletionUserMessageParam`, `list[int]`, `str`.
_MODEL_NAME = re.compile(
    r"[A-Z]\w*[a-z]|(?:str|int|float|bool|dict|list|enum|literal|constrained-\w+|function-\w+)(?:\[.*\])?$"
)
_DUMP_ENTRY = re.compile(
    r"""\{'type':\ '(?P<type>\w+)',\ 'loc':\ (?P<loc>\([^)]{0,500}\)|'[^']{0,500}'),\ 'msg':\ """
    r"""(?P<msg>'(?:[^'\\]|\\.){0,1000}'|"(?:[^"\\]|\\.){0,1000}")""",
    re.VERBOSE,
)
_TUPLE_ITEM = re.compile(r"""'([^']*)'|"([^"]*)"|(\d+)""")
# Pydantic's own words about vLLM's content parts: "8 validation errors for ValidatorIterator", then paths in a message.
_PYDANTIC_TEXT = re.compile(r"\d+ validation errors? for \w+\n")
_SERDE = re.compile(
    r"Failed to (?:(?P<syntax>parse the request body as JSON|buffer the request body)"
    r"|deserialize the JSON body into the target type): (?:(?P<param>[a-z_]+(?:\[\d+\]|\.\w+)*): )?(?P<said>.*)",
    re.DOTALL,
)
_SERDE_MISSING = re.compile(r"missing field `(?P<name>\w+)`")
_AT_LINE = re.compile(r" at line \d+ column \d+$")
_NAMED = re.compile(r"(?P<param>[a-z_]+): Validation error: (?P<said>.*)", re.DOTALL)
_RANGE_MIN = re.compile(r'"min": Number\(([-\d.]+)\)')
_RANGE_MAX = re.compile(r'"max": Number\(([-\d.]+)\)')
_FIRST_WORD = re.compile(
    r"`?(?P<param>[a-z]+(?:_[a-z]+)*)`?(?: choice)? (?:must be|cannot (?:be|contain)|is (?:not|only))\b"
)
_MARKED_PARAM = re.compile(r" \(parameter=(?P<param>[\w.]+)(?:, value=.*)?\)$", re.DOTALL)
# For the operator, not for the client.
_ADVICE = re.compile(
    r"^\d+ validation errors?: (?=[A-Z])| To increase this limit, set .*$| Use --http-max-input-size .*$"
    r"| Make sure that `max_model_len` is no smaller .*$| Set log level to info and check .*$"
)
_VALUE_ERROR = re.compile(r"^(?:Value|Assertion) error, ")
_INSIDE = re.compile(
    r"Traceback|\bFile \"|<class '|\bobject at 0x|<[\w.]+ object|NoneType|\bobject has no attribute\b|is not iterable"
    r"|InferenceResponse\(|InternalError\(|^\(['\"]|Error\(\.\.\.\)|must be Union\["
    r"|(?:^|[\s'\"(=])/(?:[\w.+-]+/)+[\w.+-]*|[A-Za-z]:\\\\|://\S|\b\d{1,3}(?:\.\d{1,3}){3}\b"
    r"|\b(?:localhost|127\.0\.0\.1)\b|\brequest id: |input_value=|\$?VLLM_[A-Z_]+|--http-max"
)
