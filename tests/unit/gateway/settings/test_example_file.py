"""The commented example, `config/turnout.yaml`, as the reference of all keys that it claims to be."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from gateway.settings import Loaded
from gateway.settings.schema import all_keys, section_at

EXAMPLE = (Path(__file__).parents[4] / "config" / "turnout.yaml").read_text()
COMMENTED_OUT = re.compile(r"^( *)# (?=[a-z_]+: )", re.MULTILINE)
WHOLE = COMMENTED_OUT.sub(r"\1", EXAMPLE)
"""The example with everything in force."""


@pytest.fixture(autouse=True)
def keys_file(tmp_path: Path) -> None:
    """The file that the example names."""
    (tmp_path / "keys.yaml").touch()


@pytest.mark.parametrize("key", [path for path in all_keys() if section_at(path) is None], ids=".".join)
def test_every_key_is_shown(key: tuple[str, ...]) -> None:
    """As a key with a value, in force or commented out."""
    assert re.search(rf"(?m)^[^#\n]*\b{key[-1]}: ?", WHOLE)


def test_all_of_it_can_be_in_force(read: Callable[..., Loaded]) -> None:
    """Nothing that is commented out is a mistake, at its place and beside the rest."""
    settings = read(WHOLE, {"QWEN_KEY": "k", "TURNOUT_ADMIN_TOKEN": "t"}).settings
    assert settings.engines["qwen"].max_in_flight == 256
    assert settings.models["chat"].fallbacks == ("mistral-7b",)


def test_what_is_commented_out_as_default_is_the_default(read: Callable[..., Loaded]) -> None:
    """Putting the server's and the last sections in force changes nothing but what has no default."""
    whole = read(WHOLE, {"QWEN_KEY": "k", "TURNOUT_ADMIN_TOKEN": "t"}).settings
    plain = read(EXAMPLE).settings
    assert whole.server.model_copy(update={"heartbeat": None}) == plain.server
    assert (whole.retry, whole.admission) == (plain.retry, plain.admission)
    first = "qwen2.5-1.5b"
    assert whole.models[first] == plain.models[first]
    assert whole.engines["qwen"].timeouts == plain.engines["qwen"].timeouts
