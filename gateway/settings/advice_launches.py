"""Warnings about launch settings: odd by themselves, or against what the routes promise.

Each rule speaks only where the file says both sides; what an engine does by itself is the doctor's to find out.
"""

from collections.abc import Iterator
from typing import Final, assert_never
from urllib.parse import urlsplit

from engines.launch.kinds import AnyLaunch
from engines.launch.place import LOOPBACK
from engines.launch.remarks import remarks
from engines.launch.triton import TritonLaunch, VllmModel
from engines.launch.trtllm import TrtllmLaunch
from engines.launch.trtllm_engine import TrtllmEngine
from engines.launch.vllm import VllmLaunch
from engines.launch.vllm_engine import VllmEngine
from gateway.settings.engines import Engine
from gateway.settings.models import Model
from gateway.settings.problems import Finding, Path, did_you_mean
from gateway.settings.tree import Settings
from gateway.settings.units import duration_text
from gateway.wire.tools.facts import known_format

_POOLING: Final = frozenset({"embed", "classify"})


def advise_on_launches(settings: Settings) -> Iterator[Finding]:
    """Every warning about launch settings, by themselves and against the routes."""
    for name, engine in settings.engines.items():
        if engine.launch is None:
            continue
        here: Path = ("engines", name, "launch")
        for remark in remarks(engine.launch):
            yield Finding((*here, remark.key), remark.message, remark.fix, rule=remark.rule)
        yield from _parser(here, engine, engine.launch)
        yield from _key(here, engine, engine.launch)
        yield from _limits(name, engine, engine.launch)
        yield from _address(here, engine, engine.launch)
    for name, model in settings.models.items():
        for target in model.targets_of(name):
            engine = settings.engines[target.engine]
            if engine.launch is not None:
                yield from _route(name, model, target.engine, target.model or name, engine)


def parser_of(engine: Engine) -> str | None:
    """The tool parser that an engine has as far as the file says: its own word, or its launch's; `none` without one."""
    if engine.parser is not None or engine.launch is None:
        return engine.parser
    words = set(engine.launch.extra_args)
    if any("tool" in word and "parser" in word for word in words):
        return None
    return engine.launch.tool_parser or "none"


def keep_alive_of(engine: Engine) -> float | None:
    """Seconds that the engine keeps an idle connection, if the launch says so."""
    launch = engine.launch
    return float(launch.keep_alive) if isinstance(launch, VllmLaunch) and launch.keep_alive is not None else None


def _parser(here: Path, engine: Engine, launch: AnyLaunch) -> Iterator[Finding]:
    started = launch.tool_parser or "none"
    if engine.parser is not None and engine.parser != started and "--tool-call-parser" not in launch.extra_args:
        message = f"the engine is started with tool parser {started}, and `parser` says {engine.parser}"
        yield Finding((*here[:2], "parser"), message, "leave `parser` out, or say the same", rule="parser-differs")


def _key(here: Path, engine: Engine, launch: AnyLaunch) -> Iterator[Finding]:
    if isinstance(launch, VllmLaunch) and launch.api_key_file is not None and engine.api_key is None:
        fix = f"api_key: file:{launch.api_key_file} beside launch"
        message = "the engine asks for a key that the gateway does not have"
        yield Finding((*here, "api_key_file"), message, fix, rule="key-missing")
    if isinstance(launch, TritonLaunch):
        for index, rule in enumerate(launch.restricted):
            sent = engine.api_key_header if engine.api_key is not None else None
            if {"inference", "health"} & set(rule.apis) and (sent or "").lower() != rule.header.lower():
                message = f"the gateway does not send the header {rule.header}, without which it is refused"
                fix = f"api_key_header: {rule.header}, and api_key: file:{rule.value_file} beside launch"
                yield Finding((*here, "restricted", index), message, fix, rule="key-missing")


def _limits(name: str, engine: Engine, launch: AnyLaunch) -> Iterator[Finding]:
    here: Path = ("engines", name)
    at_once = launch.max_num_seqs if isinstance(launch, VllmLaunch) else None
    at_once = launch.max_batch_size if isinstance(launch, TrtllmLaunch) else at_once
    copies = launch.data_parallel_size or 1 if isinstance(launch, VllmLaunch) else 1
    most = launch.max_num_queued_reqs if isinstance(launch, VllmLaunch) else None
    asked = engine.max_in_flight
    if asked is not None and most is not None and asked > most:
        message = f"the engine answers 503 from {most} requests on (launch.max_num_queued_reqs)"
        yield Finding((*here, "max_in_flight"), message, f"{most} at most", rule="in-flight")
    elif asked is not None and at_once is not None and asked > at_once * copies:
        message = f"more than the engine computes at once ({at_once * copies}): the rest waits inside it, unseen"
        yield Finding((*here, "max_in_flight"), message, f"{at_once * copies} at most", rule="in-flight")
    signs = launch.sse_keep_alive_interval if isinstance(launch, VllmLaunch) else None
    if signs and signs >= engine.timeouts.idle:
        message = f"comes too late: a silent stream ends after {duration_text(engine.timeouts.idle)} (timeouts.idle)"
        path: Path = (*here, "launch", "sse_keep_alive_interval")
        yield Finding(path, message, "make it shorter than timeouts.idle", rule="contradicting-timeouts")


