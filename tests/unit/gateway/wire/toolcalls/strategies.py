"""Random calls, texts and cuts."""

import json
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any, Literal

from hypothesis import strategies as st

from gateway.wire.toolcalls import Parsed, format_named, parse

from .renderers import FAMILIES

SURROGATES: Sequence[Literal["Cs"]] = ("Cs",)
"""What cannot be written as UTF-8."""

_PROPERTIES: dict[str, Any] = {
    "s": {"type": "string"},
    "i": {"type": "integer"},
    "n": {"type": "number"},
    "b": {"type": "boolean"},
    "l": {"type": "array", "items": {"type": "string"}},
    "o": {"type": "object", "properties": {"k": {"$ref": "#/$defs/Text"}, "z": {"type": ["integer", "null"]}}},
}
NAMES = ("get_weather", "get_time", "fs-read.v2")
TOOLS: list[dict[str, Any]] = [
    {
        "type": "function",
        "function": {
            "name": name,
            "parameters": {"type": "object", "properties": _PROPERTIES, "$defs": {"Text": {"type": "string"}}},
        },
    }
    for name in NAMES
]
ALL = tuple(FAMILIES)
SAID = ("Let me check.", "Ok\n", "1 < 2, sure", "naïve 北京 🌧 ok", "a `code` b\n\n")
AFTER = ("Done.", "\nThat is all.", " and <b>more</b>")


def markers(name: str) -> list[str]:
    """Everything that means something in a format."""
    found: dict[str, None] = {}
    for grammar in format_named(name).grammars:
        for words in (
            grammar.opens,
            grammar.closes,
            grammar.item_opens,
            grammar.item_closes,
            grammar.skips,
            grammar.param.opens,
            grammar.param_closes,
            grammar.value_opens,
            grammar.head.ends,
            grammar.head.stops,
            grammar.quotes,
        ):
            found.update(dict.fromkeys(words))
    return list(found)


def _strings(name: str) -> st.SearchStrategy[str]:
    """Strings that the format can carry, its own closers among them."""
    closers = [word for grammar in format_named(name).grammars for word in (*grammar.item_closes, *grammar.closes)]
    quotes = [quote for grammar in format_named(name).grammars for quote in grammar.quotes]
    traps = [f"before {word} after" for word in closers]
    traps += ["", "null", "true", "007", "42", "[1, 2]", '{"k": 1}', "  padded  ", "x\ny", "code:\n    return 1\n"]
    traps += [
        "&amp; <b>",
        'it\'s "q"',
        "back\\slash \\n \\u0041",
        "北京 naïve 🌧",
        "tab\there",
        "a, b; c}]",
        "<|im_end|>",
    ]
    free = st.text(st.characters(exclude_categories=SURROGATES), max_size=12)
    own = [*markers(name), "]<]minimax[>["]

    def carried(text: str) -> bool:
        if text.startswith(("\n", "\r")) or text.endswith("\r"):
            return False
        return not any(quote in text for quote in quotes) and not any(len(word) > 1 and word in text for word in own)

    return st.one_of(st.sampled_from(traps), free.filter(carried))


def arguments(name: str) -> st.SearchStrategy[dict[str, Any]]:
    """Arguments of the tools above."""
    strings = _strings(name)
    each: dict[str, st.SearchStrategy[Any]] = {
        "s": strings,
        "i": st.integers(-(10**15), 10**15),
        "n": st.one_of(st.floats(allow_nan=False, allow_infinity=False, width=32), st.integers(-9, 9)),
        "b": st.booleans(),
        "l": st.lists(strings, max_size=3),
        "o": st.fixed_dictionaries({}, optional={"k": strings, "z": st.integers(-9, 9)}),
    }
    return st.fixed_dictionaries({}, optional=each)


def calls(name: str, most: int = 3) -> st.SearchStrategy[list[tuple[str, dict[str, Any]]]]:
    """Some calls."""
    one = st.tuples(st.sampled_from(NAMES), arguments(name))
    return st.lists(one, min_size=1, max_size=most)


@st.composite
def answers(draw: st.DrawFn, name: str, most: int = 3) -> tuple[str, str, list[tuple[str, dict[str, Any]]]]:
    """A whole answer: its raw text, the visible part of it, and its calls."""
    family = FAMILIES[name]
    made = draw(calls(name, most))
    before = draw(st.sampled_from(("", *SAID))) if family.before else ""
    after = draw(st.sampled_from(("", *AFTER))) if family.after else ""
    return (family.wrap(before) if before else "") + family.render(made) + after, before + after, made


@st.composite
def mangled(draw: st.DrawFn, name: str) -> str:
    """An answer with pieces of markup put in, taken out or swapped, as models under stress write it."""
    extra = [
        *markers(name),
        "<think>",
        "</think>",
        "{",
        "}",
        '"',
        "[",
        "]",
        "\n",
        " ",
        "\\",
        "'",
        ":",
        ",",
        "x",
        "(",
        "=",
    ]
    extra += [
        "get_weather",
        "<|im_end|>",
        "```",
        "\ud83c",
        "\udf27",
        "<|channel|>",
        "<|message|>",
        "<|start|>",
        "<|call|>",
    ]
    bits = st.sampled_from(extra)
    if draw(st.integers(0, 4)) == 0:
        return "".join(draw(st.lists(bits, max_size=12)))
    text = draw(answers(name, 2))[0]
    for _ in range(draw(st.integers(1, 3))):
        at = draw(st.integers(0, len(text)))
        to = min(len(text), at + draw(st.sampled_from((0, 0, 1, 2, 5, 15))))
        text = text[:at] + draw(st.one_of(bits, st.just(""))) + text[to:]
    return text


def pieces(draw: st.DrawFn, text: str) -> list[str]:
    """A random split of a text."""
    cuts = sorted(draw(st.lists(st.integers(0, len(text)), max_size=12)))
    bounds = [0, *cuts, len(text)]
    return [text[a:b] for a, b in pairwise(bounds)]


Seen = tuple[str | None, str | None, list[tuple[str, str, bool]], str]


def seen(parsed: Parsed) -> Seen:
    """All of a result but its random ids."""
    calls = [(call.name, call.arguments, call.complete) for call in parsed.calls]
    return parsed.content, parsed.reasoning, calls, parsed.finish_reason


def read(text: str | list[str], name: str, **settings: Any) -> Seen:  # noqa: ANN401 - handed on as it is
    """`parse` with the tools above."""
    settings.setdefault("tools", TOOLS)
    return seen(parse(text, format=name, **settings))


def decoded(arguments: str) -> Mapping[str, Any]:
    """Arguments as a client reads them."""
    value = json.loads(arguments)
    assert isinstance(value, dict)
    return value
