"""Files and folders that a launch names, and how they come into a container."""

from collections.abc import Iterator, Mapping
from typing import Final

from engines.launch.kinds import AnyLaunch

WEIGHTS: Final = "/models"
"""Where downloaded weights are kept in a container."""

_KEYS: Final = ("model", "tokenizer", "chat_template", "repository")


def paths_of(launch: AnyLaunch) -> Iterator[tuple[str, str]]:
    """The keys of a launch whose values are paths, and the paths: those that begin with a slash or a dot."""
    for key in _KEYS:
        value = getattr(launch, key, None)
        if isinstance(value, str) and value.startswith(("/", "./", "../")):
            yield key, value
    loras = getattr(launch, "loras", None)
    for name, value in loras.items() if isinstance(loras, Mapping) else ():
        if value.startswith(("/", "./", "../")):
            yield f"loras.{name}", value


def relative_paths(launch: AnyLaunch) -> dict[str, str]:
    """The keys with paths that count from a folder of the host, which a container does not have."""
    return {key: value for key, value in paths_of(launch) if not value.startswith("/")}


def in_container(launch: AnyLaunch) -> tuple[AnyLaunch, tuple[str, ...]]:
    """The launch as it is within a container, and the mounts that its relative paths need, read-only."""
    inside = {key: f"/mnt/{key.replace('.', '/')}" for key in relative_paths(launch)}
    mounts = tuple(f"{path}:{inside[key]}:ro" for key, path in relative_paths(launch).items())
    plain: dict[str, object] = {key: path for key, path in inside.items() if "." not in key}
    loras = getattr(launch, "loras", None)
    if isinstance(loras, Mapping):
        plain["loras"] = {name: inside.get(f"loras.{name}", path) for name, path in loras.items()}
    return launch.model_copy(update=plain), mounts


def unseen_paths(launch: AnyLaunch) -> Iterator[tuple[str, str]]:
    """Absolute paths that nothing is mounted at: they are there only if the image has them."""
    targets = [WEIGHTS, *(mount.split(":")[1] for mount in launch.container.volumes)]
    for key, path in paths_of(launch):
        below = any(path == target or path.startswith(target.rstrip("/") + "/") for target in targets)
        if path.startswith("/") and not below:
            yield key, path
