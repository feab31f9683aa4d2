"""`docker run …` and `podman run …`: the container, and what runs in it."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from engines.lint.numbers import container_size
from engines.lint.start import ALL, Container
from engines.lint.words import Word

_SWITCHES: Final = frozenset(
    {
        "--rm",
        "--detach",
        "--interactive",
        "--tty",
        "--init",
        "--privileged",
        "--read-only",
        "--publish-all",
        "--no-healthcheck",
        "--oom-kill-disable",
        "--quiet",
    }
)


@dataclass(frozen=True, slots=True)
class Run:
    """A container, its variables, the words after the image, and the entry point if another was asked for."""

    container: Container
    environment: dict[str, str]
    entrypoint: str | None
    words: tuple[Word, ...]
    behind: bool


def read_run(words: Sequence[Word]) -> Run | None:
    """The container that the words after `run` make; None if they name no image."""
    given: list[tuple[str, str]] = []
    lines: dict[str, int] = {}
    at = 0
    while at < len(words) and words[at].text.startswith("-"):
        name, equals, value = words[at].text.partition("=")
        short = re.fullmatch(r"-[a-zA-Z]+", name) is not None
        lines.setdefault(name.lstrip("-"), words[at].line)
        if name in _SWITCHES or (short and set(name[1:]) <= set("ditPq")):
            given.append((name, "true"))
            at += 1
            continue
        if not equals and at + 1 < len(words):
            value = words[at + 1].text
            at += 1
        given.append((name, value))
        at += 1
    if at >= len(words):
        return None
    container = _container(words[at].text, given, lines)
    environment = dict(value.partition("=")[::2] for name, value in given if name in {"-e", "--env"} and "=" in value)
    entrypoint = next((value for name, value in given if name == "--entrypoint"), None)
    behind = any(name == "--detach" or (re.fullmatch(r"-[a-z]*d[a-z]*", name)) for name, _ in given)
    return Run(container, environment, entrypoint, tuple(words[at + 1 :]), behind)


def _container(image: str, given: Sequence[tuple[str, str]], lines: dict[str, int]) -> Container:
    def of(*names: str) -> list[str]:
        return [value for name, value in given if name in names]

    gpus = gpus_of(of("--gpus", "--device")[-1]) if of("--gpus") else ()
    if not gpus and of("--runtime") == ["nvidia"]:
        gpus = ALL
    sizes = [container_size(value) for value in of("--shm-size")]
    return Container(
        image,
        gpus or (ALL if any("nvidia" in value for value in of("--device")) else ()),
        sizes[-1] if sizes else None,
        host_ipc="host" in of("--ipc"),
        host_network="host" in of("--network", "--net"),
        ports=tuple(pair for value in of("-p", "--publish") for pair in ports_of(value)),
        limits=frozenset(value.partition("=")[0] for value in of("--ulimit")),
        lines={"ports": lines.get("p", lines.get("publish", 0)), "shm": lines.get("shm-size", 0)},
    )


def gpus_of(text: str) -> tuple[str, ...]:
    """The GPUs that `--gpus` names: `all`, a count (the first ones), or `device=0,1`."""
    text = text.strip("\"'")
    if text == "all":
        return ALL
    if text.isdigit():
        return tuple(map(str, range(int(text))))
    found = re.search(r"device=([\w,-]+)", text)
    return tuple(one for one in found[1].split(",") if one) if found else ALL


def ports_of(text: str) -> list[tuple[int | None, int]]:
    """The ports of `[ADDRESS:]HOST:OWN[/tcp]`, or of `OWN` alone; none where a variable says them."""
    *before, own = text.partition("/")[0].split(":")
    host = before[-1] if before else ""
    if not own.isdigit() or (host and not host.isdigit()):
        return []
    return [(int(host) if host else None, int(own))]
