"""OpenAI's Harmony: messages with a header that names a channel and, for calls, a recipient (gpt-oss).

`<|channel|>analysis` is reasoning, `final` and `commentary` without a recipient are content, and a message to
`functions.NAME` is a call. The recipient stands in the role or in the channel; `<|start|>`, `<|constrain|>` and the
token that ends the message may be missing.
"""

import re
from dataclasses import dataclass
from typing import Final

from gateway.wire.toolcalls.cursor import CutError, MismatchError, Pull
from gateway.wire.toolcalls.kernels import json_calls
from gateway.wire.toolcalls.machine import Machine
from gateway.wire.toolcalls.marks import marks
from gateway.wire.toolcalls.sink import Channel
from gateway.wire.toolcalls.spec import COMMON_TURN_ENDS

_OPENERS: Final = ("<|start|>", "<|channel|>")
_ENDS: Final = ("<|end|>", "<|call|>", "<|return|>")
_WORDS: Final = marks(*_OPENERS, "<|message|>", *_ENDS, *COMMON_TURN_ENDS)
_HEADER: Final = marks(*_OPENERS, "<|message|>", "<|constrain|>", *_ENDS)
_AFTER_MESSAGE: Final = marks(*_OPENERS, *_ENDS, "assistant")
_RECIPIENT: Final = re.compile(r"\bto=([^\s<]+)")
_CHANNEL: Final = re.compile(r"<\|channel\|>\s*([a-z_]+)")
_HEADER_TOKEN: Final = re.compile(r"<\|(?:start|channel|constrain)\|>")
_HEADER_WORD: Final = re.compile(r"[\w.=/:-]+")
_OWN_WORDS: Final = ("assistant", "analysis", "commentary", "final", "json", "code")
_NOBODY: Final = frozenset({"assistant", "user", "system", "developer", "all"})
_MAX_HEADER: Final = 1024
_MAX_HEADER_WORDS: Final = 6
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
    def offered_by_us(self) -> bool:
        """Whether the recipient is a function of the request; others are tools that the model knows by itself."""
        return self.recipient.startswith("functions.")

    @property
    def function(self) -> str:
        """The function it calls; empty if it is no call."""
        return "" if self.recipient in _NOBODY else self.recipient.removeprefix("functions.")


def _parsed(raw: str) -> _Header:
    channels = _CHANNEL.findall(raw)
    recipients = _RECIPIENT.findall(raw)
    return _Header(channels[-1] if channels else "", recipients[-1] if recipients else "")


def _plausible(raw: str) -> bool:
    """Whether this can be a header: a few words of role, channel, recipient and type between its tokens."""
    words = _HEADER_TOKEN.sub(" ", raw).split()
    return len(words) <= _MAX_HEADER_WORDS and all(_HEADER_WORD.fullmatch(word) for word in words)


def _known(raw: str) -> bool:
    """Whether a header holds nothing but its own words, the last one perhaps cut short."""
    *words, last = _HEADER_TOKEN.sub(" ", raw).split() or [""]
    return all(word in _OWN_WORDS for word in words) and any(word.startswith(last) for word in _OWN_WORDS)


