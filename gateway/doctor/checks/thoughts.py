"""Reasoning arrives in its own field, and nowhere else."""

from collections.abc import Iterable, Sequence
from typing import Final

from engines.profile import EngineKind, Operation
from gateway.doctor.asking import Answers, Heard, Question
from gateway.doctor.checks.check import of_model
from gateway.doctor.checks.inference import as_read, finish_of, greeting, message_of
from gateway.doctor.finding import Finding, Level
from gateway.doctor.subject import Subject, user
from gateway.wire.tools.thinking import Thinking

LIMIT: Final = 48
"""Tokens that a thought may take."""

_TAGS: Final = ("<think>", "</think>")


class Reasoning:
    """What a model thinks is told apart from what it says."""

    name = "reasoning"

    def asks(self, subject: Subject) -> Sequence[Question]:
        """A question to think about, and the greeting."""
        if subject.settings.task != "chat":
            return ()
        members = {"messages": user("Think: what is 2+2?"), "max_tokens": LIMIT, "temperature": 0}
        found = (subject.asks(Operation.CHAT, members), greeting(subject))
        return tuple(question for question in found if question is not None)

    def judge(self, subject: Subject, answers: Answers) -> Iterable[Finding]:
        """Tags in what clients would get; or a parser that takes answers for thoughts."""
        for question in self.asks(subject):
            heard = answers[question]
            if not heard.ok:
                continue
            if _all_thought(heard):
                evidence = "a whole answer arrives as reasoning, with no content"
                yield of_model(Level.WARNING, subject, self.name, evidence, _wrong_parser(subject))
                return
            tags = [tag for tag in _TAGS if tag in _content(subject, heard)]
            if tags:
                evidence = f"{tags[0]} in the content of an answer"
                yield of_model(Level.ERROR, subject, self.name, evidence, _lines(subject, tags))
                return


def _content(subject: Subject, heard: Heard) -> str:
    """The content as clients get it."""
    off = subject.rule.format == "off"
    content = as_read(heard, None if off else Thinking(subject.rule, subject.facts.wire, 1)).get("content")
    return content if isinstance(content, str) else ""


def _all_thought(heard: Heard) -> bool:
    message = message_of(heard)
    thought = message.get("reasoning") or message.get("reasoning_content")
    return bool(thought) and not message.get("content") and finish_of(heard) == "stop"


def _wrong_parser(subject: Subject) -> str:
    if subject.profile.kind is EngineKind.VLLM:
        off = "--default-chat-template-kwargs '{\"enable_thinking\": false}'"
        return f"the model does not think: start the engine without --reasoning-parser, or with {off}"
    return "the model does not think: start the engine without --reasoning_parser"


def _lines(subject: Subject, tags: Sequence[str]) -> str:
    if subject.rule.format == "off":
        return f"{subject.at('reasoning', 'format')}: auto"
    if tags == ["</think>"]:
        return f"{subject.at('reasoning')}: {{opened: true}}, since the chat template opens the block"
    if subject.profile.kind is EngineKind.TRITON:
        return f"{subject.at('reasoning')}: {{format: NAME}}, the family of docs/tool-calls.md that it belongs to"
    flag = "--reasoning-parser" if subject.profile.kind is EngineKind.VLLM else "--reasoning_parser"
    return f"start the engine with the model's {flag}, or write {subject.at('reasoning')}: {{format: NAME}}"
