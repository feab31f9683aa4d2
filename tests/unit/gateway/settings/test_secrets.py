"""Values from outside the file, and how they stay hidden."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.settings.secrets import MissingVariableError, expand, masked, names_secret, read_secret


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("${KEY}", "value"),
        ("a-${KEY}-${KEY}", "a-value-value"),
        ("${AWAY:-plan b}", "plan b"),
        ("${AWAY:-}", ""),
        ("${EMPTY:-instead}", "instead"),
        ("${EMPTY}", ""),
        ("$${KEY}", "${KEY}"),
        ("$KEY costs $5", "$KEY costs $5"),
    ],
)
def test_references_are_replaced_as_a_shell_would(text: str, expected: str) -> None:
    assert expand(text, {"KEY": "value", "EMPTY": ""}) == expected


@pytest.mark.parametrize("text", ["${AWAY}", "x${KEY}${AWAY}"])
def test_a_missing_variable_is_named(text: str) -> None:
    with pytest.raises(MissingVariableError, match="environment variable AWAY is not set"):
        expand(text, {"KEY": "value"})


@pytest.mark.parametrize(
    "text", ["${}", "${1X}", "${A-B}", "${A B}", "${A", "x${A:-b", "${", "$${A} ${A", "${A:-${B}}"]
)
def test_a_malformed_reference_is_refused(text: str) -> None:
    with pytest.raises(MissingVariableError, match="expected"):
        expand(text, {})


@given(text=st.text(), value=st.text())
def test_text_without_a_reference_stays_as_it_is(text: str, value: str) -> None:
    plain = text.replace("{", "")
    assert expand(plain, {"A": value}) == plain


@given(value=st.text())
def test_a_value_is_not_expanded_again(value: str) -> None:
    assert expand("${A}", {"A": value}) == value


def test_a_secret_file_is_read_without_its_line_break(tmp_path: Path) -> None:
    (tmp_path / "key").write_text("sk-123\n")
    assert read_secret(f"file:{tmp_path}/key") == "sk-123"


def test_a_secret_file_that_cannot_be_used_is_refused(tmp_path: Path) -> None:
    (tmp_path / "empty").write_text("\n")
    (tmp_path / "binary").write_bytes(b"\xff\xfe")
    for name, reason in [
        ("away", "cannot read"),
        ("empty", "is empty"),
        ("binary", "is not text"),
        (".", "cannot read"),
    ]:
        with pytest.raises(ValueError, match=reason):
            read_secret(f"file:{tmp_path}/{name}")
    with pytest.raises(ValueError, match="cannot read"):
        read_secret("file:/\0")
    with pytest.raises(ValueError, match="absolute path"):
        read_secret("file:key")


@pytest.mark.parametrize("secret", ["two\nlines", "cr\rlf", "with blank", "naïve", "\x00"])
def test_a_secret_that_would_break_a_header_is_refused_without_being_quoted(secret: str) -> None:
    with pytest.raises(ValueError, match="printable ASCII") as caught:
        read_secret(secret)
    assert secret not in str(caught.value)


@pytest.mark.parametrize("key", ["api_key", "api_kye", "apikey", "API_KEY", "token", "tokn", "password", "openai_key"])
def test_a_key_that_may_hold_a_secret_is_recognised(key: str) -> None:
    assert names_secret(key)


@pytest.mark.parametrize("key", ["first_token", "token_inputs", "keys", "kind", "urls", "model", "total", "tools"])
def test_ordinary_keys_are_not_taken_for_secrets(key: str) -> None:
    assert not names_secret(key)


@pytest.mark.parametrize(
    ("line", "shown"),
    [
        ("  api_key: sk-1 # prod", "  api_key: **** * ****"),
        ("qwen: {kind: vllm, api_key: sk-1}", "qwen: {kind: vllm, api_key: *****"),
        ('  "token" : x', '  "token" : *'),
        ("urls: [http://me:pw@host:1]", "urls: [http://*****@host:1]"),
        ("port: 8080", "port: 8080"),
    ],
)
def test_a_line_is_shown_with_stars_over_secrets_in_the_same_width(line: str, shown: str) -> None:
    assert masked(line) == shown
