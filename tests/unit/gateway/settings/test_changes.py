"""What an edit changes: nothing that has an effect is left out, and it is said in terms of what clients see."""

from dataclasses import replace
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.settings.changes import Change, Kind
from gateway.settings.changes import changes as changes_at
from gateway.settings.redacted import redacted_tree, settings_of
from gateway.settings.tree import Settings
from tests.support.json_type import Json
from tests.support.settings_edits import edits, trees

NOW = datetime(2027, 1, 1, tzinfo=UTC).timestamp()


def changes(old: Settings, new: Settings) -> tuple[Change, ...]:
    return changes_at(old, new, NOW)


def effect(settings: Settings) -> Json:
    """All that a configuration means, in one form for everything that can be written in two."""
    tree = settings.model_dump()
    for name, model in settings.models.items():
        for key in ("engine", "model", "targets"):
            del tree["models"][name][key]
        tree["models"][name]["targets"] = [target.model_dump() for target in model.targets_of(name)]
    for name, engine in settings.engines.items():
        tree["engines"][name]["limits"] = "first_token" in engine.timeouts.model_fields_set
    return tree | {"asks": settings.asks_for_keys}


@given(trees())
def test_equal_trees_differ_in_nothing(settings: Settings) -> None:
    same = settings.model_copy(deep=True)
    assert changes(settings, same) == ()
    assert changes(settings, settings_of(redacted_tree(settings))) == ()


@given(st.data())
def test_every_edit_that_has_an_effect_appears(data: st.DataObject) -> None:
    """And none that has no effect."""
    old = data.draw(trees())
    new = data.draw(edits(old))
    assert bool(changes(old, new)) == (effect(old) != effect(new))


@given(trees(), trees())
def test_what_one_way_adds_the_other_way_removes(one: Settings, other: Settings) -> None:
    turned = {Kind.ADDED: Kind.REMOVED, Kind.REMOVED: Kind.ADDED, Kind.CHANGED: Kind.CHANGED}

    def outline(found: tuple[Change, ...]) -> list[tuple[str, Kind]]:
        return sorted((change.subject, change.kind) for change in found if not change.path[2:])

    there = outline(tuple(replace(change, kind=turned[change.kind]) for change in changes(one, other)))
    assert there == outline(changes(other, one))


@given(trees(), trees())
def test_every_name_that_is_lost_breaks_something(old: Settings, new: Settings) -> None:
    def names(settings: Settings) -> set[str]:
        return {one for name, model in settings.models.items() for one in (name, *model.aliases)}

    lost = {str(change.path[-1]) for change in changes(old, new) if change.breaks and change.path[0] == "models"}
    assert lost >= names(old) - names(new)


OLD: dict[str, Json] = {
    "engines": {
        "qwen": {"kind": "vllm", "urls": ["http://a:1", "http://b:1"], "api_key": "sk-1"},
        "llama": {"kind": "trtllm", "urls": ["http://l:1"]},
    },
    "models": {"chat": {"engine": "qwen", "aliases": ["gpt-4o"]}, "small": {"engine": "llama", "model": "l"}},
}


def edited(**parts: Json) -> Settings:
    """The old configuration with some of its parts exchanged; `section__name` is one deep."""
    tree = {key: dict(value) for key, value in OLD.items()}
    for key, value in parts.items():
        section, _, name = key.partition("__")
        if name:
            tree[section][name] = {**tree[section].get(name, {}), **value} if value is not None else None
            tree[section] = {one: part for one, part in tree[section].items() if part is not None}
        else:
            tree[section] = value
    return Settings.model_validate(tree)


