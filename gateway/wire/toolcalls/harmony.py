"""OpenAI's Harmony: messages with a header that names a channel and, for calls, a recipient (gpt-oss).

`<|channel|>analysis` is reasoning, `final` and `commentary` without a recipient are content, and a message to
`functions.NAME` is a call. The recipient stands in the role or in the channel; `<|start|>`, `<|constrain|>` and the
token that ends the message may be missing.
"""

import re
from dataclasses import dataclass
from typing import Final

from gateway.wire.toolcalls.cursor import CutError, MismatchError, Pull
from gateway.wire.toolcalls.machine import Machine
from gateway.wire.toolcalls.marks import marks
from gateway.wire.toolcalls.sink import Channel
from gateway.wire.toolcalls.spec import COMMON_TURN_ENDS

_OPENERS: Final = ("<|start|>", "<|channel|>")
_ENDS: Final = ("<|end|>", "<|call|>", "<|return|>")
_BODY_ENDS: Final = marks(*_OPENERS, *_ENDS, *COMMON_TURN_ENDS)
_OUTSIDE: Final = marks(*_OPENERS, "<|message|>", *_ENDS, *COMMON_TURN_ENDS)
_HEADER: Final = marks(*_OPENERS, "<|message|>", "<|constrain|>", *_ENDS)
_AFTER_CALL: Final = marks(*_OPENERS, *_ENDS)
_RECIPIENT: Final = re.compile(r"\bto=([^\s<]+)")
_CHANNEL: Final = re.compile(r"<\|channel\|>\s*([a-z_]+)")
_NOBODY: Final = frozenset({"assistant", "user", "system", "developer", "all"})
_MAX_HEADER: Final = 1024
_LEAD: Final = marks(
    " to=", "to=", "analysis<|message|>", "commentary<|message|>", "final<|message|>",
    "analysis", "commentary to=functions.", "assistantcommentary to=functions.",
)  # fmt: skip
"""What an answer may begin with if its first special tokens were in the prompt, or were all removed."""
_STRIPPED: Final = marks(
    "assistantfinal", "assistantanalysis", "assistantcommentary to=functions.", "assistantcommentary"
)
_STRIPPED_NAME: Final = re.compile(r"[\w.-]+")
_STRIPPED_TYPE: Final = marks("json", "code", "<|constrain|>json")


@dataclass(frozen=True, slots=True)
class _Header:
    """A message's header: where its body belongs."""

    channel: str
    recipient: str

    @property
    def function(self) -> str:
        """The function it calls; empty if it is no call."""
        return "" if self.recipient in _NOBODY else self.recipient.removeprefix("functions.")


def _parsed(raw: str) -> _Header:
    channels = _CHANNEL.findall(raw)
    recipients = _RECIPIENT.findall(raw)
    return _Header(channels[-1] if channels else "", recipients[-1] if recipients else "")