class HarmonyMachine(Machine):
    """Reads one answer in Harmony."""

    def run(self) -> Pull[None]:
        """Reads the whole answer."""
        channel = yield from self._first()
        inside = channel is not self.sink.content
        while True:
            word = yield from self.cursor.until(_WORDS, channel.write)
            if not word:
                return
            if word in _OPENERS:
                found = yield from self._message(word, channel)
                channel, inside = found or channel, inside or found is not None
            elif word == "<|message|>" and not inside:
                channel.edge()
                inside = True
            elif word in _ENDS and (not inside or (yield from self.cursor.ahead(_AFTER_MESSAGE)) != ""):
                channel.edge()
                channel, inside = self.sink.content, False
            elif word in COMMON_TURN_ENDS and word not in _ENDS:
                channel.turn_end(word)
            else:
                channel.write(word)

    @property
    def after_markup(self) -> bool:
        """Between messages there is nothing but headers."""
        return self.sink.content.at_edge

    @property
    def _thoughts(self) -> Channel:
        return self.sink.reasoning if self._setting.reasoning else self.sink.content

    def _message(self, word: str, channel: Channel) -> Pull[Channel | None]:
        """Reads a message's header that begins with `word`.

        Returns:
            Where its body belongs; None if it is none, and its first character is text of `channel`.
        """
        raw = word
        cursor = self.cursor

        def collect(text: str) -> None:
            nonlocal raw
            raw += text
            if len(raw) > _MAX_HEADER or not _plausible(raw):
                raise MismatchError

        cursor.mark(word)
        try:
            while (found := (yield from cursor.until(_HEADER, collect, tail=False))) and found != "<|message|>":
                if found in _ENDS:
                    break
                raw = found if found == "<|start|>" else raw + found
        except MismatchError:
            cursor.rewind()
            channel.write(cursor.take(cursor.pos + 1))
            return None
        channel.edge()
        header = _parsed(raw)
        if found != "<|message|>":
            self._headless(header, raw, channel)
            return self.sink.content
        return (yield from self._deliver(header, raw + found))

    def _headless(self, header: _Header, raw: str, channel: Channel) -> None:
        """A header without a message: nothing, unless it was about to make a call, or is none."""
        name = header.function
        self.cursor.release()
        if name and self._setting.calls and self.cursor.eof and self.cut and not raw.endswith(name):
            self.begin(name)
        elif name or not _known(raw):
            channel.write(raw)

    def _deliver(self, header: _Header, raw: str) -> Pull[Channel]:
        """Finds where the body of a message belongs; a call is read here."""
        content = self.sink.content
        if header.function and self._setting.calls and (yield from self._call(header)):
            return content
        self.cursor.release()
        if header.function and (header.offered_by_us or not self._setting.calls):
            content.write(raw)
            return content
        channel = self._thoughts if header.function or header.channel == "analysis" else content
        channel.edge()
        if self._setting.guided and channel is content:
            yield from self._lead()
        return channel

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
        return sink.count > before

    def _arguments(self, name: str) -> Pull[None]:
        """Reads a message's body as a call's arguments."""
        cursor = self.cursor
        self.named = (name, "")
        yield from cursor.spaces()
        fenced = yield from self.fence()
        char = yield from cursor.peek()
        if char and char != "<":
            yield from json_calls.read_arguments(self, name, "")
            if fenced:
                yield from self.fence_end()
            return
        word = yield from cursor.ahead(_AFTER_MESSAGE)
        if word == "" or (word is None and self.cut):
            raise CutError if word is None else MismatchError
        self.call(name, "{}")

    def _first(self) -> Pull[Channel]:
        """The beginning of the answer: a header whose opener was in the prompt, or the bare name of a channel."""
        cursor, content = self.cursor, self.sink.content
        if self._setting.starts_in_reasoning:
            return self._thoughts
        word = yield from cursor.lit(_LEAD)
        if not word and self._setting.guided:
            yield from self._lead()
            return content
        if word.endswith("to=") and "commentary" not in word:
            return (yield from self._message(word, content)) or content
        if word.endswith("<|message|>"):
            return (yield from self._deliver(_Header(word.removesuffix("<|message|>"), ""), word))
        if word == "analysis":
            char = yield from cursor.peek()
            if not (char.isupper() or char in ("'", '"')):
                content.write(word)
                return content
            self.sink.repair("stripped_markers")
            yield from self._stripped(self._thoughts)
        elif word and (yield from self._stripped_call(word)):
            yield from self._stripped(content)
        return content

    def _stripped(self, channel: Channel) -> Pull[None]:
        """Reads on in an answer whose special tokens were removed."""
        while True:
            word = yield from self.cursor.until(_STRIPPED, channel.write)
            channel.edge()
            if not word:
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
