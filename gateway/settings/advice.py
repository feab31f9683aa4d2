"""What a valid configuration says that is probably not meant: warnings, each with its way out.

They work on the finished tree: while something is wrong, nothing is advised. A rule that is never sure has no place
here; one that is sure belongs to `crosscheck`.
"""

from collections.abc import Iterable, Iterator, Mapping
from math import inf
from pathlib import Path as File
from typing import Final

from engines.naming import task_of_name
from engines.profile import EngineKind
from engines.registry import profile
from gateway.settings.advice_closed import keys_for_nothing, own_addresses
from gateway.settings.advice_gpus import crowded_gpus
from gateway.settings.advice_launches import advise_on_launches, keep_alive_of, parser_of
from gateway.settings.advice_timeouts import contradicting_timeouts
from gateway.settings.engines import Engine
from gateway.settings.loading import Loaded, load
from gateway.settings.models import Model, Target
from gateway.settings.problems import Finding, Path, dotted
from gateway.settings.tree import Settings
from gateway.settings.units import duration_text
from gateway.settings.values import MANY_ADDRESSES
from gateway.wire.tools.facts import NO_PARSER, known_format


def load_advised(path: File | None, environ: Mapping[str, str], *, at: float | None = None) -> Loaded:
    """The same as `loading.load`, with warnings; with `at`, Unix seconds, about keys too that have expired by then.

    Raises:
        ConfigErrors: with every mistake that can be seen at once.
    """
    return load(
        path, environ, lambda settings: (*advise(settings), *(() if at is None else expired_keys(settings, at)))
    )


def advise(settings: Settings) -> Iterator[Finding]:
    """Every warning. `Finding.rule` names its kind."""
    for rule in (
        _unused_engines,
        _repeated_addresses,
        _keep_alive,
        _names_alike,
        _names_of_others,
        _unread_tools,
        _mixed_tasks,
        _tasks_by_name,
        _limits_out_of_reach,
        _without_effect,
        _open_to_pages,
        keys_for_nothing,
        own_addresses,
        contradicting_timeouts,
        advise_on_launches,
        crowded_gpus,
    ):
        yield from rule(settings)


def expired_keys(settings: Settings, at: float) -> Iterator[Finding]:
    """Keys that are refused at `at` (Unix seconds), for their time is over."""
    for index, key in enumerate(settings.keys):
        if key.expires is not None and key.expires <= at:
            message = f'has passed: the key "{key.name}" is refused'
            yield Finding(
                ("keys", index, "expires"), message, "give it a later date, or take it out", rule="expired-key"
            )


def _unused_engines(settings: Settings) -> Iterator[Finding]:
    used = {target.engine for name, model in settings.models.items() for target in model.targets_of(name)}
    for name in settings.engines if settings.models else ():
        if name not in used:
            fix = "leave it out, or name it in a model"
            yield Finding(("engines", name), "no model uses this engine", fix, at_key=True, rule="unused-engine")


def _repeated_addresses(settings: Settings) -> Iterator[Finding]:
    seen: dict[str, Path] = {}
    for name, engine in settings.engines.items():
        for index, url in enumerate(engine.urls):
            here: Path = ("engines", name, "urls", index)
            first = seen.setdefault(url, here)
            if first[1] != name:
                message = f"the same address as {dotted(first)}: its load and its limits are counted apart"
                yield Finding(here, message, "use one engine for both", rule="repeated-address")


def _keep_alive(settings: Settings) -> Iterator[Finding]:
    for name, engine in settings.engines.items():
        kind, started = profile(engine.kind), keep_alive_of(engine)
        longest = kind.keep_alive if started is None else started
        if engine.keep_alive is None or engine.keep_alive <= longest:
            continue
        own = duration_text(longest)
        message = f"{kind.title} closes idle connections after {own}: requests will meet ones that are just closing"
        fix = f"leave it out, or {own} at most"
        if engine.kind is EngineKind.VLLM and engine.launch is not None:
            fix = f"{own} at most, or launch.keep_alive: {engine.keep_alive:g}"
        elif engine.kind is EngineKind.VLLM:
            fix = f"leave it out, or start vLLM with VLLM_HTTP_TIMEOUT_KEEP_ALIVE={engine.keep_alive:g}"
        yield Finding(("engines", name, "keep_alive"), message, fix, rule="keep-alive")