CASES: list[tuple[str, Settings, list[str]]] = [
    (
        "a model that goes",
        edited(models__small=None),
        ['removed model small: "small" is gone: requests for it get 404!'],
    ),
    ("a model that comes", edited(models__big={"engine": "qwen"}), ["added model big: new: chat, big on qwen"]),
    (
        "a model that moves",
        edited(models__chat={"engine": "llama"}),
        ["changed model chat: moves from qwen (chat) to llama (chat)"],
    ),
    (
        "a canary",
        edited(models__chat={"engine": None, "targets": [{"engine": "qwen", "weight": 19}, {"engine": "llama"}]}),
        ["changed model chat: also runs on llama (chat)"],
    ),
    (
        "an alias that moves",
        edited(models__chat={"aliases": []}, models__small={"aliases": ["gpt-4o"]}),
        ['changed model small: "gpt-4o" now stands for small instead of chat'],
    ),
    (
        "an alias that goes",
        edited(models__chat={"aliases": []}),
        ['removed model chat: "gpt-4o" is gone: requests for it get 404!'],
    ),
    (
        "limits and policies",
        edited(models__chat={"policy": "prefix_affinity", "max_in_flight": 9, "timeouts": {"total": "1h"}}),
        [
            "changed model chat: policy: least_requests → prefix_affinity",
            "changed model chat: max_in_flight: not set → 9",
            "changed model chat: total: not set → 1h",
        ],
    ),
    (
        "another task",
        edited(models__chat={"task": "embedding"}),
        ["changed model chat: is for embedding now, not for chat!"],
    ),
    (
        "replicas and keys of an engine",
        edited(engines__qwen={"urls": ["http://b:1", "http://c:1"], "api_key": "sk-2"}),
        [
            "removed engine qwen: leaves: http://a:1",
            "added engine qwen: new replica: http://c:1",
            "changed engine qwen: api_key: a secret → a secret",
        ],
    ),
    (
        "a limit written down",
        edited(engines__qwen={"timeouts": {"first_token": "60s"}}),
        ["changed engine qwen: first_token (60s) now holds also for answers in one piece"],
    ),
    (
        "what needs a restart",
        edited(server={"port": 9090, "max_body": "1MiB"}),
        ["changed server: port: 8080 → 9090 (restart)", "changed server: max_body: 64MiB → 1MiB"],
    ),
    (
        "keys for callers",
        edited(keys=[{"name": "team-a", "hash": f"sha256:{'0' * 64}"}]),
        ["changed keys: callers need a key now!", "added key team-a: may call from now on"],
    ),
    (
        "models found out instead of named",
        edited(models={}),
        ["changed models: models are now whatever the engines list"],
    ),
]


@pytest.mark.parametrize(("new", "told"), [case[1:] for case in CASES], ids=[case[0] for case in CASES])
def test_a_change_says_what_clients_will_see(new: Settings, told: list[str]) -> None:
    found = changes(Settings.model_validate(OLD), new)
    assert [
        f"{one.kind} {one.subject}: {one.meaning}{'!' if one.breaks else ''}{' (restart)' if one.restart else ''}"
        for one in found
    ] == told


def test_two_ways_to_write_one_target_are_no_change() -> None:
    assert (
        changes(Settings.model_validate(OLD), edited(models__chat={"engine": None, "targets": [{"engine": "qwen"}]}))
        == ()
    )


def test_shares_are_told_as_shares() -> None:
    targets = [{"engine": "qwen", "weight": 3}, {"engine": "llama"}]
    change = changes(Settings.model_validate(OLD), edited(models__chat={"engine": None, "targets": targets}))[0]
    assert (change.before, change.after) == ("qwen (chat)", "qwen (chat) 75%, llama (chat) 25%")


def test_no_secret_is_told_and_a_hidden_one_cannot_be_compared() -> None:
    old, new = Settings.model_validate(OLD), edited(engines__qwen={"api_key": "sk-2"}, admin={"token": "sk-3"})
    assert "sk-" not in repr(changes(old, new))
    assert [change.key for change in changes(settings_of(redacted_tree(old)), new)] == ["admin.token"]


def keyed(*keys: Json, **more: Json) -> Settings:
    """The old configuration with keys: a name, and what else the key has."""
    entries = [{"hash": f"sha256:{number:064}", **key} for number, key in enumerate(keys)]
    return Settings.model_validate({**OLD, "keys": entries, **more})


A: Json = {"name": "a"}
B: Json = {"name": "b"}
PAST, FUTURE = "2026-12-31", "2027-06-01T18:00:00Z"

