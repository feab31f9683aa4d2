"""Prometheus text by its names: family, type, label names."""

import re
from typing import Any

SAMPLE = re.compile(r"^([a-zA-Z_:][\w:]*)(?:\{(.*)\})? \S+$")
LABEL = re.compile(r'(\w+)="')


def families(text: str) -> dict[str, dict[str, Any]]:
    """Each family's type and the names of its labels, `le` aside."""
    found: dict[str, dict[str, Any]] = {}
    name = ""
    for line in text.splitlines():
        if line.startswith("# TYPE "):
            _, _, name, kind = line.split(" ")
            found[name] = {"type": kind, "labels": []}
        elif (sample := SAMPLE.match(line)) and sample[1].startswith(name) and name:
            labels = set(LABEL.findall(sample[2] or "")) - {"le"}
            found[name]["labels"] = sorted(labels | set(found[name]["labels"]))
    return found
