"""A real inference: that a model is listed does not prove that it answers."""

import math
import struct
from base64 import b64decode
from binascii import Error as NotBase64
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from engines import reports
from engines.faults import FaultKind
from engines.profile import EngineKind, Operation
from gateway.doctor.asking import Answers, Heard, Question
from gateway.doctor.checks.check import of_model
from gateway.doctor.checks.identity import listing, wanted_header
from gateway.doctor.checks.listing import listed
from gateway.doctor.finding import Finding, Level
from gateway.doctor.subject import GREETING, Subject, user
from gateway.wire.shape import Stage, read_event
from gateway.wire.shape.event import said_in

_WORDS: Final = 240
_TOKENS: Final = 16
_WRONG_SORT: Final = "does not serve this operation"


def greeting(subject: Subject) -> Question | None:
    """A short chat."""
    return subject.asks(Operation.CHAT, {"messages": user(GREETING), "max_tokens": _TOKENS, "temperature": 0})


def vector(subject: Subject, encoding: str) -> Question | None:
    """The embedding of a word."""
    return subject.asks(Operation.EMBEDDINGS, {"input": "turnout", "encoding_format": encoding})


def ranking(subject: Subject) -> Question | None:
    """Two documents put into order."""
    return subject.asks(Operation.RERANK, {"query": "railway", "documents": ["a switch", "a cake"]})


def words(heard: Heard) -> str:
    """What an engine says in an error, in one line."""
    text = " ".join(reports.read(heard.body).text.split())
    return text if len(text) <= _WORDS else text[: _WORDS - 1] + "…"


def message_of(heard: Heard) -> Mapping[str, Any]:
    """The message of a whole chat answer; empty if there is none."""
    choices = heard.json().get("choices")
    first = choices[0] if isinstance(choices, list) and choices else None
    message = first.get("message") if isinstance(first, dict) else None
    return message if isinstance(message, dict) else {}


def as_read(heard: Heard, stage: Stage | None) -> Mapping[str, Any]:
    """The message of a whole chat answer after the gateway's reading of it; empty if there is none."""
    try:
        answer = read_event(heard.body)
        if stage is not None:
            stage.whole(answer)
    except (ValueError, TypeError, AttributeError, RecursionError):  # members of odd types: no answer of OpenAI's kind
        return {}
    return next(said_in(answer, "message"), {})


def finish_of(heard: Heard) -> str:
    """Its finish reason."""
    choices = heard.json().get("choices")
    first = choices[0] if isinstance(choices, list) and choices else None
    return str(first.get("finish_reason") or "") if isinstance(first, dict) else ""


def generated(heard: Heard) -> int | None:
    """The tokens that an answer took; None if the engine does not say."""
    usage = heard.json().get("usage")
    count = usage.get("completion_tokens") if isinstance(usage, dict) else None
    return count if isinstance(count, int) else None


class Inference:
    """The model answers, in the way that its task says."""

    name = "inference"

    def asks(self, subject: Subject) -> Sequence[Question]:
        """One small piece of work."""
        task = self._question(subject)
        return (listing(subject.site), *(() if task is None else (task,)))

    @staticmethod
    def _question(subject: Subject) -> Question | None:
        match subject.settings.task:
            case "chat":
                return greeting(subject)
            case "embedding":
                return vector(subject, "float")
            case "rerank":
                return ranking(subject)

    def judge(self, subject: Subject, answers: Answers) -> Iterable[Finding]:
        """Silence, a refusal, or an answer with nothing in it."""
        question = self._question(subject)
        if question is None:
            return
        heard = answers[question]
        if heard.failure:
            fix = "the engine takes requests and does not work on them: look at its log, and start it again"
            yield of_model(Level.ERROR, subject, self.name, f"no answer to a small request: {heard.failure}", fix)
        elif heard.status != 200:
            yield from self._refused(subject, heard, answers)
        elif subject.settings.task == "chat" and not _says_something(heard):
            fix = "look at the engine's chat template and parsers: the model generates, and nothing of it arrives"
            evidence = f"an empty answer of {generated(heard) or 'some'} tokens to '{GREETING}'"
            yield of_model(Level.ERROR, subject, self.name, evidence, fix)

    def _refused(self, subject: Subject, heard: Heard, answers: Answers) -> Iterable[Finding]:
        fault = subject.profile.classify(heard.status, heard.body)
        evidence = f"status {heard.status}: {words(heard)}"
        if fault.kind is FaultKind.NO_SUCH_PATH or _WRONG_SORT in fault.message or _no_vectors(heard):
            evidence, fix = _other_task(subject, heard)
        elif fault.kind is FaultKind.MODEL_NOT_FOUND:
            names = [model.id for model in listed(subject, answers)]
            if names and subject.model not in names:
                return  # `Listed` tells it better
            fix = f"correct {subject.at('model')}: the engine's own name for it"
        elif fault.kind is FaultKind.UNAUTHORIZED:
            fix = f"correct {subject.engine_at('api_key')}"
            if header := wanted_header(heard):
                fix = f"{subject.engine_at('api_key_header')}: {header}, and {subject.engine_at('api_key')}: its value"
        else:
            fix = "the engine's own log tells more"
        yield of_model(Level.ERROR, subject, self.name, evidence, fix)


