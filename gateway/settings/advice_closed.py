"""Warnings about what serves nobody: keys that let nobody in, and engines that are the gateway itself."""

from collections.abc import Iterator
from typing import Final
from urllib.parse import urlsplit

from gateway.settings.problems import Finding
from gateway.settings.tree import Settings

_HERE: Final = frozenset({"127.0.0.1", "localhost", "::1"})
_EVERYWHERE: Final = frozenset({"0.0.0.0", "::", ""})


def keys_for_nothing(settings: Settings) -> Iterator[Finding]:
    """Keys are asked for and nobody has one; or one opens nothing."""
    if settings.asks_for_keys and not settings.keys:
        name = "keys" if "keys" in settings.model_fields_set else "keys_file"
        fix = "turnout keys new NAME makes one; without keys and keys_file none is asked for"
        yield Finding((name,), "has no key, so that nobody is let in", fix, at_key=True, rule="lets-nobody-in")
    for index, key in enumerate(settings.keys):
        if key.models == ():
            fix = "name models, or leave it out for all"
            yield Finding(
                ("keys", index, "models"),
                "is empty: this key may ask for nothing",
                fix,
                at_key=True,
                rule="lets-nobody-in",
            )


def own_addresses(settings: Settings) -> Iterator[Finding]:
    """A gateway that is its own engine would ask itself, again and again."""
    server = settings.server
    for name, engine in settings.engines.items():
        for index, url in enumerate(engine.urls):
            parts = urlsplit(url)
            port = parts.port or (443 if parts.scheme.endswith("https") else 80)
            if port == server.port and _same_host(parts.hostname or "", server.host):
                message = f"is where this gateway itself listens (server.port: {server.port})"
                fix = "give one of the two another port"
                yield Finding(("engines", name, "urls", index), message, fix, rule="own-address")


def _same_host(asked: str, listening: str) -> bool:
    if asked in _HERE:
        return listening in _HERE | _EVERYWHERE
    return asked == listening
