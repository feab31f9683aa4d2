"""Tool calls: what clients would get through the gateway, and whether the format and the parsers fit the model.

The requests are those that the gateway would send, and their answers are read as it reads them (`tool_asking`).
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from engines.profile import EngineKind
from gateway.doctor.asking import Answers, Heard, Question
from gateway.doctor.checks.check import of_model
from gateway.doctor.checks.inference import finish_of, generated, message_of, words
from gateway.doctor.checks.parsers import format_line, has_no_parser, seen_format, start_flag
from gateway.doctor.checks.tool_asking import NAME, TOOLS, Asked, Seen, asked, plain, seen, seen_in_stream
from gateway.doctor.finding import Finding, Level
from gateway.doctor.subject import Subject
from gateway.wire.toolcalls import parse
from gateway.wire.toolcalls.detect import from_text
from gateway.wire.tools import EngineParses, Parse, Plan

_NAMED: Final = {"type": "function", "function": {"name": NAME}}

_HOLLOW: Final = 4
"""Tokens that may be generated for nothing: ends of turns and the like."""


class Format:
    """The model writes calls in the format that the file, or its parser, or its name says."""

    name = "tool_format"

    def asks(self, subject: Subject) -> Sequence[Question]:
        """The model's own text."""
        one = plain(subject)
        return () if one is None else (one.question,)

    def judge(self, subject: Subject, answers: Answers) -> Iterable[Finding]:
        """Another format."""
        one = plain(subject)
        if one is None or not answers[one.question].ok:
            return
        text = message_of(answers[one.question]).get("content")
        known = subject.facts.found
        if not isinstance(text, str) or not text or not known.format:
            return
        if parse(text, format=known.format, tools=TOOLS).calls:
            return
        wrote = seen_format(text, TOOLS)
        if not wrote:
            return
        lost = not isinstance(_plan(subject), EngineParses)
        evidence = f"the model writes {wrote}, and {_SOURCES[known.source].format(known)}"
        level = Level.ERROR if lost else Level.WARNING
        yield of_model(level, subject, self.name, evidence, format_line(subject, wrote))


_SOURCES: Final = {
    "configuration": "the file says {0.evidence}",
    "parser": "the engine's parser is said to be {0.evidence}",
    "name": "its name suggests {0.format}",
}


def _plan(subject: Subject) -> Plan | None:
    one = asked(subject, "auto")
    return None if one is None else one.plan


class Auto:
    """A call that the model makes by itself arrives as one."""

    name = "tool_calls"

    def asks(self, subject: Subject) -> Sequence[Question]:
        """The question as the gateway puts it, and the model's own text."""
        found = (asked(subject, "auto"), plain(subject))
        return tuple(dict.fromkeys(one.question for one in found if one is not None))

    def judge(self, subject: Subject, answers: Answers) -> Iterable[Finding]:
        """No parser, the wrong parser, or one that loses calls."""
        one = asked(subject, "auto")
        own = plain(subject)
        if one is None or own is None:
            return
        heard, text = answers[one.question], _text(answers[own.question])
        if heard.failure:
            yield of_model(Level.ERROR, subject, self.name, f"no answer with tools: {heard.failure}", _LOG)
        elif has_no_parser(heard.body) and heard.status == 400:
            yield self._no_parser(subject, text)
        elif heard.status != 200:
            evidence = f"a request with tools is refused with status {heard.status}: {words(heard)}"
            yield of_model(Level.ERROR, subject, self.name, evidence, _LOG)
        else:
            yield from self._answered(subject, one, heard, text)

    def _no_parser(self, subject: Subject, text: str) -> Finding:
        facts = subject.facts
        wrote = seen_format(text, TOOLS) or facts.found.format
        flag = start_flag(subject.profile.kind, wrote)
        if facts.parse is Parse.ENGINE:
            fix = f"start it with {flag}, or write {subject.at('tools')}: {{parse: gateway}}"
            evidence = "the engine has no tool parser, and tools.parse is engine: every request with tools fails"
            return of_model(Level.ERROR, subject, self.name, evidence, fix)
        said = f"the file says that its parser is {facts.parser}, and" if facts.parser else "it"
        evidence = f"the engine has no tool parser: {said} refuses tools; the gateway reads calls out of the text"
        fix = f"start it with {flag}, or say so: {subject.engine_at('parser')}: none"
        return of_model(Level.WARNING, subject, self.name, evidence, fix)

    def _answered(self, subject: Subject, one: Asked, heard: Heard, text: str) -> Iterable[Finding]:
        got = seen(subject, one, heard)
        leaked = self._markup(subject, one, got, heard)
        if leaked:
            yield from self._leaked(subject, got, leaked)
        elif got.calls and not got.right:
            evidence = f"a call arrives broken: {_shown(got.calls)}"
            yield of_model(Level.ERROR, subject, self.name, evidence, f"{subject.at('tools')}: {{parse: gateway}}")
        elif not got.calls and (wrote := seen_format(text, TOOLS)) and isinstance(one.plan, EngineParses):
            evidence = f"the model calls the tool ({wrote}), and the engine's parser loses the call"
            flag = start_flag(subject.profile.kind, wrote)
            fix = f"start the engine with {flag}, or write {_read_here(subject, wrote)}"
            yield of_model(Level.ERROR, subject, self.name, evidence, fix)
        elif not got.calls and not got.content and finish_of(heard) == "stop" and (generated(heard) or 0) > _HOLLOW:
            evidence = f"{generated(heard)} tokens were generated, and neither a call nor a text arrives"
            fix = f"its tool parser does not fit the model: start it with {_likely(subject)}, or without one and with "
            fix += f"{subject.engine_at('parser')}: none"
            yield of_model(Level.ERROR, subject, self.name, evidence, fix)

    def _markup(self, subject: Subject, one: Asked, got: Seen, heard: Heard) -> str:
        """The format of markup that should not have been in the content, where the engine was to read it."""
        if isinstance(one.plan, EngineParses):
            return got.leaked or from_text(got.content).format
        # trtllm-serve takes its markup away wherever it has a parser, whatever it is asked.
        silent = subject.profile.kind is EngineKind.TRTLLM and subject.facts.parse is Parse.AUTO
        return from_text(_content(heard)).format if silent else ""

    def _leaked(self, subject: Subject, got: Seen, leaked: str) -> Iterable[Finding]:
        facts = subject.facts
        if facts.parses is False and got.right:
            return  # the file says that there is no parser
        flag = start_flag(subject.profile.kind, leaked)
        evidence = f"the engine gives {leaked} markup as text: it has no tool parser, or the wrong one"
        says = f"; if it has none, say so: {subject.engine_at('parser')}: none"
        if subject.profile.kind is EngineKind.VLLM:  # without one it would have refused the tools
            evidence, says = f"the engine gives {leaked} markup as text: it has the wrong tool parser", ""
        if got.right:
            fix = f"start it with {flag}{says}"
            more = f"{evidence}; the gateway reads it"
            yield of_model(Level.WARNING, subject, self.name, more, fix)
        else:
            fix = f"start it with {flag}, or write {_read_here(subject, leaked)}"
            yield of_model(Level.ERROR, subject, self.name, f"{evidence}, and clients get no call", fix)


