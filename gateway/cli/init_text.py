"""Writes a configuration for engines that were found, with comments that say what was guessed."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from engines.profile import EngineKind
from engines.registry import profile
from gateway.background.survey import FoundEngine, FoundModel
from gateway.settings.reference import SCHEMA_LINE

_PLAIN: Final = re.compile(r"[A-Za-z][A-Za-z0-9_./@+-]*")
_WORDS: Final = frozenset({"true", "false", "yes", "no", "on", "off", "null", "y", "n", "none"})


def starter_text(found: Sequence[FoundEngine], *, schema: str | None, key: str | None) -> str:
    """The file. `schema`: where editors find its JSON Schema; `key`: the variable with the key of engines that ask."""
    engines = _engines(found)
    lines = [SCHEMA_LINE.format(schema)] if schema else []
    lines += [
        "# Made by `turnout init` from what the engines said. What is commented out is optional.",
        "# All keys: `turnout check --reference`.",
        "",
        "server:",
        "  host: 127.0.0.1            # 0.0.0.0 to be reached from other machines",
        "  port: 8080",
        "",
        "engines:",
    ]
    for name, replicas in engines.items():
        lines += _engine(name, replicas, key)
    models = list(_models(engines))
    lines += ["", "# What applications ask for: the engines' own names. Short ones and aliases are yours to add."]
    lines += ["models:", *models] if any(not line.lstrip().startswith("#") for line in models) else models
    return "\n".join(lines) + "\n"


def _engines(found: Sequence[FoundEngine]) -> dict[str, list[FoundEngine]]:
    """Named groups of replicas: servers of one kind with the same models."""
    groups: dict[tuple[EngineKind, frozenset[str]], list[FoundEngine]] = {}
    for number, engine in enumerate(found):
        same = frozenset(model.name for model in engine.models) or frozenset({f"nothing {number}"})
        groups.setdefault((engine.kind, same), []).append(engine)
    named: dict[str, list[FoundEngine]] = {}
    for (kind, _), replicas in groups.items():
        count = sum(name.partition("-")[0] == kind.value for name in named)
        named[f"{kind.value}-{count + 1}" if count else kind.value] = replicas
    return named


def _engine(name: str, replicas: Sequence[FoundEngine], key: str | None) -> Iterator[str]:
    first = replicas[0]
    version = f" {plainly(first.version)}" if first.version else ""
    rust = ", Rust frontend" if first.rust_frontend else ""
    yield f"  # {profile(first.kind).title}{version}{rust}: {first.evidence}."
    yield f"  {name}:"
    yield f"    kind: {first.kind.value}"
    yield "    urls:"
    yield from (f"      - {replica.url}" for replica in replicas)
    if first.keyed and key:
        yield f"    api_key: ${{{key}}}"
    if any(model.task == "embedding" for model in first.models) and first.kind is EngineKind.TRITON:
        yield "    embeddings: true         # it has made a vector"
    yield "    # max_in_flight: 256       # requests at once per replica; more wait (admission)"
    if any(model.task == "chat" for model in first.models):
        yield "    # parser: none             # the tool parser it was started with, or none; left out: found out"


def _models(engines: Mapping[str, Sequence[FoundEngine]]) -> Iterator[str]:
    places: dict[str, list[tuple[str, FoundModel]]] = {}
    for engine, replicas in engines.items():
        for model in replicas[0].models:
            places.setdefault(model.name, []).append((engine, model))
    taken = set(places)
    for name, found in places.items():
        served = [(engine, model) for engine, model in found if model.task == found[0][1].task]
        aliases = [one for _, model in served for one in model.aliases if one not in taken and _may_be_asked_for(one)]
        taken.update(aliases)
        yield from _model(name, served, list(dict.fromkeys(aliases)))


def _model(name: str, served: Sequence[tuple[str, FoundModel]], aliases: Sequence[str]) -> Iterator[str]:
    engine, model = served[0]
    if not _may_be_asked_for(name):
        yield f"  # {name!a}: not a name that can be asked for"
        return
    if model.task is None:
        yield f"  # {name}: by its name not for chat, and {engine} serves nothing else"
        return
    if model.adapter_of:
        yield f"  # A LoRA adapter of {plainly(model.adapter_of)}."
    yield f"  {as_key(name)}:"
    if len(served) == 1:
        yield f"    engine: {engine}"
    else:
        yield "    targets:                 # all of them have it; weights are shares of the requests"
        yield from (f"      - {{engine: {one}, weight: 1}}" for one, _ in served)
    if model.task != "chat":
        yield f"    task: {model.task}"
    if aliases:
        yield f"    aliases: [{', '.join(map(as_value, aliases))}]"
    if model.task == "chat":
        yield from _tools(model)
    if model.context:
        yield f"    # Its engine says: {model.context} tokens of context."


def _tools(model: FoundModel) -> Iterator[str]:
    wire = model.format
    if not wire.format:
        yield "    # tools: {format: auto}    # how it writes tool calls is not known by its name"
        return
    how = "its chat template" if wire.source == "template" else "its name"
    yield f"    tools: {{format: {wire.format}}}   # a guess, by {how}; `turnout doctor` tells whether it is right"


def _may_be_asked_for(name: str) -> bool:
    return bool(name) and name == name.strip() and name.isprintable()


def plainly(text: str) -> str:
    """What a server says, without characters that could end a line or command a terminal."""
    return text if text.isprintable() else ascii(text)


def as_value(text: str) -> str:
    """A text as a YAML value; `${` in it stays what it is."""
    return as_key(text.replace("${", "$${"))


def as_key(text: str) -> str:
    """A text as a YAML key, in quotes where it could be taken for something else."""
    if _PLAIN.fullmatch(text) and text.lower() not in _WORDS:
        return text
    return json.dumps(text, ensure_ascii=False)