KEY_CASES: list[tuple[str, Settings, Settings, list[str]]] = [
    (
        "no keys any more",
        keyed(A),
        Settings.model_validate(OLD),
        [
            "keys: opens the gateway to everybody: no key is asked for any more",
            "key a: is gone: whoever shows it is let in as everybody is",
        ],
    ),
    ("the last key goes, and the list stays", keyed(A), keyed(), ["key a: is refused from now on!"]),
    ("a key goes", keyed(A, B), keyed(A), ["key b: is refused from now on!"]),
    (
        "keys that nobody could use go",
        keyed(A, B | {"disabled": True}, {"name": "c", "expires": PAST}),
        keyed(A),
        [
            "key b: is gone; it was refused already: it is disabled",
            "key c: is gone; it was refused already: it expired at 2026-12-31 00:00 UTC",
        ],
    ),
    (
        "keys come that cannot be used",
        keyed(A),
        keyed(A, B | {"disabled": True}, {"name": "c", "expires": PAST}),
        ["key b: new, but refused: it is disabled", "key c: new, but refused: it expired at 2026-12-31 00:00 UTC"],
    ),
    (
        "a key is disabled",
        keyed(A),
        keyed(A | {"disabled": True}),
        ["key a: is refused from now on: it is disabled!"],
    ),
    (
        "an expired key is disabled",
        keyed(A | {"expires": PAST}),
        keyed(A | {"expires": PAST, "disabled": True}),
        ["key a: stays refused: it is disabled (disabled: false → true)"],
    ),
    (
        "a key has expired",
        keyed(A),
        keyed(A | {"expires": PAST}),
        ["key a: is refused from now on: it expired at 2026-12-31 00:00 UTC!"],
    ),
    (
        "a key will expire",
        keyed(A),
        keyed(A | {"expires": FUTURE}),
        ["key a: is refused from 2027-06-01 18:00 UTC on"],
    ),
    (
        "a disabled key is let in again",
        keyed(A | {"disabled": True}),
        keyed(A),
        ["key a: may call again (disabled: true → false)"],
    ),
    (
        "another key under the same name",
        keyed(A),
        keyed(A | {"hash": f"sha256:{'f' * 64}"}),
        ["key a: is another key: the old one is refused from now on!"],
    ),
    (
        "a model is taken from a key",
        keyed(A | {"models": ["chat", "small"]}),
        keyed(A | {"models": ["small"]}),
        ["key a: loses chat: its requests for it are refused!"],
    ),
    (
        "a model is taken from a key that is refused anyway",
        keyed(A | {"models": ["chat", "small"], "disabled": True}),
        keyed(A | {"models": ["small"], "disabled": True}),
        ["key a: loses chat: its requests for it are refused"],
    ),
    (
        "an alias is named no longer, but its model is",
        keyed(A | {"models": ["chat", "gpt-4o"]}),
        keyed(A | {"models": ["chat"]}),
        ["key a: no longer names gpt-4o, and loses nothing by it"],
    ),
    (
        "models are taken from a key that had all",
        keyed(A),
        keyed(A | {"models": ["small"]}),
        ["key a: may ask only for small from now on!"],
    ),
    (
        "a key that had all models gets a list of all",
        keyed(A),
        keyed(A | {"models": ["small", "chat"]}),
        ["key a: may ask only for small, chat from now on"],
    ),
    (
        "more models for a key",
        keyed(A | {"models": ["chat"]}),
        keyed(A | {"models": ["chat", "small"]}),
        ["key a: may ask for small from now on"],
    ),
    (
        "all models for a key",
        keyed(A | {"models": ["chat"]}),
        keyed(A),
        ["key a: may ask for every model from now on"],
    ),
]


@pytest.mark.parametrize(("old", "new", "told"), [case[1:] for case in KEY_CASES], ids=[case[0] for case in KEY_CASES])
def test_a_change_of_keys_says_who_is_refused_what(old: Settings, new: Settings, told: list[str]) -> None:
    """Only what was let in until now breaks anybody."""
    found = changes(old, new)
    assert [f"{one.subject}: {one.meaning}{'!' if one.breaks else ''}" for one in found] == told
