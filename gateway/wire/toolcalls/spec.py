# ruff: noqa: RUF001 - the markers of some formats hold full-width bars
"""The vocabulary in which wire formats are described: a `Format` is data, one machine reads them all.

A format names the ways (`Grammar`) in which a model family writes calls, how its reasoning is fenced, and which tokens
end a turn. A grammar is a section (`opens … closes`) of items (`item_opens … item_closes`) whose inside one of a few
kernels reads.
"""

from dataclasses import dataclass
from enum import Enum, auto
from functools import cached_property
from typing import Final

from gateway.wire.toolcalls.marks import Marks, marks


class Kernel(Enum):
    """How the inside of an item is written."""

    JSON = auto()
    """`{"name": …, "arguments": {…}}`, or a list of such objects."""
    KEYED = auto()
    """`[{"name": {…arguments…}}, …]`."""
    NAME_JSON = auto()
    """A name, a separator, a JSON object."""
    XML = auto()
    """A name in a tag, then one tag (or pair of tags) for each argument."""
    NESTED_XML = auto()
    """As `XML`, with tags named after the arguments, and nested for objects and lists."""
    PYTHONIC = auto()
    """`[f(a='x', b=1), g()]`."""
    OBJECT = auto()
    """`call:f{k:<|"|>v<|"|>,n:1}`."""


class Trim(Enum):
    """Which newlines around an XML value are markup."""

    NONE = auto()
    ONE = auto()
    """One after the opening tag and one before the closing tag, each by itself."""
    FRAMED = auto()
    """One before the closing tag only if there was one after the opening tag: the template writes values in line, so
    that the last newline of a file belongs to the file."""


class Implicit(Enum):
    """What a call inside unclosed reasoning means."""

    NEVER = auto()
    """It is text of the reasoning."""
    AT_ONCE = auto()
    """The reasoning ended there."""
    AT_END = auto()
    """The reasoning ended there if it is never closed and nothing but calls follows."""


@dataclass(frozen=True)
class Head:
    """A tag that carries a name.

    Args:
        opens: what it begins with.
        ends: what ends it and is consumed.
        stops: what ends it and is left to be read.
        attribute: the attribute that holds the name; empty if the name stands by itself.
    """

    opens: tuple[str, ...] = ()
    ends: tuple[str, ...] = ()
    stops: tuple[str, ...] = ()
    attribute: str = ""


@dataclass(frozen=True)
class Grammar:
    """One way of writing calls.

    Args:
        kernel: how the inside of an item is written.
        opens: section openers. Without any, each item stands for itself.
        closes: section closers.
        item_opens: item openers. Without any, items stand directly in the section.
        item_closes: item closers, passed over wherever they stand between items.
        skips: other markup between items, and between the parts of a `NAME_JSON` item.
        head: the tag that names the function (XML), or what ends the name (NAME_JSON).
        param: the tag that names an argument (XML).
        param_closes: what ends an argument's value.
        value_opens: what stands between an argument's tag and its value.
        type_attribute: the attribute of an argument's tag that types its value.
        type_element: what stands around a value's type, between the argument's tag and the value.
        typed_as_string: the type which means raw text.
        trim: which newlines around a value are markup.
        json_opens, json_closes: markup around arguments that are one JSON object inside an XML item.
        name_keys, arguments_keys, id_keys: members of a JSON call.
        quotes: string delimiters of the OBJECT kernel.
        coerces: whether delimited strings of the OBJECT kernel are typed by the schema.
        at_start: markup-free shape that counts only at the start of the answer and only for offered names.
        only_offered: a call must name an offered tool.
        fenced: the shape may stand in a code fence.
        prefixes: what may stand before the name (`functions.`), and is no part of it.
        suffix: what may stand after the name of a PYTHONIC call, and is no part of it.
        indexed: names end in `:INDEX`, and name and index are the call's id.
        list_of: opening brackets that begin a list of JSON calls where a name is expected (Mistral).
    """

    kernel: Kernel
    opens: tuple[str, ...] = ()
    closes: tuple[str, ...] = ()
    item_opens: tuple[str, ...] = ()
    item_closes: tuple[str, ...] = ()
    skips: tuple[str, ...] = ()
    head: Head = Head()
    param: Head = Head()
    param_closes: tuple[str, ...] = ()
    value_opens: tuple[str, ...] = ()
    type_attribute: str = ""
    type_element: Head = Head()
    typed_as_string: str = ""
    trim: Trim = Trim.FRAMED
    json_opens: tuple[str, ...] = ()
    json_closes: tuple[str, ...] = ()
    name_keys: tuple[str, ...] = ("name", "tool_name")
    arguments_keys: tuple[str, ...] = ("arguments", "parameters", "args", "kwargs")
    id_keys: tuple[str, ...] = ("id", "tool_call_id")
    quotes: tuple[str, ...] = ()
    coerces: bool = False
    at_start: bool = False
    only_offered: bool = False
    fenced: bool = False
    prefixes: tuple[str, ...] = ()
    suffix: str = ""
    indexed: bool = False
    list_of: bool = False

    @cached_property
    def inside(self) -> Marks:
        """What may stand between items."""
        return marks(*self.closes, *self.item_opens, *self.item_closes, *self.skips, *SEPARATORS)

    @cached_property
    def body(self) -> Marks:
        """What may stand between the arguments of an XML item."""
        return marks(*self.param.opens, *self.json_opens, *self.structure)

    @cached_property
    def structure(self) -> tuple[str, ...]:
        """Everything that shows that an XML value or item is over."""
        outer = (*self.param_closes, *self.item_closes, *self.item_opens, *self.closes, *self.opens)
        return tuple(dict.fromkeys((*outer, *self.skips)))

    @cached_property
    def after_value(self) -> Marks:
        """What can follow the end of an XML value: of two closers in a row, the first is data."""
        follows = (word for word in self.structure if word not in self.param_closes)
        return marks(*self.param.opens, *follows, *COMMON_TURN_ENDS)

    @cached_property
    def value_ends(self) -> Marks:
        """What ends an XML value, or may do so if its closer was forgotten."""
        return marks(*self.param_closes, *self.param.opens, *self.item_closes, *self.closes)

    @cached_property
    def after_item(self) -> Marks:
        """What can follow the end of an XML item."""
        return marks(*self.closes, *self.item_opens, *self.opens, *self.skips, *COMMON_TURN_ENDS)

    @cached_property
    def instead_of_arguments(self) -> Marks:
        """What shows that a named call has no arguments."""
        return marks(*self.item_closes, *self.closes, *self.item_opens, *self.opens, *COMMON_TURN_ENDS, "</s>")

    @cached_property
    def after_section(self) -> Marks:
        """What can follow the end of a section."""
        return marks(*self.item_opens, *self.opens, *COMMON_TURN_ENDS)