def _names(settings: Settings) -> Iterator[tuple[str, str, Path]]:
    """Every name that clients may send, the model it stands for, and where it stands."""
    for model, section in settings.models.items():
        yield model, model, ("models", model)
        for index, alias in enumerate(section.aliases):
            yield alias, model, ("models", model, "aliases", index)


def _names_alike(settings: Settings) -> Iterator[Finding]:
    """Capitals count in names, and people forget them."""
    seen: dict[str, tuple[str, str, Path]] = {}
    for name, model, here in _names(settings):
        first, other, _ = seen.setdefault(name.lower(), (name, model, here))
        if other != model:
            message = f'differs from "{first}", which stands for another model, in capitals only'
            fix = "choose names that cannot be mistaken"
            yield Finding(here, message, fix, at_key=len(here) == 2, rule="shadowed-name")


def _names_of_others(settings: Settings) -> Iterator[Finding]:
    """An alias that is what an engine calls the model behind another name."""
    own: dict[str, dict[str, str]] = {}
    for name, model in settings.models.items():
        for target in model.targets_of(name):
            own.setdefault(target.model or name, {}).setdefault(name, target.engine)
    for alias, wanted, here in _names(settings):
        others = {name: engine for name, engine in own.get(alias, {}).items() if name != wanted}
        if len(here) == 4 and others and wanted not in own[alias]:
            name, engine = next(iter(others.items()))
            message = f"{engine} calls the model behind {name} so, and whoever asks for it gets {wanted}"
            yield Finding(here, message, f"move it to models.{name}, or choose another", rule="shadowed-name")


def _unread_tools(settings: Settings) -> Iterator[Finding]:
    for name, model in settings.models.items():
        if model.task != "chat" or model.tools.parse != "engine":
            continue
        for target in model.targets_of(name):
            parser, kind = parser_of(settings.engines[target.engine]), settings.engines[target.engine].kind
            here: Path = ("models", name, "tools")
            if parser == NO_PARSER:
                said = _said(settings.engines[target.engine])
                message = f"tool calls are read by nobody: {target.engine} has no tool parser ({said})"
                yield Finding((*here, "parse"), message, "parse: auto, or parse: gateway", rule="unread-tools")
            elif parser is not None and model.tools.format != "auto":
                read = known_format("auto", parser, kind).format
                written = known_format(model.tools.format, None, kind).format
                if read and read != written:
                    message = f"{target.engine} reads calls as {parser} ({read}), and the model writes {written}"
                    yield Finding((*here, "format"), message, "parse: gateway, or another parser", rule="unread-tools")


def _said(engine: Engine) -> str:
    return "parser: none" if engine.parser is not None else "its launch names none"


def _mixed_tasks(settings: Settings) -> Iterator[Finding]:
    """A vLLM server runs one model (and its LoRA adapters), whose task decides which paths it has."""
    chatting: dict[str, str] = {}
    for name, model in settings.models.items():
        for target in model.targets_of(name):
            if model.task == "chat":
                chatting.setdefault(target.engine, name)
    for name, model in settings.models.items():
        for path, engine in _references(name, model):
            if model.task != "chat" and engine in chatting and settings.engines[engine].kind is EngineKind.VLLM:
                message = f"{engine} also serves {chatting[engine]} for chat, and a vLLM server has one or the other"
                yield Finding(path, message, f"give the {model.task} model an engine of its own", rule="mixed-tasks")


def _references(name: str, model: Model) -> Iterator[tuple[Path, str]]:
    if model.engine is not None:
        yield ("models", name, "engine"), model.engine
    for index, target in enumerate(model.targets):
        yield ("models", name, "targets", index, "engine"), target.engine


