"""JSON by a schema: engines take `response_format` whether they keep it or not."""

from collections.abc import Iterable, Sequence
from typing import Final

import msgspec

from engines.profile import EngineKind, Operation
from gateway.doctor.asking import Answers, Question
from gateway.doctor.checks.check import of_model
from gateway.doctor.checks.inference import finish_of, message_of, words
from gateway.doctor.finding import Finding, Level
from gateway.doctor.subject import Subject, user

LIMIT: Final = 32
"""Tokens for an object of one member."""

_VALUE: Final = "k7"
"""Nothing that a model would write by itself."""

_SCHEMA: Final = {
    "type": "object",
    "properties": {"code": {"type": "string", "enum": [_VALUE]}},
    "required": ["code"],
    "additionalProperties": False,
}


class Schema:
    """A JSON schema is really kept to."""

    name = "json_schema"

    def asks(self, subject: Subject) -> Sequence[Question]:
        """For an object that only a constraint can bring about; not where the gateway refuses schemas itself."""
        if subject.settings.task != "chat":
            return ()
        wanted = {"type": "json_schema", "json_schema": {"name": "doctor", "strict": True, "schema": _SCHEMA}}
        members = {"messages": user("Give me JSON."), "max_tokens": LIMIT, "temperature": 0, "response_format": wanted}
        question = subject.asks(Operation.CHAT, members)
        return () if question is None else (question,)

    def judge(self, subject: Subject, answers: Answers) -> Iterable[Finding]:
        """Refused, or another answer. One that is cut inside the object proves nothing."""
        for question in self.asks(subject):
            heard = answers[question]
            content = str(message_of(heard).get("content") or "").strip()
            if heard.failure or heard.status != 200:
                what = heard.failure or f"status {heard.status}: {words(heard)}"
                evidence = f"response_format with a JSON schema fails: {what}"
                yield of_model(Level.WARNING, subject, self.name, evidence, _remedy(subject))
            elif _read(content) != {"code": _VALUE}:
                if finish_of(heard) == "length" and _fits_so_far(content):
                    continue
                evidence = f"response_format with a JSON schema is taken and not kept: {content[:80]!r}"
                yield of_model(Level.WARNING, subject, self.name, evidence, _remedy(subject))


def _read(text: str) -> object:
    try:
        return msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError):
        return None


def _fits_so_far(text: str) -> bool:
    """Whether it may be the beginning; nothing is: the limit may have been reached while the model was thinking."""
    return f'{{"code":"{_VALUE}"}}'.startswith("".join(text.split()))


def _remedy(subject: Subject) -> str:
    if subject.profile.kind is EngineKind.TRTLLM:
        say = f"say so: {subject.engine_at('guided_decoding')}: false"
        return f"start it with guided_decoding_backend: xgrammar in the YAML of its --config, or {say}"
    return "start it without --structured-outputs-config that switches it off; its log says why guidance is missing"