class HarmonyMachine(Machine):
    """Reads one answer in Harmony."""

    def run(self) -> Pull[None]:
        """Reads the whole answer."""
        if self._setting.starts_in_reasoning:
            yield from self._body(self._thoughts)
        else:
            yield from self._first()
        while True:
            content = self.sink.content
            word = yield from self.cursor.until(_OUTSIDE, content.write)
            if not word:
                return
            if word in _OPENERS:
                yield from self._message(word)
            elif word == "<|message|>":
                content.edge()
                yield from self._body(content)
            else:
                content.turn_end(word)

    @property
    def after_markup(self) -> bool:
        """Between messages there is nothing but headers."""
        return self.sink.content.at_edge

    @property
    def _thoughts(self) -> Channel:
        return self.sink.reasoning if self._setting.reasoning else self.sink.content

    def _message(self, word: str) -> Pull[None]:
        """Reads a message whose header begins with `word`."""
        raw = word
        cursor = self.cursor

        def collect(text: str) -> None:
            nonlocal raw
            raw += text
            if len(raw) > _MAX_HEADER:
                raise MismatchError

        cursor.mark(word)
        try:
            while (found := (yield from cursor.until(_HEADER, collect))) and found != "<|message|>":
                if found in _ENDS:
                    break
                raw = found if found == "<|start|>" else raw + found
        except MismatchError:
            cursor.rewind()
            self.sink.content.write(cursor.take(cursor.pos + 1))
            return
        header = _parsed(raw)
        if found != "<|message|>":
            self._headless(header, raw)
            return
        yield from self._deliver(header, raw + found)

    def _headless(self, header: _Header, raw: str) -> None:
        """A header without a message: nothing, unless it was about to make a call."""
        name = header.function
        if not name or not self._setting.calls:
            self.cursor.release()
            self.sink.content.edge()
        elif self.cursor.eof and self.cut and not raw.endswith(name):
            self.begin(name)
        else:
            self.cursor.release()
            self.sink.content.write(raw)

    def _deliver(self, header: _Header, raw: str) -> Pull[None]:
        """Reads the body of a message."""
        content = self.sink.content
        if header.function:
            if self._setting.calls and (yield from self._call(header)):
                return
            self.cursor.release()
            content.write(raw)
            yield from self._body(content)
            return
        self.cursor.release()
        channel = self._thoughts if header.channel == "analysis" else content
        channel.edge()
        if self._setting.guided and channel is content:
            yield from self._lead()
        yield from self._body(channel)

    def _call(self, header: _Header) -> Pull[bool]:
        """Tries to read the body of a message as a call's arguments."""
        cursor, sink = self.cursor, self.sink
        cursor.mark()
        before = sink.count
        try:
            yield from self._arguments(self.name(header.function))
        except MismatchError as error:
            self._stop(error, before)
        self.named = None
        if sink.count == before:
            return False
        yield from self._body(sink.content)
        return True

    def _arguments(self, name: str) -> Pull[None]:
        """Reads a message's body as a call's arguments."""
        cursor = self.cursor
        self.named = (name, "")
        yield from cursor.spaces()
        if (yield from cursor.peek()) == "{":
            self.begin(name)
            yield from self.json(self.arguments)
            self.end()
            return
        word = yield from cursor.ahead(_AFTER_CALL)
        if word == "" or (word is None and self.cut):
            raise CutError if word is None else MismatchError
        self.call(name, "{}")

    def _body(self, channel: Channel) -> Pull[None]:
        """Reads a message's body up to its end, or the next header."""
        while True:
            word = yield from self.cursor.until(_BODY_ENDS, channel.write)
            if word in _OPENERS:
                channel.edge()
                yield from self._message(word)
                return
            if not word or word in _ENDS:
                channel.edge()
                return
            channel.turn_end(word)

    def _first(self) -> Pull[None]:
        """The beginning of the answer: a header whose opener was in the prompt, or the bare name of a channel."""
        cursor = self.cursor
        word = yield from cursor.lit(_LEAD)
        if not word:
            return
        if word.endswith("to=") and "commentary" not in word:
            yield from self._message(word)
        elif word.endswith("<|message|>"):
            yield from self._deliver(_Header(word.removesuffix("<|message|>"), ""), word)
        elif word == "analysis":
            char = yield from cursor.peek()
            if not (char.isupper() or char in ("'", '"')):
                self.sink.content.write(word)
                return
            self.sink.repair("stripped_markers")
            yield from self._stripped(self._thoughts)
        elif not (yield from self._stripped_call(word)):
            return
        else:
            yield from self._stripped(self.sink.content)

    def _stripped(self, channel: Channel) -> Pull[None]:
        """Reads on in an answer whose special tokens were removed."""
        words = marks(*_STRIPPED.words, *_OUTSIDE.words)
        while True:
            word = yield from self.cursor.until(words, channel.write)
            channel.edge()
            if not word:
                return
            if word in _OPENERS:
                yield from self._message(word)
                return
            if word == "assistantanalysis":
                channel = self._thoughts
            elif word.endswith("to=functions."):
                yield from self._stripped_call(word)
                channel = self.sink.content
            else:
                channel = self.sink.content

    def _stripped_call(self, word: str) -> Pull[bool]:
        cursor, before = self.cursor, self.sink.count
        cursor.mark(word)
        self.only_offered = True
        try:
            yield from self._stripped_arguments()
        except MismatchError as error:
            self._stop(error, before)
        self.only_offered = False
        if self.sink.count == before:
            self.sink.content.write(cursor.take(cursor.pos + len(word)))
            return False
        return True

    def _stripped_arguments(self) -> Pull[None]:
        cursor = self.cursor
        name = self.name((yield from cursor.run(_STRIPPED_NAME, _MAX_HEADER)))
        self.named = (name, "")
        yield from cursor.spaces()
        yield from cursor.lit(_STRIPPED_TYPE)
        yield from cursor.spaces()
        if (yield from cursor.peek()) != "{" or not self._setting.calls:
            raise MismatchError
        self.begin(name)
        yield from self.json(self.arguments)
        self.end()
        cursor.release()
