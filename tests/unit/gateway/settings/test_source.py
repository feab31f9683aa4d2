"""The configuration's file over time: what is noticed, when, and what becomes of it."""

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.settings.loading import load
from gateway.settings.problems import ConfigErrors
from gateway.settings.source import TRY_AGAIN, UNSETTLED, ConfigFile, Configuration, Sight, Watch, held, see

GOOD = "engines: {e: {kind: vllm, urls: [http://127.0.0.1:8000]}}\nmodels: {m: {engine: e}}\n"
OTHER = GOOD.replace("m:", "n:")
BAD = GOOD.replace("models", "modles")


def opened(path: Path, **given: object) -> ConfigFile:
    return ConfigFile(load(path, {}), {}, given)


def news(file: ConfigFile, now: float = 0.0) -> Configuration | ConfigErrors | None:
    """What two looks bring."""
    return file.poll(now, 0.0) or file.poll(now + 0.5, 0.0)


def models(found: Configuration | ConfigErrors | None) -> list[str]:
    assert isinstance(found, Configuration), found
    return list(found.settings.models)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    made = tmp_path / "turnout.yaml"
    made.write_text(GOOD)
    return made


def test_a_file_that_stays_as_it_is_is_no_news(path: Path) -> None:
    file = opened(path)

    assert [file.poll(now, 0.0) for now in (0.0, 100.0, 200.0)] == [None] * 3


def test_a_written_file_is_read_once_it_stays_the_same_for_a_look(path: Path) -> None:
    file = opened(path)
    path.write_text(OTHER)
    assert file.poll(0.0, 0.0) is None
    found = file.poll(0.5, 1234.5)
    assert models(found) == ["n"]
    assert isinstance(found, Configuration)
    assert (found.hash, found.source, found.loaded_at) == (load(path, {}).text_hash, str(path), 1234.5)
    assert file.poll(1.0, 0.0) is None


def test_a_file_that_an_editor_puts_in_place_of_the_other_is_noticed(path: Path) -> None:
    """Even if its time and its size are the same."""
    file = opened(path)
    before = path.stat()
    new = path.with_suffix(".new")
    new.write_text(OTHER)
    os.utime(new, ns=(before.st_atime_ns, before.st_mtime_ns))
    new.rename(path)

    assert models(news(file)) == ["n"]


def test_a_config_map_that_is_swapped_is_noticed(tmp_path: Path) -> None:
    """As Kubernetes does it: the file is a link by way of a link to a folder, and that one is replaced."""
    for name, text in (("..1", GOOD), ("..2", OTHER)):
        (tmp_path / name).mkdir()
        (tmp_path / name / "turnout.yaml").write_text(text)
    (tmp_path / "..data").symlink_to("..1")
    (tmp_path / "turnout.yaml").symlink_to("..data/turnout.yaml")
    file = opened(tmp_path / "turnout.yaml")
    (tmp_path / "..data_tmp").symlink_to("..2")
    (tmp_path / "..data_tmp").rename(tmp_path / "..data")

    assert models(news(file)) == ["n"]


def test_a_secret_that_changes_in_its_own_file_is_noticed(tmp_path: Path, path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("one")
    path.write_text(GOOD.replace("kind: vllm", f"kind: vllm, api_key: 'file:{secret}'"))
    file = opened(path)
    secret.write_text("three")
    found = news(file)

    assert isinstance(found, Configuration)
    key = found.settings.engines["e"].api_key
    assert key is not None
    assert key.get_secret_value() == "three"


def test_a_bad_file_is_told_once_and_the_next_good_one_is_taken(path: Path) -> None:
    file = opened(path)
    path.write_text(BAD)
    found = news(file)
    assert isinstance(found, ConfigErrors)
    assert 'did you mean "models"?' in str(found)
    assert [file.poll(now, 0.0) for now in (1.0, TRY_AGAIN + 1.0, 2 * TRY_AGAIN + 2.0)] == [None] * 3
    path.write_text(OTHER)

    assert models(news(file, 100.0)) == ["n"]


def test_what_a_bad_file_lacks_is_looked_for_again(path: Path) -> None:
    """A file with keys that comes later than the one that names it is taken, though that one has not changed."""
    file = opened(path)
    path.write_text(GOOD + "keys_file: keys.yaml\n")
    assert isinstance(news(file), ConfigErrors)
    path.with_name("keys.yaml").write_text("[]")
    assert file.poll(1.0, 0.0) is None

    assert models(file.poll(1.0 + TRY_AGAIN, 0.0)) == ["m"]


def test_a_file_that_is_away_for_a_while_keeps_the_old_configuration(path: Path) -> None:
    file = opened(path)
    path.unlink()
    assert isinstance(news(file), ConfigErrors)
    path.write_text(GOOD)

    assert models(news(file, 1.0)) == ["m"]


def test_the_command_line_outlasts_every_reading(path: Path) -> None:
    file = opened(path, port=9999)
    path.write_text("server: {port: 7000, host: 0.0.0.0}\n" + OTHER)
    found = file.read(0.0, 0.0)

    assert isinstance(found, Configuration)
    assert (found.settings.server.port, found.settings.server.host) == (9999, "0.0.0.0")


def test_what_needs_a_restart_is_left_and_said_and_the_rest_is_taken(path: Path) -> None:
    running = load(path, {}).settings.server
    path.write_text("server: {port: 7000, workers: 4, max_body: 1MiB}\n" + OTHER)
    read = opened(path).read(0.0, 0.0)
    assert isinstance(read, Configuration)
    found, waiting = held(read, running)

    server = found.settings.server
    assert (server.port, server.workers, server.max_body) == (8080, 1, 2**20)
    assert waiting == (
        "server.port: 8080 until a restart, then 7000",
        "server.workers: 1 until a restart, then 4",
    )
    assert models(found) == ["n"]


SIGHTS: list[Sight] = [((1, number, 0, 0),) for number in range(3)] + [(None,)]


@given(st.lists(st.sampled_from(SIGHTS), max_size=40), st.sampled_from(SIGHTS))
def test_every_change_that_lasts_is_told_exactly_once(looks: list[Sight], end: Sight) -> None:
    """However files flicker before: what they are in the end is known two looks later, and told no more after that."""
    watch = Watch(SIGHTS[0])
    told = SIGHTS[0]
    waited = 0
    for sight in looks:
        waited += 1
        if watch.changed(sight):
            assert sight != told
            told, waited = sight, 0
        elif sight == told:
            waited = 0
        assert waited < UNSETTLED
    for _ in range(2):
        if watch.changed(end):
            assert end != told
            told = end
    assert told == end
    assert not watch.changed(end)


def test_what_is_seen_of_files_never_fails(tmp_path: Path) -> None:
    assert see([tmp_path / "nothing", Path("a\0b")]) == (None, None)
