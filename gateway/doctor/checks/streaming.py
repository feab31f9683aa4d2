"""Streams: events, their end, usage, the stop reason at a token limit; and what happens when the client leaves."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import Any, Final

from engines.profile import EngineKind, Operation
from gateway.doctor.asking import Answers, Heard, How, Question
from gateway.doctor.checks.check import of_model
from gateway.doctor.checks.inference import generated, message_of, words
from gateway.doctor.finding import Finding, Level
from gateway.doctor.subject import Subject, raw, user

LIMIT: Final = 6
"""Tokens at which the story is cut."""

LONG: Final = 128
"""Tokens that an engine may make of the story that nobody reads any more."""

BRIEF: Final = 64
"""Tokens that the story takes whose length nobody limits, about."""

STORY: Final = "Tell me a story."


@dataclass(frozen=True, slots=True)
class Events:
    """A stream, taken apart."""

    texts: tuple[str, ...]
    finish: str
    usage: Mapping[str, Any] | None
    done: bool
    error: str

    @property
    def tokens(self) -> int | None:
        """What it took, if it says."""
        count = (self.usage or {}).get("completion_tokens")
        return count if isinstance(count, int) else None


def events_of(body: bytes) -> Events:
    """Reads the `data:` lines of a stream; what is no JSON object is passed over."""
    texts: list[str] = []
    finish, error, done = "", "", False
    usage: Mapping[str, Any] | None = None
    for line in body.split(b"\n"):
        if not line.startswith(b"data:"):
            continue
        payload = line[5:].strip()
        if payload == b"[DONE]":
            done = True
            continue
        event = Heard(body=payload).json()
        if event.get("error"):
            error = payload.decode("utf-8", "replace")[:200]
        given = event.get("usage")
        usage = given if isinstance(given, dict) else usage
        for choice in _choices(event):
            finish = str(choice.get("finish_reason") or finish)
            delta = choice.get("delta")
            said = delta if isinstance(delta, dict) else {}
            texts += [text for name in _SPOKEN if isinstance(text := said.get(name), str) and text]
    return Events(tuple(texts), finish, usage, done, error)


_SPOKEN: Final = ("content", "reasoning", "reasoning_content")


def _choices(event: Mapping[str, Any]) -> Iterable[Mapping[str, Any]]:
    given = event.get("choices")
    return [one for one in given if isinstance(one, dict)] if isinstance(given, list) else []


def short_story(subject: Subject) -> Question | None:
    """A story that is cut after a few tokens, streamed, with usage."""
    members = {"messages": user(STORY), "max_tokens": LIMIT, "temperature": 0, "stream": True}
    return subject.asks(Operation.CHAT, members | {"stream_options": {"include_usage": True}})


class Stream:
    """A stream has events, an end, and the usage that was asked for."""

    name = "stream"

    def asks(self, subject: Subject) -> Sequence[Question]:
        """The cut story."""
        question = short_story(subject) if subject.settings.task == "chat" else None
        return () if question is None else (question,)

    def judge(self, subject: Subject, answers: Answers) -> Iterable[Finding]:
        """Refused, broken off, without text, or without usage."""
        for question in self.asks(subject):
            heard = answers[question]
            events = events_of(heard.body)
            log = "look at the engine's log"
            if heard.failure:
                yield of_model(Level.ERROR, subject, self.name, f"the stream breaks off: {heard.failure}", log)
            elif heard.status != 200:
                evidence = f"streams are refused with status {heard.status}: {words(heard)}"
                yield of_model(Level.ERROR, subject, self.name, evidence, log)
            elif events.error:
                yield of_model(Level.ERROR, subject, self.name, f"an error in the stream: {events.error}", log)
            elif not events.texts or not events.finish:
                what = "no text" if not events.texts else "no finish reason"
                fix = "does something in between buffer or change streams? Ask the engine directly"
                yield of_model(Level.ERROR, subject, self.name, f"the stream has {what}", fix)
            elif events.usage is None:
                yield of_model(Level.WARNING, subject, self.name, _NO_USAGE, _usage_fix(subject))
            elif _repeats(events.texts):
                evidence = "events hold the whole text so far instead of only what is new"
                yield of_model(Level.ERROR, subject, self.name, evidence, "renew the engine")


_NO_USAGE: Final = "no usage in the stream although it was asked for: token limits and counts have to be guessed"


def _usage_fix(subject: Subject) -> str:
    if subject.profile.kind is EngineKind.TRITON:
        return "its model must have the outputs num_input_tokens and num_output_tokens (Triton's vLLM backend has them)"
    return "does something in between drop the last event? Ask the engine directly, or renew it"


def _repeats(texts: Sequence[str]) -> bool:
    """Whether every event begins with the one before, or a later one with all that was said before it."""
    growing = len(texts) > 2 and all(
        len(after) > len(before) and after.startswith(before) for before, after in pairwise(texts)
    )
    said = list(accumulate(texts))
    return growing or any(
        len(before) > 3 and after.startswith(before) for before, after in zip(said, texts[1:], strict=False)
    )


class StopReason:
    """An answer that is cut says so."""

    name = "stop_reason"

    def asks(self, subject: Subject) -> Sequence[Question]:
        """The cut story."""
        question = short_story(subject) if subject.settings.task == "chat" else None
        return () if question is None else (question,)

    def judge(self, subject: Subject, answers: Answers) -> Iterable[Finding]:
        """Another reason than `length` at the limit. Where an engine is known to hide it, usage has to tell."""
        for question in self.asks(subject):
            events = events_of(answers[question].body)
            if not events.finish or events.finish == "length":
                continue
            hidden = subject.profile.answers.hides_length
            if hidden or events.tokens is None or events.tokens < LIMIT:
                continue
            evidence = f"an answer cut at {LIMIT} tokens ends with '{events.finish}' instead of 'length'"
            fix = (
                "half an answer passes for a whole one: renew the engine, or let clients compare usage with max_tokens"
            )
            yield of_model(Level.WARNING, subject, self.name, evidence, fix)


class DefaultTokens:
    """Triton stops after 16 tokens where nobody says how many there may be."""

    name = "default_tokens"

    def asks(self, subject: Subject) -> Sequence[Question]:
        """A brief story without a limit, as a client sends it that asks Triton directly."""
        if subject.profile.kind is not EngineKind.TRITON or subject.settings.task != "chat":
            return ()
        brief = [{"role": "system", "content": "Answer in two sentences."}, *user(STORY)]
        path = subject.profile.paths[Operation.CHAT].decode()
        members = {"messages": brief, "temperature": 0, "stop": ["\n\n"]}
        return (subject.plainly(path, raw(members), tokens=BRIEF),)

    def judge(self, subject: Subject, answers: Answers) -> Iterable[Finding]:
        """A story that ends in the middle of a sentence, after few tokens."""
        for question in self.asks(subject):
            heard = answers[question]
            tokens = generated(heard)
            text = str(message_of(heard).get("content") or "").rstrip()
            if not heard.ok or tokens is None or tokens > BRIEF or not text or text[-1] in _ENDS:
                continue
            evidence = (
                f"without max_tokens it stops after {tokens} tokens; the gateway always sends a number, and whoever "
                "asks the engine directly is cut"
            )
            fix = "start it with --default-max-tokens 4096, or as many as its context leaves"
            yield of_model(Level.WARNING, subject, self.name, evidence, fix)


_ENDS: Final = frozenset(".!?…\"')*`")


class Leaving:
    """When a client leaves, the engine stops working for it."""

    name = "disconnect"

    def asks(self, subject: Subject) -> Sequence[Question]:
        """A long story, left at its beginning. Triton is known to tell it to the end."""
        if subject.profile.kind is EngineKind.TRITON or subject.settings.task != "chat":
            return ()
        members = {"messages": user(STORY), "max_tokens": LONG, "temperature": 0, "stream": True}
        question = subject.asks(Operation.CHAT, members, how=How.LEAVE)
        return () if question is None else (question,)

    def judge(self, subject: Subject, answers: Answers) -> Iterable[Finding]:
        """Its metrics still count the request. Nothing is said where other requests run, or where no metric is."""
        for question in self.asks(subject):
            left = answers[question].left
            if left is None or left.before != 0 or not left.during or not left.after:
                continue
            evidence = f"{left.seconds:.1f} s after its client had gone, a request still counts as running"
            fix = (
                "the engine works for nobody: does a proxy in between keep the connection open? "
                "If not, limit answers (max_tokens) and renew the engine"
            )
            yield of_model(Level.WARNING, subject, self.name, evidence, fix)