class Embeddings:
    """Vectors are what clients take them for: of unit length, and the same numbers in base64."""

    name = "embeddings"

    def asks(self, subject: Subject) -> Sequence[Question]:
        """One vector in both encodings."""
        if subject.settings.task != "embedding":
            return ()
        found = (vector(subject, "float"), vector(subject, "base64"))
        return tuple(question for question in found if question is not None)

    def judge(self, subject: Subject, answers: Answers) -> Iterable[Finding]:
        """A wrong encoding breaks OpenAI's SDKs, which ask for base64; lengths matter for dot products."""
        asked = self.asks(subject)
        if len(asked) < 2 or not answers[asked[0]].ok:
            return
        numbers, packed = _embedding(answers[asked[0]]), _embedding(answers[asked[1]])
        if not isinstance(numbers, list) or not numbers:
            fix = "this is no embeddings endpoint of OpenAI's kind: is another server at this address?"
            yield of_model(Level.ERROR, subject, self.name, "the answer holds no list of numbers", fix)
            return
        unpacked = _unpacked(packed)
        if unpacked is None or not _alike(numbers, unpacked):
            evidence = f"encoding_format base64 does not give the same {len(numbers)} numbers as float"
            fix = "renew the engine, or let clients ask for encoding_format: float (OpenAI's SDKs ask for base64)"
            yield of_model(Level.ERROR, subject, self.name, evidence, fix)
        length = math.sqrt(sum(number * number for number in numbers))
        if abs(length - 1) > 0.01:
            evidence = f"vectors have the length {length:.3f}, not 1: dot products are no cosines"
            fix = "compare by cosine, or let the engine normalise them (vLLM: --pooler-config)"
            yield of_model(Level.WARNING, subject, self.name, evidence, fix)


def _says_something(heard: Heard) -> bool:
    message = message_of(heard)
    return any(message.get(name) for name in ("content", "reasoning", "reasoning_content", "tool_calls"))


def _no_vectors(heard: Heard) -> bool:
    text = words(heard)
    return "embed" in text and "not support" in text


def _other_task(subject: Subject, heard: Heard) -> tuple[str, str]:
    task = subject.settings.task
    line = subject.at("task")
    if task == "chat":
        evidence = f"the engine has no chat for this model (status {heard.status}): is it an embedding model?"
        return evidence, f"{line}: embedding, if it is one (rerank for a reranker)"
    evidence = f"the engine has no {task} route for this model (status {heard.status}): is it a chat model?"
    if subject.profile.kind is EngineKind.TRITON:
        more = f"leave out {subject.engine_at('embeddings')} and the route, or serve an embedding model there"
    else:
        more = f"leave out {line}, or start the engine with an embedding model (--runner pooling --convert embed)"
    return evidence, more


def _embedding(heard: Heard) -> object:
    rows = heard.json().get("data")
    first = rows[0] if isinstance(rows, list) and rows else None
    return first.get("embedding") if isinstance(first, dict) else None


def _unpacked(packed: object) -> tuple[float, ...] | None:
    if not isinstance(packed, str):
        return None
    try:
        data = b64decode(packed, validate=True)
    except (NotBase64, ValueError):
        return None
    return struct.unpack(f"<{len(data) // 4}f", data) if len(data) % 4 == 0 else None


def _alike(numbers: Sequence[object], others: Sequence[float]) -> bool:
    return len(numbers) == len(others) and all(
        isinstance(one, int | float) and abs(one - other) < 1e-3 for one, other in zip(numbers, others, strict=True)
    )
