"""The file that a running gateway's configuration comes from: looked at again and again, and read when it has changed.

Looking is a `stat` of each file twice a second, rather than a watch by the kernel: it sees what replaces a file (an
editor's rename, the symbolic links of a Kubernetes ConfigMap, a bind mount), works on every file system, and needs no
thread, which a process that forks must not have. Time is an argument.
"""

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final, TypeAlias

from gateway.settings.loading import Loaded, load
from gateway.settings.problems import ConfigErrors
from gateway.settings.server import Server
from gateway.settings.tree import Settings

LOOK_EVERY: Final = 0.5
"""Seconds between two looks."""

UNSETTLED: Final = 4
"""Looks after which a file that is another one each time is read all the same."""

TRY_AGAIN: Final = 5.0
"""Seconds after which files that could not be used are read again, changed or not: what they lack may lie elsewhere."""

NEED_RESTART: Final = ("host", "port", "workers")
"""Keys of `server` that hold from the start to the end of a process."""

UNSEEN: Final = ()
"""No look at all. What was read before the first look may have changed until then, so it is read once more."""

Sight: TypeAlias = tuple[tuple[int, int, int, int] | None, ...]
"""What can be seen of files from outside: device, number, time of the last change and size; None for one that is not
there."""


@dataclass(frozen=True, slots=True)
class Configuration:
    """Settings with where they come from. ``loaded_at`` is in Unix seconds, ``hash`` is "" where there is no file."""

    settings: Settings
    hash: str = ""
    source: str = ""
    loaded_at: float = 0.0


def see(files: Iterable[Path]) -> Sight:
    """How files look now."""
    return tuple(_see(file) for file in files)


def _see(file: Path) -> tuple[int, int, int, int] | None:
    try:
        found = os.stat(file)  # noqa: PTH116 - the link's target, without resolving it first
    except (OSError, ValueError):
        return None
    return found.st_dev, found.st_ino, found.st_mtime_ns, found.st_size


class Watch:
    """Tells when files have become other ones, and have stayed so from one look to the next: a file that is just being
    written is left alone for a while.
    """

    def __init__(self, sight: Sight) -> None:
        self._known = sight
        self._new: Sight | None = None
        self._looks = 0

    def changed(self, sight: Sight) -> bool:
        """Takes a look into account; True once for each change."""
        if sight == self._known:
            self._new, self._looks = None, 0
            return False
        self._looks += 1
        if sight != self._new and self._looks < UNSETTLED:
            self._new = sight
            return False
        self._known, self._new, self._looks = sight, None, 0
        return True


class ConfigFile:
    """A configuration's file as it is read over time. ``given`` are keys of `server` from the command line."""

    def __init__(self, loaded: Loaded, environ: Mapping[str, str], given: Mapping[str, object]) -> None:
        self._environ = environ
        self._given = given
        self.path = loaded.source.absolute()
        self._files = _absolute(loaded.files)
        self._watch = Watch(UNSEEN)
        self._last = (with_server(loaded.settings, given), loaded.text_hash)
        self._refused = ""
        self._again_at = 0.0

    def first(self, loaded: Loaded, at: float) -> Configuration:
        """What was read at the start, ``at`` Unix seconds."""
        return self._configuration(loaded, at)

    def poll(self, now: float, at: float) -> Configuration | ConfigErrors | None:
        """Looks, and reads if there is reason to; None if there is no news. ``now`` only has to go forward."""
        due = bool(self._refused) and now >= self._again_at
        if not self._watch.changed(see(self._files)) and not due:
            return None
        before, refused = self._last, self._refused
        found = self.read(now, at)
        return None if (self._last, self._refused) == (before, refused) else found

    def read(self, now: float, at: float) -> Configuration | ConfigErrors:
        """Reads the files as they are."""
        try:
            loaded = load(self.path, self._environ)
        except ConfigErrors as errors:
            self._refused, self._again_at = str(errors), now + TRY_AGAIN
            return errors
        self._refused = ""
        files = _absolute(loaded.files)
        if files != self._files:
            self._files = files
            self._watch = Watch(UNSEEN)
        found = self._configuration(loaded, at)
        self._last = (found.settings, found.hash)
        return found

    def _configuration(self, loaded: Loaded, at: float) -> Configuration:
        settings = with_server(loaded.settings, self._given)
        return Configuration(settings, loaded.text_hash, str(self.path), at)


def _absolute(files: Iterable[Path]) -> tuple[Path, ...]:
    return tuple(file.absolute() for file in files)


def with_server(settings: Settings, given: Mapping[str, object]) -> Settings:
    """Settings with other values for some keys of `server`."""
    return settings.model_copy(update={"server": settings.server.model_copy(update=dict(given))}) if given else settings


def held(new: Configuration, running: Server) -> tuple[Configuration, tuple[str, ...]]:
    """A configuration with what cannot change while the gateway runs left as it is; and what that is, for people."""
    server = new.settings.server
    differ = [key for key in NEED_RESTART if getattr(server, key) != getattr(running, key)]
    kept = {key: getattr(running, key) for key in differ}
    told = (f"server.{key}: {kept[key]} until a restart, then {getattr(server, key)}" for key in differ)
    return replace(new, settings=with_server(new.settings, kept)), tuple(told)
