"""Renews the baseline of the Python that runs it, and says what changed."""

import sys

from tests.performance.baseline import difference, file_for, load, save
from tests.performance.scenarios import SCENARIOS
from tests.performance.work import measure


def main() -> None:
    path = file_for()
    old = load(path) if path.exists() else {}
    new = {scenario.name: measure(scenario) for scenario in SCENARIOS}
    for name, work in new.items():
        if name not in old:
            sys.stdout.write(f"{name}: new\n")
        elif lines := difference(old[name], work):
            sys.stdout.write("\n".join((f"{name}:", *lines, "")))
    save(path, new)
    sys.stdout.write(f"wrote {path.name}\n")


if __name__ == "__main__":
    main()
