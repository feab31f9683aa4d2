"""The settings as they may be shown."""

import json

import pytest

from gateway.settings.redacted import ForeignTreeError, redacted_tree, settings_of
from gateway.settings.tree import Settings

TREE = {
    "server": {"port": 9090, "drain": "5s"},
    "engines": {
        "q": {"kind": "vllm", "urls": ["http://h:1"], "api_key": "sk-marked", "timeouts": {"first_token": "60s"}},
        "t": {"kind": "triton", "urls": ["dns+http://t:9000"], "api_key": ""},
    },
    "models": {"m": {"targets": [{"engine": "q"}, {"engine": "t", "weight": 2}], "fallback_on": ["overload"]}},
    "retry": {"budget": "20%"},
    "admin": {"token": "tok-marked"},
}


def test_secrets_are_stars() -> None:
    shown = json.dumps(redacted_tree(Settings.model_validate(TREE)))
    assert "marked" not in shown
    assert shown.count('"**********"') == 2


def test_only_what_was_written_down_is_shown() -> None:
    """Whether a limit was written down can matter: `first_token` then also holds for whole answers."""
    tree = redacted_tree(Settings.model_validate(TREE))
    assert tree["server"] == {"port": 9090, "drain": 5.0}
    assert "admission" not in tree
    engine = settings_of(tree).engines["q"]
    assert engine.timeouts.model_fields_set == {"first_token"}


def test_it_can_be_read_back() -> None:
    tree = redacted_tree(Settings.model_validate(TREE))
    assert redacted_tree(settings_of(json.loads(json.dumps(tree)))) == tree


@pytest.mark.parametrize("tree", [[], {"server": {"hovercraft": 1}}, {"engines": {"q": {"kind": "mlx"}}}])
def test_what_another_version_has_is_named(tree: object) -> None:
    with pytest.raises(ForeignTreeError, match=r"^(the tree|server\.hovercraft|engines\.q)"):
        settings_of(tree)
