"""Writes configuration files and reads them back."""

from collections.abc import Callable, Mapping
from pathlib import Path
from textwrap import dedent

import pytest

from gateway.settings import ConfigErrors, Loaded
from gateway.settings.advice import load_advised


@pytest.fixture
def read(tmp_path: Path) -> Callable[..., Loaded]:
    """Loads a text as `turnout.yaml`."""

    def read_text(text: str, environ: Mapping[str, str] | None = None) -> Loaded:
        file = tmp_path / "turnout.yaml"
        file.write_text(dedent(text).lstrip("\n"), encoding="utf-8")
        return load_advised(file, environ or {})

    return read_text


@pytest.fixture
def wrong(read: Callable[..., Loaded], tmp_path: Path) -> Callable[..., list[str]]:
    """What is wrong with a text, one line per problem, without the file's folder."""

    def problems_of(text: str, environ: Mapping[str, str] | None = None) -> list[str]:
        with pytest.raises(ConfigErrors) as caught:
            read(text, environ)
        return [str(problem).removeprefix(f"{tmp_path}/") for problem in caught.value.problems]

    return problems_of
