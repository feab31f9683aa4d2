"""Tool calls and reasoning of one model on one engine, as the data path deals with them.

What is decided and done is pure (`gateway.wire.tools`); here it meets what is known about the engine at run time, and
what is to be told goes to the metrics and the log.
"""

from dataclasses import replace
from typing import Final

import msgspec
import structlog

from engines.policy import NULL, Members
from gateway.metrics import Meters
from gateway.proxy.links import EngineLink
from gateway.settings.engines import Engine as EngineSettings
from gateway.settings.models import Model as ModelSettings
from gateway.wire.shape import ReasoningField, Stage
from gateway.wire.shape.plain import Plain
from gateway.wire.toolcalls.detect import Finding
from gateway.wire.toolcalls.history import rewrite_ids
from gateway.wire.toolcalls.spec import IdStyle
from gateway.wire.tools import (
    Explained,
    Facts,
    Parse,
    ReasoningRule,
    Tooled,
    explain,
    known_format,
    plan,
    prepare,
    read_ask,
)
from gateway.wire.tools.legacy import in_new_words, speaks_of_functions
from gateway.wire.tools.thinking import Thinking

NEEDS_PARSER: Final = b"--tool-call-parser"
"""Named by vLLM and Triton when they refuse tools for want of a parser."""

UNTOOLED: Final = Tooled()
"""Made for calls without tools to engines and models for which nothing has to be done."""

_CALLS: Final = b'"tool_calls"'
_THINKING_OFF: Final = (b'"enable_thinking":false', b'"thinking":false')
_decode_messages = msgspec.json.Decoder(list[dict[str, object]]).decode
_log = structlog.get_logger()


class Tooling:
    """One model on one engine. ``name``: as configured; ``model``: as the engine calls it."""

    __slots__ = ("_engine", "_link", "_meters", "_name", "_told", "found", "keeps_ids", "parse", "plain", "rule")

    def __init__(
        self, name: str, settings: ModelSettings, engine: EngineSettings, link: EngineLink, model: str, meters: Meters
    ) -> None:
        self._name = name
        self._engine = engine
        self._link = link
        self._meters = meters
        self._told = False
        self.parse = Parse(settings.tools.parse)
        self.found: Finding = known_format(settings.tools.format, engine.parser, link.profile.kind, model, name)
        thinking = settings.reasoning
        self.rule = ReasoningRule(thinking.format, thinking.opened, ReasoningField(thinking.field))
        wire = self.facts.wire
        # Whether a request's history may stay as it is, whatever is in it.
        self.keeps_ids = wire is None or wire.id_style is IdStyle.ANY
        hidden = link.profile_under(engine).answers.hides_length or settings.extras != "keep" or thinking.opened
        self.plain: Plain | None = None if hidden else Plain([word for pair in self.rule.pairs(wire) for word in pair])

    @property
    def facts(self) -> Facts:
        """What is known now."""
        link = self._link
        return Facts(
            link.profile.kind,
            self.parse,
            self.found,
            self._engine.parser,
            link.without_parser,
            self._engine.guided_decoding is True,
            link.engine.version or "",
            link.engine.name,
        )

    @property
    def explained(self) -> Explained:
        """Who reads the model's calls now, and why."""
        return explain(self.facts)

    def prepare(self, members: Members) -> Tooled:
        """A chat request made ready as far as tools are concerned. Raises ParameterRefused."""
        if self.keeps_ids and "tools" not in members and "functions" not in members:
            return UNTOOLED
        legacy = "functions" in members and self.parse is not Parse.OFF and speaks_of_functions(members)
        changed = in_new_words(members) if legacy else None
        asked = members if changed is None else changed
        if (renumbered := self._history(asked)) is not None:
            asked = changed = renumbered
        said = members.get("messages", NULL)
        ask = read_ask(asked, legacy=legacy, messages=said) if "tools" in asked else None
        if ask is None:
            return UNTOOLED if changed is None else Tooled(changed)
        facts = self.facts
        tooled = prepare(plan(facts, ask), facts, ask, asked)
        if changed is None:
            return tooled
        words = ("functions",) if legacy else ()
        return replace(
            tooled,
            members=tooled.members or changed,
            dropped=() if legacy else tooled.dropped,
            translated=(*words, *tooled.translated),
        )

    def stage(self, tooled: Tooled, members: Members, choices: int, seed: str) -> Stage | None:
        """The stage that reads the answer; None if there is nothing to read in it. ``seed``: the answer's own id."""
        rule = self.rule
        if rule.opened and _thinking_is_off(members):
            rule = replace(rule, opened=False)
        if tooled.reading is not None:
            return tooled.reading.stage(rule, choices, self._leaked, seed)
        return None if rule.format == "off" else Thinking(rule, self.facts.wire, choices)

    def learns(self, status: int, refusal: bytes) -> bool:
        """Whether an engine's refusal says that it has no parser, which need not stop a request made without it."""
        link = self._link
        if status != 400 or NEEDS_PARSER not in refusal or self.parse in (Parse.ENGINE, Parse.OFF):
            return False
        if not link.without_parser:
            link.without_parser = True
            _log.info("engine has no tool parser", engine=link.engine.name, calls="are read by the gateway")
        return True

    def _history(self, members: Members) -> Members | None:
        """The messages with ids as the model's template needs them; None if they may stay."""
        wire = self.facts.wire
        if self.keeps_ids or wire is None or _CALLS not in bytes(members.get("messages", b"")):
            return None
        try:
            messages = _decode_messages(members["messages"])
        except (msgspec.DecodeError, RecursionError):
            return None
        made = rewrite_ids(messages, wire.id_style)
        return None if made is messages else members | {"messages": msgspec.Raw(msgspec.json.encode(made))}

    def _leaked(self, emitted: str) -> None:
        self._meters.happened("tool_markup_leaked", self._name)
        if not self._told:
            self._told = True
            _log.warning(
                "tool-call markup in content",
                model=self._name,
                engine=self._link.engine.name,
                emits=emitted,
                configured=self.found.format or "nothing",
            )


def _thinking_is_off(members: Members) -> bool:
    """Whether a request switches the model's thinking off."""
    raw = b"".join(bytes(members.get("chat_template_kwargs", b"")).split())
    return any(sign in raw for sign in _THINKING_OFF)
