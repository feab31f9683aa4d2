"""An engine as Kubernetes objects, as plain values."""

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Final

from engines.launch.command import Command, SecretFile, SettingsPath, Word
from engines.launch.images import GIB, START, Needs, needs_of
from engines.launch.kinds import AnyLaunch, command_of
from engines.launch.paths import WEIGHTS, relative_paths
from engines.launch.place import EVERYWHERE, Place

Tree = dict[str, object]

SETTINGS: Final = "/etc/engine/settings.yaml"
_SHARED_MEMORY: Final = "/dev/shm"  # noqa: S108 - not a folder for temporary files


class NotInAPodError(ValueError):
    """A launch that a pod cannot do; the message says why, and what to do."""


def kubernetes(place: Place, launch: AnyLaunch, yaml_text: Callable[[object], str]) -> tuple[Tree, ...]:
    """Every object that runs an engine: a claim for its weights, its settings, a Deployment, a Service.

    `yaml_text` writes the file of further settings.

    Raises:
        NotInAPodError: a path counts from a folder of the host.
    """
    sources = [("container.weights", launch.container.weights)]
    sources += [("container.volumes", source) for source, _, _ in _sources(launch)]
    relative = [(key, path) for key, path in sources if path.startswith((".", "~"))]
    for key, path in (*relative, *relative_paths(launch).items()):
        fix = "mount a claim (container.volumes: [CLAIM:/TARGET]) and name the path below its target"
        raise NotInAPodError(f"{key}: {path} is no path in a pod; {fix}")
    command, needs = command_of(launch, EVERYWHERE, place.port), needs_of(launch)
    objects = [_claim(launch)] if _is_name(launch.container.weights) else []
    if command.settings is not None:
        objects.append(_config_map(place, yaml_text(dict(command.settings))))
    return (*objects, _deployment(place, launch, command, needs), _service(place, needs))


def _labels(place: Place) -> Tree:
    return {"app.kubernetes.io/name": place.service}


def _claim(launch: AnyLaunch) -> Tree:
    size = _quantity(launch.container.weights_size)
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": launch.container.weights},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": size}}},
    }


def _config_map(place: Place, text: str) -> Tree:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": f"{place.service}-settings", "labels": _labels(place)},
        "data": {"settings.yaml": text},
    }


def _service(place: Place, needs: Needs) -> Tree:
    further: list[Tree] = [{"name": name, "port": port, "targetPort": name} for name, port in needs.further_ports]
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": place.service, "labels": _labels(place)},
        "spec": {
            "selector": _labels(place),
            "ports": [{"name": "http", "port": place.port, "targetPort": "http"}, *further],
        },
    }


def _deployment(place: Place, launch: AnyLaunch, command: Command, needs: Needs) -> Tree:
    pod: Tree = {
        # A Service named vllm would otherwise set VLLM_PORT, which vLLM reads as its own.
        "enableServiceLinks": False,
        "automountServiceAccountToken": False,
        "terminationGracePeriodSeconds": needs.grace,
        "containers": [_container(place, launch, command, needs)],
        "volumes": list(_volumes(place, launch, command)),
    }
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": place.service, "labels": _labels(place)},
        "spec": {
            "replicas": 1,
            # A second pod would wait for GPUs that the first one holds.
            "strategy": {"type": "Recreate"},
            "selector": {"matchLabels": _labels(place)},
            "template": {"metadata": {"labels": _labels(place)}, "spec": pod},
        },
    }


def _container(place: Place, launch: AnyLaunch, command: Command, needs: Needs) -> Tree:
    words = [_text(word) for word in command.words]
    container: Tree = {"name": place.service, "image": needs.image}
    if needs.entrypoint:
        container["command"] = words[: needs.entrypoint]
    container["args"] = words[needs.entrypoint :]
    ports = [("http", place.port), *needs.further_ports]
    container["ports"] = [{"name": name, "containerPort": port} for name, port in ports]
    container["env"] = list(_environment(command))
    if needs.gpus:
        container["resources"] = {"limits": {"nvidia.com/gpu": needs.gpus}}
    container |= _probes(needs)
    container["volumeMounts"] = list(_mounts(launch, command))
    container["securityContext"] = {"allowPrivilegeEscalation": False}
    return container


