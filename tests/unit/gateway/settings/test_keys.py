# ruff: noqa: E501 - whole messages are compared
"""Keys in the file, and in a file of their own: read, checked, and never shown."""

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest

from gateway.settings import ConfigErrors, Loaded, load
from gateway.settings.advice import load_advised

Wrong = Callable[..., list[str]]
Read = Callable[..., Loaded]

BASE = "engines: {q: {kind: vllm, urls: [http://h:1]}}\nmodels: {chat: {engine: q, aliases: [gpt]}}\n"
A, B = "a" * 64, "b" * 64


def key(name: str, digits: str = A, more: str = "") -> str:
    return f'{{name: {name}, hash: "sha256:{digits}"{more}}}'


def test_a_key_has_everything_that_may_be_said_of_it(read: Read) -> None:
    more = ", models: [chat, gpt], limits: {tpm: 200k, burst: 5s}, priority: -1.5, expires: 2030-01-31, tags: [x]"
    (found,) = read(f"{BASE}keys: [{key('team-a', more=more)}]").settings.keys

    assert (found.name, found.hash, found.models) == ("team-a", f"sha256:{A}", ("chat", "gpt"))
    assert (found.limits.tpm, found.limits.burst, found.limits.rpm) == (200_000, 5.0, None)
    assert (found.priority, found.tags, found.disabled) == (-1.5, ("x",), False)
    assert found.expires == datetime(2030, 1, 31, tzinfo=UTC).timestamp()


@pytest.mark.parametrize(
    ("text", "asks"),
    [("", False), ("keys: []", True), (f"keys: [{key('a')}]", True), ("limits: {rpm: 1}", False)],
)
def test_keys_are_asked_for_where_the_file_speaks_of_them(read: Read, text: str, asks: bool) -> None:
    assert read(BASE + text).settings.asks_for_keys == asks


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (
            "keys:",
            "3:1: keys: has no entries: without keys everybody may call, with an empty list nobody (leave it out",
        ),
        ("keys: [{name: a}]", '3:8: keys[0].hash: is required (for example hash: "sha256:0'),
        ("keys: [{name: a, hash: sk-SECRET}]", "3:24: keys[0].hash: expected sha256: and 64 hexadecimal digits, never"),
        (
            f"keys: [{key('a')}, {key('a', B)}]",
            "3:107: keys[1].name: a key already has this name (keep one of the two)",
        ),
        (f"keys: [{key('a')}, {key('b')}]", "3:116: keys[1].hash: the same key is there already (keep one of the two)"),
        (f"keys: [{key('a', more=', models: [cht]')}]", "3:108: keys[0].models[0]: no model has this name"),
        (f"keys: [{key('a', more=', expires: soon')}]", "3:108: keys[0].expires: expected a date or a time such as"),
        (f"keys: [{key('a', more=', limits: {rpm: 0}')}]", "3:113: keys[0].limits.rpm: expected a count above 0"),
        (f"keys: [{key('a', more=', limit: {rpm: 5}')}]", '3:99: keys[0].limit: unknown key (did you mean "limits"?)'),
        ("limits: {overall: {rps: 5}}", '3:20: limits.overall.rps: unknown key (did you mean "rpm"?)'),
        (
            "state: {redis: http://u:SECRET@h}",
            "3:16: state.redis: expected a URL that begins with redis, rediss, unix,",
        ),
        ("state: {redis: redis+sentinel://h:26379}", "3:16: state.redis: expected the name that the sentinels watch"),
        ("state: {redis: redis://h:99999}", "3:16: state.redis: expected hosts with ports from 1 to 65535"),
        ("state: {when_away: shut}", "3:20: state.when_away: expected one of open, closed"),
        ("keys_file: missing.yaml", "missing.yaml: no such file"),
    ],
)
def test_every_mistake_has_its_place_and_shows_no_secret(wrong: Wrong, text: str, problem: str) -> None:
    found = wrong(BASE + text)

    assert len(found) == 1, found
    assert found[0].removeprefix("turnout.yaml:").startswith(problem)
    assert "SECRET" not in found[0]


def test_a_keys_file_adds_its_keys(read: Read, tmp_path: Path) -> None:
    (tmp_path / "keys.yaml").write_text(f"- {key('b', B)}\n")
    found = read(f"{BASE}keys_file: keys.yaml\nkeys: [{key('a')}]")

    assert [key.name for key in found.settings.keys] == ["a", "b"]
    assert found.files == (tmp_path / "turnout.yaml", tmp_path / "keys.yaml")


def test_a_changed_keys_file_is_another_configuration(read: Read, tmp_path: Path) -> None:
    hashes = set()
    for text in (f"- {key('a')}\n", f"- {key('a')}\n- {key('b', B)}\n", ""):
        (tmp_path / "keys.yaml").write_text(text)
        found = read(f"{BASE}keys_file: keys.yaml")
        hashes.add(found.text_hash)
        assert found.settings.asks_for_keys
    assert len(hashes) == 3


def test_mistakes_in_the_keys_file_point_into_it(tmp_path: Path) -> None:
    (tmp_path / "turnout.yaml").write_text(f"{BASE}keys_file: keys.yaml\nkeys: [{key('a')}]\n")
    (tmp_path / "keys.yaml").write_text(f"- {key('b', B)}\n- {key('a', 'c' * 64)}\n- {{name: d, hash: sk-SECRET}}\n")
    with pytest.raises(ConfigErrors) as caught:
        load(tmp_path / "turnout.yaml", {})

    problems = caught.value.problems
    assert [str(problem).removeprefix(f"{tmp_path}/").partition(" (")[0] for problem in problems] == [
        "keys.yaml:2:10: [1].name: a key already has this name",
        "keys.yaml:3:19: [2].hash: expected sha256: and 64 hexadecimal digits, never the key itself",
    ]
    assert caught.value.lines_of(problems[1])[2].startswith("- {name: d, hash: ****")


def test_a_keys_file_that_holds_no_list_says_what_is_expected(wrong: Wrong, tmp_path: Path) -> None:
    (tmp_path / "keys.yaml").write_text("name: a\n")

    assert wrong(f"{BASE}keys_file: keys.yaml") == [
        'keys.yaml: expected a list of keys (- {name: team-a, hash: "sha256:…"})'
    ]


def test_a_key_whose_time_is_over_is_warned_of_where_it_stands(tmp_path: Path) -> None:
    """In the file and in the keys file; one that ends later, or never, is not."""
    ends = ", expires: 2030-01-31"
    (tmp_path / "turnout.yaml").write_text(f"{BASE}keys_file: keys.yaml\nkeys: [{key('a', A, ends)}]\n")
    (tmp_path / "keys.yaml").write_text(f"- {key('b', B)}\n- {key('c', 'c' * 64, ends)}\n")
    over = datetime(2030, 1, 31, tzinfo=UTC).timestamp()
    found = load_advised(tmp_path / "turnout.yaml", {}, at=over)

    assert [str(problem).removeprefix(f"{tmp_path}/") for problem in found.warnings] == [
        'keys.yaml:2:103: warning: [1].expires: has passed: the key "c" is refused (give it a later date, or take it out)',
        'turnout.yaml:4:108: warning: keys[0].expires: has passed: the key "a" is refused (give it a later date, or take it out)',
    ]
    assert [len(found.lines_of(problem)) for problem in found.warnings] == [0, 4]
    assert load_advised(tmp_path / "turnout.yaml", {}, at=over - 1).warnings == ()
