"""Reads `turnout serve …` as it is written in units, images and by most people, without typer.

The options are declared in `gateway.cli.serve`, and only there is said what is wrong with them. What is read here means
the same there; whatever is in doubt is left to it.
"""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

CARRIERS: Final = ("protocol", "asgi")


@dataclass(frozen=True, slots=True)
class ServeOrder:
    """What `turnout serve` is to do. ``engines``: KIND=URL each, instead of a file."""

    config: Path | None = None
    host: str | None = None
    port: int | None = None
    workers: int | None = None
    engines: tuple[str, ...] = ()
    take_over: bool = False
    carrier: str = CARRIERS[0]


def plain_serve(arguments: list[str]) -> ServeOrder | None:
    """What a plain `serve` says; None for all other commands, and where anything is in doubt or asks for help."""
    if arguments[:1] != ["serve"]:
        return None
    order: ServeOrder | None = ServeOrder()
    rest = iter(arguments[1:])
    for word in rest:
        if order is None:
            return None
        if word == "--take-over":
            order = replace(order, take_over=True)
            continue
        option, joined, text = word.partition("=")
        order = _with(order, option, text if joined else next(rest, ""))
    return None if order is None or (order.engines and order.config is not None) else order


def _with(order: ServeOrder, option: str, text: str) -> ServeOrder | None:
    """The order with one option more; None if that has to be looked at again."""
    if not text or text.startswith("-"):
        return None
    match option:
        case "--config":
            return replace(order, config=Path(text))
        case "--host":
            return replace(order, host=text)
        case "--port" if _is_number(text):
            return replace(order, port=int(text))
        case "--workers" if _is_number(text) and int(text) > 0:
            return replace(order, workers=int(text))
        case "--engine" if "=" in text:
            return replace(order, engines=(*order.engines, text))
        case "--carrier" if text in CARRIERS:
            return replace(order, carrier=text)
        case _:
            return None


def _is_number(text: str) -> bool:
    return len(text) <= 5 and text.isascii() and text.isdigit() and int(text) < 2**16