def _tasks_by_name(settings: Settings) -> Iterator[Finding]:
    for name, model in settings.models.items():
        names = [target.model or name for target in model.targets_of(name)]
        task = next((found for one in names if (found := task_of_name(one)) is not None), None)
        if model.task == "chat" and task is not None:
            verb = "makes embeddings" if task == "embedding" else "ranks texts"
            message = f'by its name, "{names[0]}" {verb}, and this model is for chat'
            yield Finding(("models", name), message, f"task: {task}", at_key=True, rule="task-by-name")


def _limits_out_of_reach(settings: Settings) -> Iterator[Finding]:
    for name, model in settings.models.items():
        room = [_room(settings.engines[target.engine]) for target in model.targets_of(name)]
        known = [one for one in room if one is not None]
        if model.max_in_flight is not None and len(known) == len(room) and sum(known) < model.max_in_flight:
            message = f"is never reached: its engines take {sum(known)} requests in all"
            yield Finding(("models", name, "max_in_flight"), message, "lower it, or leave it out", rule="out-of-reach")


def _room(engine: Engine) -> int | None:
    if engine.max_in_flight is None or any(url.startswith(MANY_ADDRESSES) for url in engine.urls):
        return None
    return engine.max_in_flight * len(engine.urls)


def _replicas(settings: Settings, targets: Iterable[Target]) -> float:
    """How many replicas may serve; a name may stand for any number."""
    urls = {url for target in targets for url in settings.engines[target.engine].urls}
    return inf if any(url.startswith(MANY_ADDRESSES) for url in urls) else len(urls)


_AFFINITIES: Final[Mapping[str, frozenset[str]]] = {
    "session_affinity": frozenset({"by", "header"}),
    "prefix_affinity": frozenset({"factor"}),
}


def _without_effect(settings: Settings) -> Iterator[Finding]:
    """Keys that were written down and change nothing."""
    for path, why in (*_idle_engine_keys(settings), *_idle_model_keys(settings)):
        yield Finding(path, f"has no effect: {why}", "leave it out", at_key=True, rule="no-effect")
    limited = [engine.max_in_flight for engine in settings.engines.values()]
    limited += [model.max_in_flight for model in settings.models.values()]
    if "admission" in settings.model_fields_set and settings.models and not any(limited):
        why = "has no effect: nothing is limited, so nobody waits"
        yield Finding(("admission",), why, "set max_in_flight of an engine or a model", at_key=True, rule="no-effect")


def _idle_engine_keys(settings: Settings) -> Iterator[tuple[Path, str]]:
    for name, engine in settings.engines.items():
        if engine.api_key_header is not None and not engine.credentials:
            yield ("engines", name, "api_key_header"), "there is no api_key"
        if "priorities" in engine.model_fields_set and engine.kind is not EngineKind.VLLM:
            yield ("engines", name, "priorities"), f"it is for vllm, and {name} is {engine.kind}"
        if "guided_decoding" in engine.model_fields_set and engine.kind is not EngineKind.TRTLLM:
            yield ("engines", name, "guided_decoding"), f"it is for trtllm, and {name} is {engine.kind}"


def _idle_model_keys(settings: Settings) -> Iterator[tuple[Path, str]]:
    for name, model in settings.models.items():
        here, written = ("models", name), model.model_fields_set
        if "fallback_on" in written and not model.fallbacks:
            yield (*here, "fallback_on"), "there are no fallbacks"
        if model.hedge is not None and _replicas(settings, model.targets_of(name)) == 1:
            yield (*here, "hedge"), "there is one replica only"
        if "token_inputs" in written and model.task != "embedding":
            yield (*here, "token_inputs"), "it is for embedding models"
        for key in {"tools", "reasoning"} & written if model.task != "chat" else ():
            yield (*here, key), "it is for chat models"
        for key in model.affinity.model_fields_set - _AFFINITIES.get(model.policy, frozenset()):
            yield (*here, "affinity", key), f"policy {model.policy} does not look at it"


def _open_to_pages(settings: Settings) -> Iterator[Finding]:
    for index, origin in enumerate(settings.server.cors_origins):
        if origin == "*":
            message = "any web page that somebody opens may call the models"
            yield Finding(("server", "cors_origins", index), message, "name the pages that may", rule="open-to-pages")