def _address(here: Path, engine: Engine, launch: AnyLaunch) -> Iterator[Finding]:
    urls = [urlsplit(url.removeprefix("dns+")) for url in engine.urls]
    if launch.host in LOOPBACK and not any(url.hostname in LOOPBACK for url in urls):
        message = f"listens on this machine's loopback only, and the engine's URL names {urls[0].hostname}"
        yield Finding((*here, "host"), message, "host: 0.0.0.0, or leave it out", rule="unreachable")
    if launch.port is not None and all(url.hostname in LOOPBACK and url.port != launch.port for url in urls):
        message = f"no URL of the engine has this port: {engine.urls[0]}"
        yield Finding((*here, "port"), message, "leave it out, or say the same", rule="unreachable")


def _route(name: str, model: Model, engine_name: str, asked: str, engine: Engine) -> Iterator[Finding]:
    launch = engine.launch
    if launch is None:
        return
    yield from _task(name, model, engine_name, asked, launch)
    yield from _name(name, engine_name, asked, launch)
    yield from _context(name, model, engine_name, asked, launch)
    if model.task == "chat":
        yield from _tools(name, model, engine_name, asked, engine)


def _task(name: str, model: Model, engine: str, asked: str, launch: AnyLaunch) -> Iterator[Finding]:
    here: Path = ("models", name)
    chats, other = _task_of(launch, asked)
    if model.task == "chat" and other:
        message = f"{engine} is started without chat ({other})"
        yield Finding(here, message, f"task: {_OTHER[model.task]}, or another engine", at_key=True, rule="task-differs")
    elif model.task != "chat" and chats:
        message = f"{engine} is started for chat ({chats}), and has no {model.task}"
        yield Finding((*here, "task"), message, "give it an engine of its own", rule="task-differs")


_OTHER: Final = {"chat": "embedding"}


def _task_of(launch: AnyLaunch, asked: str) -> tuple[str, str]:
    """The setting that makes an engine one for chat, and the one that makes it one without; empty where none does."""
    match launch:
        case VllmLaunch():
            if launch.runner == "pooling" or launch.convert in _POOLING:
                return "", "runner: pooling" if launch.runner == "pooling" else f"convert: {launch.convert}"
            chats = "runner: generate" if launch.runner == "generate" else ""
            chats = f"tool_parser: {launch.tool_parser}" if launch.tool_parser else chats
            return chats, ""
        case TrtllmLaunch():
            return ("", "task: embedding") if launch.task == "embedding" else ("trtllm-serve", "")
        case TritonLaunch():
            run = launch.models.get(asked)
            if launch.backend == "tensorrtllm" or (run is not None and not isinstance(run, VllmModel)):
                return "backend: tensorrtllm", ""
            return "", "runner: pooling" if run is not None and run.runner == "pooling" else ""


def _name(name: str, engine: str, asked: str, launch: AnyLaunch) -> Iterator[Finding]:
    known = _names(launch)
    if known and asked not in known and "--served-model-name" not in launch.extra_args:
        fix = did_you_mean(asked, known) or f"its names: {', '.join(known)}"
        message = f'{engine} is not started with a model "{asked}"'
        yield Finding(("models", name, "model"), message, fix, rule="served-name")


def _names(launch: AnyLaunch) -> list[str]:
    """What clients may ask the engine for; nothing where any name will do, or the file does not say."""
    match launch:
        case VllmLaunch():
            return [*(launch.served_names or (launch.model,)), *launch.loras]
        case TritonLaunch():
            between = launch.lora_separator or ""
            loras = {name: run.loras if isinstance(run, VllmModel) else {} for name, run in launch.models.items()}
            return [*launch.models, *(f"{name}{between}{lora}" for name, own in loras.items() for lora in own)]
        case TrtllmLaunch():  # it never looks at the name
            return []
    assert_never(launch)


def _context(name: str, model: Model, engine: str, asked: str, launch: AnyLaunch) -> Iterator[Finding]:
    longest = _longest(launch, asked)
    if model.context is not None and longest is not None and 0 < longest < model.context:
        message = f"{engine} is started for {longest} tokens, prompt and answer"
        yield Finding(("models", name, "context"), message, f"{longest} at most, or a longer launch", rule="context")


def _longest(launch: AnyLaunch, asked: str) -> int | None:
    """Tokens of prompt and answer together that a model may have, if the launch says so."""
    match launch.models.get(asked) if isinstance(launch, TritonLaunch) else launch:
        case VllmEngine() as run:
            return run.max_model_len
        case TrtllmEngine() as run:
            return run.max_seq_len
        case _:
            return None


def _tools(name: str, model: Model, engine_name: str, asked: str, engine: Engine) -> Iterator[Finding]:
    parser, launch, here = parser_of(engine), engine.launch, ("models", name, "tools")
    if launch is None or engine.parser is not None or "tools" not in model.model_fields_set:
        return
    names = (asked, str(getattr(launch, "model", "")), name)
    found = known_format(model.tools.format, parser, engine.kind, *names)
    if parser == "none" and model.tools.parse == "auto" and not found.format:
        message = f"{engine_name} is started without a tool parser, and nobody knows how this model writes tool calls"
        fix = f"format: NAME (docs/tool-calls.md), or a tool_parser in engines.{engine_name}.launch"
        yield Finding(here, message, fix, at_key=True, rule="unread-tools")
    elif parser not in (None, "none") and model.tools.parse == "auto" and model.tools.format != "auto":
        read = known_format("auto", parser, engine.kind).format
        if read and read != found.format:
            message = (
                f"{engine_name} is started with tool parser {parser} ({read}), and the model writes {found.format}"
            )
            yield Finding((*here, "format"), message, "another tool_parser in its launch", rule="format-differs")
