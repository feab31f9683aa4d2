"""What went wrong at an engine, in words that are safe to show to a client.

Engines answer errors in a dozen shapes. Here a body becomes a `Report` (what it says), and rules, some per engine kind
and some common, make a `Fault` of it.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

import msgspec

from engines import reports


class FaultKind(StrEnum):
    """What an engine's error means for the client and for the engine's standing."""

    INVALID_REQUEST = "invalid_request"
    CONTEXT_LENGTH = "context_length"
    MODEL_NOT_FOUND = "model_not_found"
    UNAUTHORIZED = "unauthorized"
    """The engine refused our credentials: a mistake of the gateway's configuration, not of the client."""
    OVERLOADED = "overloaded"
    NO_SUCH_PATH = "no_such_path"
    """The engine does not serve this path (for vLLM also: not for this sort of model)."""
    ENGINE_ERROR = "engine_error"


@dataclass(frozen=True, slots=True)
class Fault:
    """An engine's error. `status` is what the client should get (422 is 400, an engine's own failure 502).

    `message` never holds paths, hosts, tracebacks or reprs; `param` is a member name of the client's request.
    """

    kind: FaultKind
    status: int
    message: str
    param: str | None = None


@dataclass(frozen=True, slots=True)
class FaultRule:
    """One engine's way to say something: the first rule whose pattern is found in the text decides.

    Without a message the engine's own (made safe) is kept.
    """

    pattern: re.Pattern[str]
    kind: FaultKind
    message: str | None = None
    param: str | None = None
    statuses: tuple[int, ...] = ()
    """Only for these; empty: for all."""


ENGINE_FAILED = "The engine failed while working on this request."
CREDENTIALS_REFUSED = "The engine refused the gateway's credentials."
BUSY = "The engine is busy and cannot accept new requests. Please try again later."
NO_PATH = "The engine does not serve this operation for this model."
NO_MODEL = "The engine does not serve the requested model."
TOO_LARGE = "The request is too large for the engine."
REFUSED = "The engine refused the request."

TOO_LONG = (
    r"max(?:imum)? (?:context|input|prompt|sequence|model) length"
    r"|prompt.{0,40}(?:longer than|exceeds?|too long).{0,40}(?:max_|maximum|length|limit)"
)
"""How engines say that a prompt is too long, in any case of letters."""
COMMON_RULES = (
    FaultRule(
        re.compile(rf"{TOO_LONG}|max_num_tokens|max_seq_len|max_input_len", re.IGNORECASE),
        FaultKind.CONTEXT_LENGTH,
        statuses=(400, 413, 422),
    ),
)
FAILURE = FaultRule(
    re.compile(
        r"out of memory|CUDA (?:error|driver)|cuBLAS|NCCL|illegal memory access|device-side assert|RuntimeError|"
        r"executor (?:worker |is )?(?:shut|stopp|not running|died|returned error)|forwardAsync|EngineCore|"
        r"internal error|assertion failed|LLM is (?:unavailable|shutting down)",
        re.IGNORECASE,
    ),
    FaultKind.ENGINE_ERROR,
)
"""Words of an engine that fails, for servers whose status does not tell."""

CLIENT_STATUS: Mapping[FaultKind, int] = {
    FaultKind.INVALID_REQUEST: 400,
    FaultKind.CONTEXT_LENGTH: 400,
    FaultKind.MODEL_NOT_FOUND: 404,
    FaultKind.UNAUTHORIZED: 502,
    FaultKind.OVERLOADED: 503,
    FaultKind.NO_SUCH_PATH: 404,
    FaultKind.ENGINE_ERROR: 502,
}

FIXED_MESSAGE: Mapping[FaultKind, str] = {
    FaultKind.MODEL_NOT_FOUND: NO_MODEL,
    FaultKind.UNAUTHORIZED: CREDENTIALS_REFUSED,
    FaultKind.OVERLOADED: BUSY,
    FaultKind.NO_SUCH_PATH: NO_PATH,
    FaultKind.ENGINE_ERROR: ENGINE_FAILED,
}
"""Kinds whose text is always ours: the engine's would tell of its inside."""

_BUSY_TEXT = re.compile(r"busy|overload|too many|queue|capacity|rate limit|try again", re.IGNORECASE)
_BARE_NOT_FOUND = re.compile(r"(?:Not Found|Method Not Allowed)?\.?", re.IGNORECASE)
_MODEL_MISSING = re.compile(r"\bmodel\b.{0,200}\b(?:does not exist|not found|unknown)|^unknown model", re.IGNORECASE)


def classify(status: int, body: bytes, rules: tuple[FaultRule, ...] = ()) -> Fault:
    """Make a fault of an HTTP error answer; `rules` are the engine's own and come first."""
    return _judge(status, reports.read(body), rules)


def classify_event(body: bytes, rules: tuple[FaultRule, ...] = ()) -> Fault | None:
    """Make a fault of an event's JSON, or None if it carries no error.

    vLLM and trtllm-serve (completions) send `{"error": {...}}` in mid-stream, followed by `[DONE]`
    (recordings `wire_engine_crash`, `rust_tool_required_stream`, `completions_midstream_error`).
    """
    if b'"error"' not in body:
        return None
    try:
        event = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    if not isinstance(event, dict) or not (event.get("error") or event.get("object") == "error"):
        return None
    report = reports.of_json(event)
    status = report.code if isinstance(report.code, int) and 400 <= report.code <= 599 else None
    if status is None:
        status = 400 if report.type in {"invalid_request_error", "BadRequestError"} else 500
    return _judge(status, report, rules)


def _judge(status: int, report: reports.Report, rules: tuple[FaultRule, ...]) -> Fault:
    text = report.text
    for rule in (*rules, *COMMON_RULES):
        if (not rule.statuses or status in rule.statuses) and rule.pattern.search(text) is not None:
            return _fault(rule.kind, status, rule.message or report.message, rule.param or report.param)
    kind = _by_status(status, report)
    return _fault(kind, status, report.message, report.param)


def _by_status(status: int, report: reports.Report) -> FaultKind:
    if report.code == "context_length_exceeded" and status < 500:
        return FaultKind.CONTEXT_LENGTH
    if status in {401, 403}:
        return FaultKind.UNAUTHORIZED
    if status in {404, 405}:
        if report.code == "model_not_found" or report.param == "model" or _MODEL_MISSING.search(report.text):
            return FaultKind.MODEL_NOT_FOUND
        bare = _BARE_NOT_FOUND.fullmatch(report.text.strip()) is not None
        return FaultKind.NO_SUCH_PATH if bare or not report.structured else FaultKind.INVALID_REQUEST
    if status == 429 or (status == 503 and _BUSY_TEXT.search(report.text)):
        return FaultKind.OVERLOADED
    return FaultKind.INVALID_REQUEST if 400 <= status < 500 else FaultKind.ENGINE_ERROR


def _fault(kind: FaultKind, status: int, message: str, param: str | None) -> Fault:
    fixed = FIXED_MESSAGE.get(kind)
    client = CLIENT_STATUS[kind]
    if kind is FaultKind.OVERLOADED and status == 429:
        client = 429
    if kind is FaultKind.INVALID_REQUEST:
        client = status if 400 <= status < 500 and status != 422 else 400
        if status in {413, 431}:
            return Fault(kind, client, TOO_LARGE)
    if fixed is not None:
        return Fault(kind, client, fixed, "model" if kind is FaultKind.MODEL_NOT_FOUND else None)
    return Fault(kind, client, message or REFUSED, param)
