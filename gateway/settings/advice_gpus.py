"""Warnings about engines that are started on one GPU and claim more than it has."""

from collections.abc import Iterator
from urllib.parse import urlsplit

from engines.launch.memory import claims
from engines.launch.place import LOOPBACK
from gateway.settings.problems import Finding, Path
from gateway.settings.tree import Settings

RULE = "gpu-memory"


def crowded_gpus(settings: Settings) -> Iterator[Finding]:
    """GPUs on one machine (the host in the URL) that several launches name, and whose shares add up to more than all.

    Triton's models share the GPUs of their server, named or not.
    """
    claimed: dict[tuple[str, str], list[tuple[Path, str, float, bool]]] = {}
    for name, engine in settings.engines.items():
        launch = engine.launch
        if launch is None:
            continue
        hosts = {urlsplit(url.removeprefix("dns+")).hostname or "" for url in engine.urls}
        machine = "localhost" if hosts <= LOOPBACK else ",".join(sorted(hosts))
        for claim in claims(launch):
            path: Path = ("engines", name, "launch", *claim.key)
            label = name if len(claim.key) == 1 else f"{name} ({claim.key[1]})"
            for device in launch.devices or (f"any GPU of {name}",):
                claimed.setdefault((machine, device), []).append((path, label, claim.share, claim.of_rest))
    told: set[Path] = set()
    for (_, device), several in claimed.items():
        path, finding = _finding(device, several)
        if finding is not None and path not in told:
            told.add(path)
            yield finding


def _finding(device: str, several: list[tuple[Path, str, float, bool]]) -> tuple[Path, Finding | None]:
    fixed = sum(share for _, _, share, of_rest in several if not of_rest)
    path = several[-1][0]
    where = device if device.startswith("any") else f"GPU {device}"
    names = ", ".join(f"{label} {share:.0%}" for _, label, share, _ in several)
    if fixed > 1:
        fix = "lower gpu_memory_utilization so that the sum stays below 1, or use further devices"
        return path, Finding(path, f"{where} has not that much memory: {names}", fix, rule=RULE)
    greedy = [label for _, label, _, of_rest in several if of_rest]
    if greedy and len(several) > 1:
        message = f"{where} is shared ({names}), and {greedy[0]} takes a share of whatever is free when it starts"
        return path, Finding(path, message, "give it a GPU of its own, or start it last", rule=RULE)
    return path, None
