"""Keeps out of a serving process what libraries would load for others: several megabytes for as long as it lives.

While `sparing` lasts, three things are different, each in the import system's or the library's own words.
"""

import contextlib
import sys
from collections.abc import Iterator, Mapping
from importlib import import_module
from importlib.util import find_spec, module_from_spec
from typing import Final

from pydantic import BaseModel, ConfigDict

from gateway.cli.plain import ServeOrder

HIDDEN: Final[Mapping[str, str]] = {
    "greenlet": "structlog would keep a context for each of gevent's threads",
    "rich": "structlog would draw tracebacks with it, of which a log has no use",
}
"""What libraries look for while they are loaded, and do without where it is not installed; and what for."""

HIDDEN_FOR_GOOD: Final[Mapping[str, str]] = {
    "pydantic.v1": "FastAPI would ask of every model whether it is one of those, with the first request for a page",
}
"""The same for what they look for later."""

FRONTS: Final[Mapping[str, Mapping[str, str]]] = {
    # Without its servers and clients, with http.server, wsgiref and urllib.request.
    "prometheus_client": {},
    # Without its command line, and so without click, and without its reloaders, and so without multiprocessing.
    "uvicorn": {"Config": "uvicorn.config", "Server": "uvicorn.server"},
}
"""Packages that get a shorter front page: the names on it, and the modules that these come from."""


def serve_sparingly(order: ServeOrder) -> int:
    """Loads what serves and serves (`serving.serve`)."""
    with sparing():
        serving = import_module("gateway.cli.serving")
    code: int = serving.serve(order)
    return code


@contextlib.contextmanager
def sparing() -> Iterator[None]:
    """Loads less. Of models that are defined meanwhile, validators are built when they are used: FastAPI has some forty
    models for OpenAPI documents, which few gateways write.
    """
    hidden = [name for name in HIDDEN if name not in sys.modules]
    absent = dict.fromkeys([*hidden, *HIDDEN_FOR_GOOD])  # None: imports find that there is no such module
    sys.modules.update(absent)  # type: ignore[arg-type]
    for name in FRONTS:
        _shorten(name)
    usual, BaseModel.model_config = BaseModel.model_config, ConfigDict(defer_build=True)
    try:
        yield
    finally:
        BaseModel.model_config = usual
        for name in hidden:
            del sys.modules[name]


def _shorten(package: str) -> None:
    """Has a package with no more on its front page than is wanted; its modules stay what they are."""
    spec = find_spec(package) if package not in sys.modules else None
    if spec is not None:
        sys.modules[package] = front = module_from_spec(spec)
        for name, module in FRONTS[package].items():
            setattr(front, name, getattr(import_module(module), name))
