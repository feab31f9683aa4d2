"""Checks between several keys.

They work on the plain values of the file rather than on the finished tree, so that they also run, as far as they can,
while other parts are wrong. What has the wrong type is skipped here: the tree reports it.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from gateway.settings.keycheck import check_keys
from gateway.settings.problems import Finding, Path, did_you_mean, dotted

ENGINE_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
ENGINE_NAME_HELP: Final = "an engine's name has letters, digits, dots, dashes and underscores, 64 at most"


@dataclass(frozen=True, slots=True)
class _Engines:
    kinds: Mapping[str, object]
    embedding: frozenset[str]
    """Those that are declared to serve embeddings."""

    def embeds(self, name: str) -> bool:
        kind = self.kinds[name]
        return kind not in ("trtllm", "triton") or (kind == "triton" and name in self.embedding)

    def able(self) -> list[str]:
        return [name for name, kind in self.kinds.items() if kind == "vllm" or (kind == "triton" and self.embeds(name))]


def crosscheck(tree: Mapping[str, object]) -> Iterator[Finding]:
    """Every broken rule between keys: names that must exist, names that must be unique, choices between two keys."""
    engines = _mapping(tree.get("engines"))
    if not engines and tree.get("engines") in (None, {}):
        yield Finding(
            ("engines",),
            "at least one engine is needed",
            "engines: {qwen: {kind: vllm, urls: [http://127.0.0.1:8000]}}",
        )
    for name, engine in engines.items():
        yield from _engine(name, _mapping(engine))
    known = _Engines(
        {name: _mapping(engine).get("kind") for name, engine in engines.items()},
        frozenset(name for name, engine in engines.items() if _is_true(_mapping(engine).get("embeddings"))),
    )
    models = _mapping(tree.get("models"))
    for name, model in models.items():
        yield from _model(name, _mapping(model), known)
        yield from _fallbacks(name, _mapping(model), models)
    yield from _names(models)
    yield from check_keys(tree)


def _fallbacks(name: str, model: Mapping[str, object], models: Mapping[str, object]) -> Iterator[Finding]:
    for index, other in enumerate(_items(model.get("fallbacks"))):
        here: Path = ("models", name, "fallbacks", index)
        if not isinstance(other, str):
            continue
        if other == name:
            yield Finding(here, "a model cannot stand in for itself", "leave it out")
        elif other not in models:
            close = did_you_mean(other, models)
            yield Finding(here, "no model has this name", close or f"models: {', '.join(models)}", value_as=': "{}"')
        elif _task(models[other]) != _task(model):
            yield Finding(here, f"{other} is for another task", "choose a model with the same task")


def _task(model: object) -> object:
    return _mapping(model).get("task") or "chat"


def _kserve(name: str, engine: Mapping[str, object]) -> Iterator[Finding]:
    """Which models are ready is asked of one server, so that it must be the only replica."""
    here: Path = ("engines", name, "kserve")
    if engine.get("kserve") is None:
        return
    if engine.get("kind") in ("vllm", "trtllm"):
        yield Finding(here, f"is for triton engines; {engine['kind']} has no KServe", "leave it out")
    elif len(_items(engine.get("urls"))) > 1:
        yield Finding(here, "is the address of one Triton, and urls has several", "make each replica an engine")
    given = engine["kserve"]
    if isinstance(given, Mapping) and len([key for key in ("http", "grpc") if given.get(key) is not None]) != 1:
        yield Finding(here, "needs one address", "{http: http://127.0.0.1:8000} or {grpc: 127.0.0.1:8001}")


def _engine(name: str, engine: Mapping[str, object]) -> Iterator[Finding]:
    if not ENGINE_NAME.fullmatch(name):
        message = ENGINE_NAME_HELP
        yield Finding(("engines", name), message, at_key=True)
    kind = engine.get("kind")
    if kind in ("vllm", "trtllm") and _is_true(engine.get("embeddings")):
        here: Path = ("engines", name, "embeddings")
        if kind == "vllm":
            message = "is for triton engines; every vllm engine may serve embeddings"
            yield Finding(here, message, "leave it out")
        else:
            yield Finding(here, "trtllm-serve has no embeddings", "leave it out, and use a vllm engine for them")
    if kind in ("trtllm", "triton") and engine.get("max_batch") is not None:
        took = "takes one input at a time anyway" if kind == "triton" else "has no embeddings"
        yield Finding(("engines", name, "max_batch"), f"is for vllm engines; {kind} {took}", "leave it out")
    yield from _kserve(name, engine)
    seen: dict[str, int] = {}
    for index, url in enumerate(_items(engine.get("urls"))):
        if not isinstance(url, str):
            continue
        first = seen.setdefault(url.rstrip("/"), index)
        if first != index:
            yield Finding(
                ("engines", name, "urls", index), f"the same address as urls[{first}]", "list each replica once"
            )


def _model(name: str, model: Mapping[str, object], engines: _Engines) -> Iterator[Finding]:
    here: Path = ("models", name)
    if not name or name != name.strip() or not name.isprintable():
        yield Finding(here, "a model's name has no blanks around it and no control characters", at_key=True)
    single, several = model.get("engine"), model.get("targets")
    if single is not None and several is not None:
        yield Finding((*here, "targets"), "engine and targets exclude each other", "keep one of the two", at_key=True)
    elif single is None and several in (None, []):
        yield Finding(here, "needs an engine", "engine: NAME, or targets: [{engine: NAME}, …]", at_key=True)
    references = list(_references(here, model))
    for path, engine in references:
        if engine not in engines.kinds:
            yield _dangling(path, engine, engines)
        elif model.get("task") == "embedding" and not engines.embeds(engine):
            yield _no_embeddings(path, engine, engines)
        elif model.get("task") == "rerank" and engines.kinds[engine] in ("trtllm", "triton"):
            yield _no_reranking(path, engine, engines)
    yield from _repeated_targets(here, _items(model.get("targets")))


def _references(here: Path, model: Mapping[str, object]) -> Iterator[tuple[Path, str]]:
    if isinstance(engine := model.get("engine"), str):
        yield (*here, "engine"), engine
    for index, target in enumerate(_items(model.get("targets"))):
        if isinstance(engine := _mapping(target).get("engine"), str):
            yield (*here, "targets", index, "engine"), engine


def _dangling(path: Path, engine: str, engines: _Engines) -> Finding:
    close = did_you_mean(engine, engines.kinds)
    known = f"engines: {', '.join(engines.kinds)}" if engines.kinds else None
    return Finding(path, "no engine has this name", close or known, value_as=': "{}"')


def _no_embeddings(path: Path, engine: str, engines: _Engines) -> Finding:
    able = engines.able()
    message = f"embeddings need a vllm engine, and {engine} is {engines.kinds[engine]}"
    if engines.kinds[engine] == "triton":
        return Finding(path, message, f"engines.{engine}.embeddings: true, if its models run on Triton's vLLM backend")
    return Finding(path, message, f"engines with embeddings: {', '.join(able)}" if able else "add a vllm engine")


def _no_reranking(path: Path, engine: str, engines: _Engines) -> Finding:
    able = [name for name, kind in engines.kinds.items() if kind == "vllm"]
    message = f"rerank models need a vllm engine, and {engine} is {engines.kinds[engine]}"
    return Finding(path, message, f"vllm engines: {', '.join(able)}" if able else "add a vllm engine")


def _is_true(value: object) -> bool:
    return str(value).strip().lower() in {"true", "yes", "on", "y", "t", "1"}


def _repeated_targets(here: Path, targets: list[object]) -> Iterator[Finding]:
    pairs = [(_mapping(target).get("engine"), _mapping(target).get("model")) for target in targets]
    for index, pair in enumerate(pairs):
        if isinstance(pair[0], str) and pairs.index(pair) != index:
            message = f"the same engine and model as targets[{pairs.index(pair)}]"
            yield Finding((*here, "targets", index), message, "give one of them the sum of the weights")


def _names(models: Mapping[str, object]) -> Iterator[Finding]:
    """Clients find a model by its name or an alias: each may exist once."""
    taken: dict[str, Path] = {name: ("models", name) for name in models}
    for name, model in models.items():
        for index, alias in enumerate(_items(_mapping(model).get("aliases"))):
            here: Path = ("models", name, "aliases", index)
            if not isinstance(alias, str):
                continue
            holder = taken.setdefault(alias, here)
            if holder == ("models", name):
                yield Finding(here, "an alias equal to the model's own name", "leave it out")
            elif len(holder) == 2:
                yield Finding(here, "a model already has this name", "choose another alias", value_as=': "{}"')
            elif holder != here:
                yield Finding(here, f"is already an alias at {dotted(holder)}", "keep one of the two")


def _mapping(value: object) -> Mapping[str, object]:
    return value if isinstance(value, Mapping) else {}


def _items(value: object) -> list[object]:
    return value if isinstance(value, list) else []
