"""Renews what is made of the set-ups: ``python -m tests.integration.launches``."""

from tests.integration.launches.setups import GOLDEN, KINDS, NAMES, made

if __name__ == "__main__":
    for old in GOLDEN.iterdir():
        old.unlink()
    for kind in KINDS:
        for name in NAMES:
            (GOLDEN / f"{name}.{KINDS[kind]}").write_text(made(kind, name))
