"""Launch settings say what they are, and what they become."""

import pytest
from pydantic import BaseModel

from engines.launch.command import option_of
from engines.launch.documents import launch_page
from engines.launch.kinds import FLAGS, LAUNCHES
from engines.launch.triton import TrtllmModel, VllmModel
from engines.profile import EngineKind
from tests.conftest import ROOT

SECTIONS: dict[EngineKind, tuple[type[BaseModel], ...]] = {
    EngineKind.VLLM: (LAUNCHES[EngineKind.VLLM], VllmModel),
    EngineKind.TRTLLM: (LAUNCHES[EngineKind.TRTLLM], TrtllmModel),
    EngineKind.TRITON: (LAUNCHES[EngineKind.TRITON],),
}
OPTIONS = [
    (kind, name, option)
    for kind, sections in SECTIONS.items()
    for section in sections
    for name, field in section.model_fields.items()
    if (option := option_of(field)) is not None
]


def test_the_page_is_up_to_date() -> None:
    assert (ROOT / "docs/launch.md").read_text(encoding="utf-8") == launch_page(), "stale: run `make config`"


def test_every_flag_is_one_that_the_program_has() -> None:
    assert [(kind, name) for kind, name, option in OPTIONS if option.flag and not FLAGS[kind].find(option.flag)] == []


def test_everything_that_reaches_an_engine_has_a_default_and_a_source() -> None:
    """`host` and `port` are the routing file's to say."""
    silent = [
        (kind, name)
        for kind, name, option in OPTIONS
        if name not in ("host", "port") and not (option.default and option.source)
    ]
    assert silent == []


@pytest.mark.parametrize("kind", LAUNCHES)
def test_every_number_has_its_bounds(kind: EngineKind) -> None:
    """A unit without a range, or a range that nobody can look up, would be half of a description."""
    without = [name for one, name, option in OPTIONS if one is kind and option.unit and not option.bounds]

    assert set(without) <= {"keep_alive", "cpu_kv_cache", "host_cache_size"}
