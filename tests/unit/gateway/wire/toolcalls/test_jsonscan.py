"""The incremental JSON reader against Python's own."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.wire.toolcalls.jsonscan import JsonScanner
from gateway.wire.toolcalls.jsontext import as_value, dumps, quoted, unquoted, unquoted_beginning

VALUES = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False, allow_infinity=False), st.text()),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=5), inner, max_size=3)),
    max_leaves=8,
)


def scan(pieces: list[str]) -> tuple[str, str, list[str], bool, bool]:
    """What came out, what was left over, repairs, done, bad."""
    out: list[str] = []
    repairs: list[str] = []
    scanner = JsonScanner(out.append, repairs.append)
    left = ""
    for piece in pieces:
        end = scanner.feed(piece, 0)
        left += piece[end:]
    if not scanner.done:
        scanner.close()
    return "".join(out), left, repairs, scanner.done, scanner.bad


@settings(max_examples=150, deadline=None)
@given(VALUES, st.booleans(), st.sampled_from((None, 1)), st.integers(1, 7))
def test_valid_json_comes_out_byte_for_byte_and_ends_where_it_ends(
    value: object, ascii_only: bool, indent: int | None, size: int
) -> None:
    """Whatever the pieces; what follows is left alone."""
    text = json.dumps(value, ensure_ascii=ascii_only, indent=indent)
    rest = "</tool_call>}"
    pieces = [(text + rest)[at : at + size] for at in range(0, len(text + rest), size)]
    assert scan(pieces) == (text, rest, [], True, False)


@settings(max_examples=150, deadline=None)
@given(st.text(alphabet="{}[]\":,\\u0aet1-. \n'Nn", max_size=20))
def test_what_is_called_done_is_json(text: str) -> None:
    """Any soup of JSON characters: done means Python reads it, and pieces make no difference."""
    out, left, repairs, done, bad = scan([text])
    assert scan(list(text)) == (out, left, repairs, done, bad)
    if done:
        as_value(out)
    if not repairs and not bad:
        assert (out + left).replace(" ", "").replace("\n", "") == text.replace(" ", "").replace("\n", "")


@pytest.mark.parametrize(
    ("text", "wanted", "repair"),
    [
        ('["a\nb"]', '["a\\nb"]', "raw_control_character"),
        ('["a\x01b"]', '["a\\u0001b"]', "raw_control_character"),
        ("{'a': 'b\"c'}", '{"a": "b\\"c"}', "single_quotes"),
        ('["it\\\'s"]', '["it\'s"]', "bad_escape"),
        ('["C:\\dir"]', '["C:\\\\dir"]', "bad_escape"),
        ('["\\u12x"]', '["\\\\u12x"]', "bad_escape"),
        ("[1, 2, ]", "[1, 2 ]", "trailing_comma"),
        ('{"a": 1,}', '{"a": 1}', "trailing_comma"),
        ("[True, None]", "[true, null]", "python_literal"),
    ],
)
def test_what_models_get_wrong_is_repaired_and_counted(text: str, wanted: str, repair: str) -> None:
    """Each repair by its name."""
    out, left, repairs, done, _ = scan([text])
    assert (out, left, done) == (wanted, "", True)
    assert set(repairs) == {repair}
    as_value(out)


@pytest.mark.parametrize(
    "text",
    [
        "{a: 1}",
        "[1 2]",
        '{"a" 1}',
        "[1.2.3]",
        "[01]",
        "[+1]",
        "[NaN]",
        "[,]",
        "{,}",
        '{"a": }',
        "[}",
        "[1,,2]",
        "{1: 2}",
    ],
)
def test_what_is_not_json_is_bad(text: str) -> None:
    """And nothing before the mistake is lost."""
    out, left, _, done, bad = scan([text])
    assert bad
    assert not done
    assert out + left == text


@pytest.mark.parametrize(
    ("text", "missing"),
    [
        ('{"a": {"b": [1', "]}}"),
        ('{"a": 1', "}"),
        ('{"a": "x"', "}"),
        ('{"a": "x', ""),
        ('{"a": ', ""),
        ('{"a"', ""),
        ("{", ""),
    ],
)
def test_it_knows_whether_only_brackets_are_missing(text: str, missing: str) -> None:
    """Inside a string, after a colon or a comma, more than that is missing."""
    scanner = JsonScanner(lambda _: None, lambda _: None)
    scanner.feed(text + " ", 0)
    assert scanner.missing() == missing


def test_deep_nesting_is_refused() -> None:
    """Rather than a stack overflow in whoever reads it."""
    assert scan(["[" * 600])[4]


@settings(max_examples=100, deadline=None)
@given(st.text(st.characters(exclude_categories=())))
def test_strings_are_quoted_for_utf8(text: str) -> None:
    """Lone surrogates are escaped; everything is read back."""
    made = quoted(text)
    made.encode()
    assert json.loads(made) == text
    assert json.loads(dumps([text])) == [text]


def test_cut_strings_are_read_as_far_as_they_go() -> None:
    """A half escape is left out."""
    assert unquoted('a\\"b\\u0041') == 'a"bA'
    for cut in ("\\", "\\u", "\\u0", "\\u00", "\\u004"):
        assert unquoted_beginning('a\\"b' + cut) == 'a"b'
    assert unquoted_beginning("") == ""
    assert unquoted("\\ud83c") == "?"
