"""`docs/launch.md`, written from the launch settings."""

from collections.abc import Iterable, Iterator, Mapping
from enum import Enum
from typing import Final, Literal, get_args, get_origin

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from engines.launch.command import option_of
from engines.launch.common import Container, Launch
from engines.launch.kinds import LAUNCHES
from engines.launch.triton import Restriction, TrtllmModel, VllmModel
from engines.launch.trtllm_engine import TrtllmEngine
from engines.launch.values import Option, bytes_text
from engines.launch.vllm_engine import VllmEngine
from engines.profile import EngineKind
from engines.registry import PROFILES
from engines.section import Section

COMMAND: Final = "turnout engines settings --markdown"

_HEAD: Final = f"""\
# Launch settings

What stands under `engines.NAME.launch`, for each kind of engine. This page is written from the settings in
`engines/launch/` by `{COMMAND}`; how to use them is in [engines-setup.md](engines-setup.md).

Counts may be written as on vLLM's command line: `8k` is 8000, `8K` is 8192. Sizes: `4GiB`, `4GB`; `4G` is `4GiB`.
"reaches it as" is the flag, the environment variable, or the member of the file of settings that the key becomes.
Flags of the source's version; a test compares vLLM's with the installed one.
"""

_COLUMNS: Final = ("key", "meaning", "range", "unit", "default", "reaches it as", "source")

_ENGINES: Final[Mapping[EngineKind, type[BaseModel]]] = {
    EngineKind.VLLM: VllmEngine,
    EngineKind.TRTLLM: TrtllmEngine,
}
_MODEL: Final = "Triton: a model of the repository. Takes the keys of {}, which reach {} under their own names, and:"
_NESTED: Final[tuple[tuple[str, str, type[BaseModel], type[BaseModel]], ...]] = (
    ("container", "How containers are made, for all kinds.", Container, Section),
    ("models.NAME, backend: vllm", _MODEL.format("vLLM's engine", "`model.json`"), VllmModel, VllmEngine),
    ("models.NAME, backend: tensorrtllm", _MODEL.format("its engine", "`model.yaml`"), TrtllmModel, TrtllmEngine),
    ("restricted[]", "Triton: parts that ask for a header.", Restriction, Section),
)


def launch_page() -> str:
    """The whole page."""
    lines = [_HEAD, "## All kinds", "", *_table(Launch, frozenset())]
    for kind, section in LAUNCHES.items():
        title, engine = PROFILES[kind].title, _ENGINES.get(kind)
        if engine is not None:
            lines += ["", f"## {title}: the engine", "", _first(engine), "", *_table(engine, frozenset())]
            title = f"{title}: the server"
        above = frozenset((*Launch.model_fields, *(engine.model_fields if engine is not None else ())))
        lines += ["", f"## {title}", "", _first(section), "", *_table(section, above)]
    for title, about, nested, base in _NESTED:
        lines += ["", f"## {title}", "", about, "", *_table(nested, frozenset(base.model_fields))]
    return "\n".join(lines) + "\n"


def _first(section: type[BaseModel]) -> str:
    return " ".join((section.__doc__ or "").split())


def _table(section: type[BaseModel], without: frozenset[str]) -> Iterator[str]:
    rows = [_row(name, field) for name, field in section.model_fields.items() if name not in without]
    used = [index for index, _ in enumerate(_COLUMNS) if any(row[index] for row in rows)]
    yield _line(_COLUMNS[index] for index in used)
    yield _line("---" for _ in used)
    for row in rows:
        yield _line(row[index] for index in used)


def _line(cells: Iterable[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def _row(name: str, field: FieldInfo) -> tuple[str, ...]:
    option = option_of(field) or Option()
    meaning = field.description or "see below"
    words = _words(field.annotation)
    ways = (option.flag, option.variable, option.member if not option.flag else "")
    source = ", ".join(part for part in (option.source, option.since) if part)
    key = f"**{name}**" if field.is_required() else name
    return (
        key,
        meaning,
        option.bounds or ", ".join(words),
        option.unit,
        option.default or _default(field),
        ", ".join(f"`{way}`" for way in ways if way),
        source,
    )


def _words(annotation: object) -> list[str]:
    """The closed set of words that a field takes; none for others."""
    if get_origin(annotation) is Literal:
        return [str(word) for word in get_args(annotation)]
    if isinstance(annotation, type) and issubclass(annotation, Enum):
        return [str(one.value) for one in annotation]
    return [word for inner in get_args(annotation) for word in _words(inner)]


def _default(field: FieldInfo) -> str:
    value = field.default
    if field.is_required():
        return "must be given"
    if value in (None, (), {}) or isinstance(value, BaseModel):
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int) and value > 10**6:
        return bytes_text(value)
    return str(value)