class IdStyle(Enum):
    """Which tool-call ids a family's chat template needs in the history."""

    ANY = auto()
    KIMI = auto()
    """`functions.NAME:INDEX`, counted over the conversation."""
    MISTRAL = auto()
    """Nine letters or digits."""


@dataclass(frozen=True)
class Reasoning:
    """How a family fences its reasoning.

    Args:
        name: what configuration calls it.
        pairs: (opener, closer); text openers count at the start of the answer only.
        leads: further pairs, which count at the start of the answer only.
        anywhere: the openers are special tokens and count wherever they stand.
        transparent: markup around the answer that is dropped.
    """

    name: str
    pairs: tuple[tuple[str, str], ...]
    leads: tuple[tuple[str, str], ...] = ()
    anywhere: bool = False
    transparent: tuple[str, ...] = ()


@dataclass(frozen=True)
class Format:
    """A wire format.

    Args:
        name: ours, as in configuration.
        families: the models that speak it, for people.
        grammars: the ways it writes calls; the first is the one its template teaches.
        reasoning: name of the reasoning family.
        implicit: what a call inside unclosed reasoning means.
        turn_ends: tokens that end a turn beside the common ones.
        transparent: markup that is dropped wherever it stands in content.
        id_style: ids that its template needs.
        special: its markers are special tokens, removed by default detokenisation.
        restarts: text after which the answer starts again, for shapes that count only at its start.
        foreign: what other families write after the same opener; it counts for offered tools.
    """

    name: str
    families: str
    grammars: tuple[Grammar, ...]
    reasoning: str = "think"
    implicit: Implicit = Implicit.NEVER
    turn_ends: tuple[str, ...] = ()
    transparent: tuple[str, ...] = ()
    id_style: IdStyle = IdStyle.ANY
    special: bool = False
    restarts: tuple[str, ...] = ()
    foreign: tuple[Grammar, ...] = ()

    @cached_property
    def openers(self) -> dict[str, Grammar]:
        """Which grammar each opener belongs to; earlier grammars win."""
        found: dict[str, Grammar] = {}
        for grammar in self.grammars:
            if not grammar.at_start:
                for opener in (*grammar.opens, *grammar.item_opens):
                    found.setdefault(opener, grammar)
        return found

    @cached_property
    def bare(self) -> tuple[Grammar, ...]:
        """The shapes without markup."""
        return tuple(grammar for grammar in self.grammars if grammar.at_start)


SEPARATORS: Final = (",", ";")
COMMON_TURN_ENDS: Final = (
    "<|im_end|>", "<|eot_id|>", "<|eom_id|>", "<|end_of_text|>", "<|call|>", "<|return|>", "<|end|>", "<|observation|>",
    "<|user|>", "<|endoftext|>", "<|eot|>", "<|eom|>", "<turn|>", "<|tool_response>", "<end_of_turn>", "<|end_of_msg|>",
    "<|END_RESPONSE|>", "<|END_OF_TURN_TOKEN|>", "<｜end▁of▁sentence｜>", "<seed:eos>", "<|message_sep|>",
    "<|eos|>", "<|end_of_sentence|>", "<|assistant_end|>", "<eos>",
)  # fmt: skip
"""Tokens that end a turn in some family; they are dropped at the end of a text and beside calls."""
