"""Compose files: the engines among their services, and what they share."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from engines.lint.compose_service import Written, container_of
from engines.lint.finding import At, Finding
from engines.lint.programs import Around, in_image
from engines.lint.start import Start


@dataclass(frozen=True, slots=True)
class Service:
    """A service: what it starts (nothing if that is no engine), its profiles, and the ports of the host it takes."""

    name: str
    starts: tuple[Start, ...]
    findings: tuple[Finding, ...]
    profiles: frozenset[str]
    ports: tuple[int, ...]
    at_ports: At

    def beside(self, other: "Service") -> bool:
        """Whether both may run at the same time, as profiles are usually asked for: one of them."""
        return not self.profiles or not other.profiles or bool(self.profiles & other.profiles)


def services(tree: Mapping[str, object], file: str) -> Iterator[Service]:
    """The services of a compose file."""
    given = tree.get("services")
    for name, service in given.items() if isinstance(given, Mapping) else ():
        if isinstance(service, Mapping):
            yield _service(Written(tree, str(name), service, file))


def groups(given: Sequence[Service]) -> Iterator[list[Service]]:
    """Services that run together: those without a profile and those of one, for each profile."""
    profiles = sorted({profile for service in given for profile in service.profiles})
    for profile in profiles or [""]:
        yield [service for service in given if not service.profiles or profile in service.profiles]


def taken_ports(given: Sequence[Service]) -> Iterator[Finding]:
    """Ports of the host that two services want."""
    seen: dict[int, Service] = {}
    for service in given:
        for port in service.ports:
            other = seen.setdefault(port, service)
            if other is not service and other.beside(service) and (other.starts or service.starts):
                message = f"port {port} of the host is taken: {other.name} publishes it too"
                yield service.at_ports.error("port-taken", message, f'another one: "{port + 1}:…"')


def _service(written: Written) -> Service:
    container = container_of(written)
    around = Around(written.file, written.environment, container, written.name)
    entrypoint = None if written.service.get("entrypoint") is None else written.words("entrypoint")
    found = list(in_image(entrypoint, written.words("command"), around, written.line()))
    return Service(
        written.name,
        tuple(one for one in found if isinstance(one, Start)),
        tuple(one for one in found if isinstance(one, Finding)),
        frozenset(written.texts("profiles")),
        tuple(port for port, _ in container.ports if port is not None),
        At(written.file, written.line("ports")),
    )
