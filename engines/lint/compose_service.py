"""One service of a compose file, as it is written."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from ruamel.yaml.scalarstring import FoldedScalarString, LiteralScalarString

from engines.lint.docker_run import gpus_of, ports_of
from engines.lint.numbers import container_size
from engines.lint.start import ALL, Container
from engines.lint.words import UnclosedError, Word, split_lines
from engines.lint.yaml_lines import line_of

_DEFAULT: Final = re.compile(r"\$\{\w+:?-([^{}]*)\}")
_URL: Final = re.compile(r"https?://(?:localhost|127\.0\.0\.1|0\.0\.0\.0)(?::(\d+))?(/[^\s'\"?#]*)?")


@dataclass(frozen=True)
class Written:
    """A service within its file."""

    tree: object
    name: str
    service: Mapping[str, object]
    file: str

    def line(self, *keys: str | int) -> int:
        """The line of one of its keys; of the service itself without one."""
        return line_of(self.tree, ("services", self.name, *keys))

    def texts(self, key: str) -> list[str]:
        """A list of texts; empty if there is none."""
        given = self.service.get(key)
        return [literal(item) for item in given] if isinstance(given, list) else []

    def words(self, key: str) -> list[Word]:
        """The words of a command, which may be a text or a list."""
        given = self.service.get(key)
        if isinstance(given, list):
            return [Word(literal(item), self._text_line(item, key, index)) for index, item in enumerate(given)]
        try:
            lines = list(split_lines(literal(given))) if isinstance(given, str) else []
        except UnclosedError:
            return []
        first = self._text_line(given, key)
        kept = isinstance(given, LiteralScalarString)
        return [Word(word.text, first + (word.line - 1 if kept else 0)) for line in lines for word in line.words]

    def _text_line(self, value: object, *keys: str | int) -> int:
        """The line of a text: after `|` and `>` it begins below."""
        return self.line(*keys) + isinstance(value, LiteralScalarString | FoldedScalarString)

    @cached_property
    def environment(self) -> dict[str, str]:
        """Its variables, as far as their values are written."""
        given = self.service.get("environment")
        if isinstance(given, Mapping):
            return {str(name): literal(value) for name, value in given.items() if value is not None}
        pairs = (text.partition("=") for text in self.texts("environment"))
        return {name: value for name, equals, value in pairs if equals}


def literal(value: object) -> str:
    """A value as compose makes text of it: defaults of variables filled in, other variables as they are."""
    if isinstance(value, bool):
        return str(value).lower()
    return _DEFAULT.sub(lambda found: found[1], str(value)).replace("$$", "$")


def container_of(written: Written) -> Container:
    """The container that a service runs in."""
    service = written.service
    limits = service.get("ulimits")
    named = {"ports": "ports", "shm": "shm_size", "health": "healthcheck", "ulimits": "ulimits"}
    lines = {"": written.line()} | {key: written.line(name) for key, name in named.items() if name in service}
    return Container(
        literal(service.get("image", "")),
        _gpus(written),
        None if "shm_size" not in service else container_size(literal(service["shm_size"])),
        host_ipc=service.get("ipc") == "host",
        host_network=service.get("network_mode") == "host",
        ports=tuple(_ports(service.get("ports"))),
        limits=frozenset(map(str, limits)) if isinstance(limits, Mapping) else frozenset(),
        health=_health(service.get("healthcheck")),
        lines=lines,
    )


def _gpus(written: Written) -> tuple[str, ...]:
    service = written.service
    deploy: object = service.get("deploy")
    for key in ("resources", "reservations", "devices"):
        deploy = deploy.get(key) if isinstance(deploy, Mapping) else None
    wanted = deploy if isinstance(deploy, list) else service.get("gpus")
    if isinstance(wanted, str):
        return gpus_of(literal(wanted))
    found = [gpus for item in wanted if (gpus := _device(item))] if isinstance(wanted, list) else []
    if not found and (service.get("runtime") == "nvidia" or any("nvidia" in one for one in written.texts("devices"))):
        named = written.environment.get("NVIDIA_VISIBLE_DEVICES", "all")
        return ALL if named == "all" else tuple(named.split(","))
    return ALL if ALL in found else tuple(dict.fromkeys(one for gpus in found for one in gpus))


def _device(item: object) -> tuple[str, ...]:
    """The GPUs of one reservation: those it names, the first of them that it counts, or all."""
    if not isinstance(item, Mapping):
        return ()
    capabilities = item.get("capabilities")
    wanted = isinstance(capabilities, list) and "gpu" in capabilities
    if not wanted and item.get("driver") not in {"nvidia", None}:
        return ()
    names = item.get("device_ids")
    if isinstance(names, list):
        return tuple(literal(name) for name in names)
    count = literal(item.get("count", "all"))
    return tuple(map(str, range(int(count)))) if count.isdigit() else ALL


def _ports(given: object) -> Iterator[tuple[int | None, int]]:
    for item in given if isinstance(given, list) else []:
        if isinstance(item, Mapping):
            host = literal(item["published"]) if "published" in item else ""
            yield from ports_of(
                f"{host}:{literal(item.get('target', ''))}" if host else literal(item.get("target", ""))
            )
        else:
            yield from ports_of(literal(item))


def _health(given: object) -> tuple[int, str] | None:
    test = given.get("test") if isinstance(given, Mapping) else None
    words: Sequence[object] = test if isinstance(test, list) else [test] if isinstance(test, str) else []
    found = _URL.search(" ".join(map(literal, words)))
    return (int(found[1] or 80), found[2] or "/") if found else None