def _text(word: Word) -> str:
    """Kubernetes replaces `$(NAME)` by a variable; `$$(` stands for itself."""
    match word:
        case SecretFile():
            return f"$({word.variable})"
        case SettingsPath():
            return SETTINGS
        case _:
            return word.replace("$(", "$$(")


def _environment(command: Command) -> Iterator[Tree]:
    """Variables, each once; secrets come from Secret objects of the same name as the file, with the key `value`."""
    own = {name: value for name, value in command.environment.items() if name != "CUDA_VISIBLE_DEVICES"}
    if "HF_HOME" not in own:
        yield {"name": "HF_HOME", "value": WEIGHTS}
    if "HF_TOKEN" not in own:
        yield _secret("HF_TOKEN", "hf-token", optional=True)
    on_line = [word for word in command.words if isinstance(word, SecretFile)]
    for secret in dict.fromkeys(on_line):
        yield _secret(secret.variable, secret.name)
    for name, value in own.items():
        if isinstance(value, SecretFile):
            yield _secret(name, value.name)
        elif isinstance(value, str):
            yield {"name": name, "value": value.replace("$(", "$$(")}


def _secret(variable: str, name: str, *, optional: bool = False) -> Tree:
    reference: Tree = {"name": name, "key": "value"}
    if optional:
        reference["optional"] = True
    return {"name": variable, "valueFrom": {"secretKeyRef": reference}}


def _probes(needs: Needs) -> Tree:
    return {
        "startupProbe": {**_ask(needs.health), "periodSeconds": 10, "failureThreshold": START // 10},
        "readinessProbe": {**_ask(needs.health), "periodSeconds": 5, "failureThreshold": 2},
        "livenessProbe": {**_ask(needs.alive), "periodSeconds": 10, "failureThreshold": 6},
    }


def _ask(path: str | None) -> Tree:
    if path is None:
        return {"tcpSocket": {"port": "http"}, "timeoutSeconds": 5}
    return {"httpGet": {"path": path, "port": "http"}, "timeoutSeconds": 5}


def _sources(launch: AnyLaunch) -> Iterator[tuple[str, str, bool]]:
    """What is mounted: a claim or a folder of the node, where, and whether it may be written."""
    yield launch.container.weights, WEIGHTS, True
    for mount in launch.container.volumes:
        source, target, *mode = mount.split(":")
        yield source, target, mode != ["ro"]


def _mounts(launch: AnyLaunch, command: Command) -> Iterator[Tree]:
    yield {"name": "shared-memory", "mountPath": _SHARED_MEMORY}
    for source, target, writable in _sources(launch):
        yield {"name": _volume_name(source), "mountPath": target, **({} if writable else {"readOnly": True})}
    if command.settings is not None:
        yield {"name": "settings", "mountPath": SETTINGS.rpartition("/")[0], "readOnly": True}


def _volumes(place: Place, launch: AnyLaunch, command: Command) -> Iterator[Tree]:
    size = launch.container.shared_memory or (16 if needs_of(launch).gpus else 4) * GIB
    yield {"name": "shared-memory", "emptyDir": {"medium": "Memory", "sizeLimit": _quantity(size)}}
    seen: Mapping[str, str] = {_volume_name(source): source for source, _, _ in _sources(launch)}
    for name, source in seen.items():
        if _is_name(source):
            yield {"name": name, "persistentVolumeClaim": {"claimName": source}}
        else:
            yield {"name": name, "hostPath": {"path": source}}
    if command.settings is not None:
        yield {"name": "settings", "configMap": {"name": f"{place.service}-settings"}}


def _quantity(size: int) -> str:
    return f"{size // GIB}Gi" if size % GIB == 0 else str(size)


def _is_name(source: str) -> bool:
    return "/" not in source


def _volume_name(source: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", source.lower()).strip("-")[:63] or "volume"
