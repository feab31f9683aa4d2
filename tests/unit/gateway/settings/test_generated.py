"""The JSON Schema and the reference file are made from the settings, and say of a file what `check` says of it."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft7Validator
from ruamel.yaml import YAML

from gateway.settings import Loaded
from gateway.settings.json_schema import json_schema, json_schema_text
from gateway.settings.redacted import redacted_tree
from gateway.settings.reference import reference_text
from gateway.settings.schema import all_keys, field_at, section_at, written_of
from gateway.settings.tree import Settings
from gateway.settings.units import duration_text, parse_duration, parse_share, parse_size, share_text, size_text
from gateway.settings.written import SECRET, Written
from tests.support.json_type import Json
from tests.support.settings_edits import trees

CONFIG = Path(__file__).parents[4] / "config"
KEY_NOT_IN_FORCE = re.compile(r"^( *)#(?=\S)", re.MULTILINE)
VALIDATOR = Draft7Validator(json_schema())


def plain(text: str) -> Json:
    return YAML(typ="safe", pure=True).load(text)


def refused(tree: object) -> list[str]:
    return ["/".join(map(str, error.absolute_path)) for error in VALIDATOR.iter_errors(tree)]


@pytest.mark.parametrize(
    ("name", "text"), [("turnout.schema.json", json_schema_text), ("turnout.reference.yaml", reference_text)]
)
def test_the_files_in_config_are_up_to_date(name: str, text: Callable[[], str]) -> None:
    assert (CONFIG / name).read_text() == text(), "stale: run `make config`"


def test_the_schema_is_a_schema() -> None:
    Draft7Validator.check_schema(json_schema())


@pytest.mark.parametrize(
    "path", [CONFIG / "turnout.yaml", CONFIG / "turnout.reference.yaml"], ids=lambda path: path.name
)
def test_the_files_here_fit_the_schema_and_name_it(path: Path) -> None:
    """An editor finds the schema by the line, beside the file."""
    assert refused(plain(path.read_text())) == []
    assert "# yaml-language-server: $schema=turnout.schema.json\n" in path.read_text()


def test_the_reference_can_be_served_as_it_is(read: Callable[..., Loaded]) -> None:
    assert list(read(reference_text()).settings.models) == ["chat"]


def test_the_reference_shows_every_key_at_its_place() -> None:
    tree = plain(KEY_NOT_IN_FORCE.sub(r"\1", reference_text()))

    def shown(path: tuple[str, ...], here: Json) -> bool:
        if not path:
            return True
        if path[0] == "*":
            inner = next(iter(here.values())) if isinstance(here, dict) else here[0]
            return shown(path[1:], inner)
        return path[0] in here and shown(path[1:], here[path[0]])

    assert [path for path in all_keys() if not shown(path, tree)] == []
    assert refused(tree) == []


@pytest.mark.parametrize(
    "path", [path for path in all_keys() if path[-1] != "*" and section_at(path) is None], ids=".".join
)
def test_every_key_tells_what_it_is_and_how_it_is_written(path: tuple[str, ...]) -> None:
    """A type of its own says how editors may have it: as `Written`, see gateway/settings/written.py."""
    found: Json = json_schema()
    for part in path:
        found = found["properties"][part] if part != "*" else found.get("items") or found["additionalProperties"]
    assert found.get("description")
    assert found.keys() & {"anyOf", "pattern", "items", "additionalProperties"}, "annotate its type with Written(…)"


ACCEPTED = """\
server: {port: "${PORT:-8080}", max_body: 1.5 GB, drain: 1h30m, heartbeat: , access_log: yes, cors_origins: ["*"]}
engines:
  q: {kind: vllm, urls: [https://h/sub, "dns+http://h:1"], api_key: "file:/dev/null0", timeouts: {connect: 500ms}}
  t: {kind: "${KIND:-triton}", urls: ["http://[::1]:1"], api_key: "${KEY:-}", parser: qwen3-coder, health: }
models:
  m: {targets: [{engine: q, weight: 0.5}, {engine: t, weight: "3"}], aliases: [gpt-4o], tools: {format: Hermes}}
retry: {budget: 0.2, attempts: "2"}
admin:
"""


def test_what_is_accepted_fits_the_schema(read: Callable[..., Loaded], tmp_path: Path) -> None:
    (tmp_path / "key").write_text("k")
    text = ACCEPTED.replace("/dev/null0", str(tmp_path / "key"))
    read(text)
    assert refused(plain(text)) == []


@given(trees())
def test_every_configuration_as_the_admin_api_shows_it_fits_the_schema(settings: Settings) -> None:
    """Durations are numbers there, and secrets are stars."""
    assert refused(redacted_tree(settings)) == []


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("{server: {prot: 1}}", "server"),
        ("{server: {port: 70000}}", "server/port"),
        ("{server: {port: eighty}}", "server/port"),
        ("{server: {drain: 5 minutes}}", "server/drain"),
        ("{server: {drain: -1}}", "server/drain"),
        ("{server: {max_body: 64MX}}", "server/max_body"),
        ("{server: {access_log: maybe}}", "server/access_log"),
        ("{engines: {q: {kind: vlm, urls: [http://h]}}}", "engines/q/kind"),
        ("{engines: {q: {kind: vllm}}}", "engines/q"),
        ("{engines: {q: {kind: vllm, urls: []}}}", "engines/q/urls"),
        ("{engines: {q: {kind: vllm, urls: [localhost:8000]}}}", "engines/q/urls/0"),
        ("{engines: {q: {kind: vllm, urls: [http://h], api_key: a b}}}", "engines/q/api_key"),
        ("{models: {m: {engine: q, policy: fastest}}}", "models/m/policy"),
        ("{models: {m: {targets: [{model: x}]}}}", "models/m/targets/0"),
        ("{retry: {budget: 120 percent}}", "retry/budget"),
    ],
)
def test_what_is_wrong_is_wrong_in_an_editor_too(text: str, place: str) -> None:
    assert refused(plain(text)) == [place]


@pytest.mark.parametrize("path", [path for path in all_keys() if path[-1] != "*"], ids=".".join)
def test_defaults_are_shown_as_they_are_written(path: tuple[str, ...]) -> None:
    """A default fits its own schema, with its unit."""
    field = field_at(path)
    assert field is not None
    written = written_of(field)
    if isinstance(written, Written) and written.text is not None and isinstance(field.default, int | float):
        assert Draft7Validator(dict(written.schema)).is_valid(written.text(field.default))


def test_a_secret_may_come_from_a_file_a_variable_or_be_written_down() -> None:
    secret = Draft7Validator(dict(SECRET.schema))
    assert all(map(secret.is_valid, ("file:/run/secrets/x", "${KEY}", "${KEY:-}", "sk-1", "")))
    assert not any(map(secret.is_valid, ("two words", 7)))


@given(st.integers(0, 10**7))
def test_durations_read_back_as_they_were(milliseconds: int) -> None:
    assert parse_duration(duration_text(milliseconds / 1000)) == pytest.approx(milliseconds / 1000)


@given(st.integers(0, 2**45), st.sampled_from((1, 1000, 1024, 2**20)))
def test_sizes_read_back_as_they_were(number: int, factor: int) -> None:
    assert parse_size(size_text(number * factor)) == number * factor


@given(st.integers(0, 1000))
def test_shares_read_back_as_they_were(thousandths: int) -> None:
    assert parse_share(share_text(thousandths / 1000)) == pytest.approx(thousandths / 1000)