class Streamed:
    """A call that arrives whole in an answer in one piece arrives in a stream too: parsers have two ways of working."""

    name = "tool_stream"

    def asks(self, subject: Subject) -> Sequence[Question]:
        """The question as the gateway puts it, in both ways."""
        found = (asked(subject, "auto"), asked(subject, "auto", stream=True))
        return tuple(one.question for one in found if one is not None)

    def judge(self, subject: Subject, answers: Answers) -> Iterable[Finding]:
        """Right in one piece, and wrong in a stream. What is wrong in both `Auto` tells."""
        whole, streamed = asked(subject, "auto"), asked(subject, "auto", stream=True)
        if whole is None or streamed is None or not answers[whole.question].ok:
            return
        if not seen(subject, whole, answers[whole.question]).right:
            return
        heard = answers[streamed.question]
        got = seen_in_stream(subject, streamed, heard)
        if heard.ok and got.right:
            return
        what = heard.failure or (words(heard) if heard.status != 200 else _shown(got.calls))
        evidence = f"a call that arrives in an answer in one piece does not arrive in a stream: {what}"
        fix = f"let the gateway read the text: {_read_here(subject, subject.facts.found.format or 'auto')}"
        yield of_model(Level.ERROR, subject, self.name, evidence, fix)


class Forced:
    """A call that the client asks for is made. ``choice``: `required`, or the tool by name."""

    def __init__(self, name: str, choice: object) -> None:
        self.name = name
        self._choice = choice

    def asks(self, subject: Subject) -> Sequence[Question]:
        """The question as the gateway puts it."""
        one = asked(subject, self._choice)
        return () if one is None else (one.question,)

    def judge(self, subject: Subject, answers: Answers) -> Iterable[Finding]:
        """Refused, or no call."""
        one = asked(subject, self._choice)
        if one is None:
            return
        heard = answers[one.question]
        if has_no_parser(heard.body) and heard.status == 400:
            return  # `Auto` tells it
        if heard.failure or heard.status != 200:
            what = heard.failure or f"status {heard.status}: {words(heard)}"
            level = Level.ERROR if _promised(subject) else Level.WARNING
            yield of_model(level, subject, self.name, f"a forced call fails: {what}", _forcing(subject, heard))
        elif finish_of(heard) != "length" and not seen(subject, one, heard).right:
            evidence = "a forced call does not arrive"
            yield of_model(Level.WARNING, subject, self.name, evidence, _forcing(subject, heard))


CHECKS: Final = (Auto(), Format(), Streamed(), Forced("tool_required", "required"), Forced("tool_named", _NAMED))
_LOG: Final = "look at the engine's log: its chat template may not know tools"


def _likely(subject: Subject) -> str:
    """The flag for the model's format, as far as it is known."""
    return start_flag(subject.profile.kind, subject.facts.found.format)


def _promised(subject: Subject) -> bool:
    return subject.profile.kind is not EngineKind.TRTLLM or subject.site.settings.guided_decoding is True


def _forcing(subject: Subject, heard: Heard) -> str:
    if subject.profile.kind is EngineKind.TRTLLM:
        backend = "guided_decoding_backend: xgrammar in the YAML of its --config, and --tool_parser"
        say = f"leave out {subject.engine_at('guided_decoding')}" if _promised(subject) else ""
        return f"start it with {backend}" + (f", or {say}" if say else "")
    if subject.profile.kind is EngineKind.VLLM and heard.status >= 500:
        return f"start it with a --reasoning-parser too, or write {subject.at('tools')}: {{parse: gateway}}"
    return f"start it with guided decoding (structured outputs), or write {subject.at('tools')}: {{parse: gateway}}"


def _read_here(subject: Subject, wrote: str) -> str:
    return f"{subject.at('tools')}: {{format: {wrote}, parse: gateway}}"


def _content(heard: Heard) -> str:
    content = message_of(heard).get("content")
    return content if isinstance(content, str) else ""


def _text(heard: Heard) -> str:
    return _content(heard) if heard.ok else ""


def _shown(calls: Sequence[Mapping[str, Any]]) -> str:
    if not calls:
        return "there is none"
    function = calls[0].get("function") or {}
    return f"{function.get('name')} {function.get('arguments')}"[:120]
