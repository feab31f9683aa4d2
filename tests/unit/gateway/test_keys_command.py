"""`turnout keys new`: a key that works, and its line for the file."""

from hashlib import sha256
from pathlib import Path

import pytest

from gateway.cli import main
from gateway.settings import Loaded, load


def loaded(folder: Path, line: str) -> Loaded:
    """A configuration whose keys file has this line."""
    (folder / "keys.yaml").write_text(line + "\n")
    file = folder / "turnout.yaml"
    file.write_text(
        "engines: {q: {kind: vllm, urls: [http://h:1]}}\nmodels: {a: {engine: q}, b: {engine: q}}\nkeys_file: keys.yaml"
    )
    return load(file, {})


def test_the_line_is_for_the_file_and_holds_the_hash_of_the_key(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert main(["keys", "new", 'odd: "näme', "--models", "a,b", "--priority", "2", "--expires", "2030-01-31"]) == 0
    key, line = capsys.readouterr().out.splitlines()

    (found,) = loaded(tmp_path, line).settings.keys
    assert found.hash == f"sha256:{sha256(key.encode()).hexdigest()}"
    assert (found.name, found.models, found.priority) == ('odd: "näme', ("a", "b"), 2.0)
    assert found.expires is not None
    assert key not in line


def test_no_two_keys_are_alike(capsys: pytest.CaptureFixture[str]) -> None:
    for _ in range(20):
        main(["keys", "new", "x"])
    keys = capsys.readouterr().out.splitlines()[::2]

    assert len(set(keys)) == 20
    assert {len(key) for key in keys} == {54}


@pytest.mark.parametrize("arguments", [["a", "--expires", "soon"], [" a"], ["a\nb"]])
def test_what_the_file_would_not_take_is_refused(capsys: pytest.CaptureFixture[str], arguments: list[str]) -> None:
    assert main(["keys", "new", *arguments]) == 2
    assert capsys.readouterr().out == ""
