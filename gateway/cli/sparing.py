"""Keeps libraries that a serving process never uses out of it.

Some libraries look for others that they can make something of, and load them where they happen to be installed: several
megabytes in all, for each process. They do without where there are none, and so it is while `spared_libraries` lasts.
"""

import contextlib
import sys
from collections.abc import Iterator, Mapping
from typing import Final

SPARED: Final[Mapping[str, str]] = {
    "pydantic.v1": "FastAPI would ask of every model whether it is one of those",
    "greenlet": "structlog would keep a context for each of gevent's threads",
    "rich": "structlog would draw tracebacks with it, of which a log has no use",
}
"""What is left out, and who would use it for what."""


@contextlib.contextmanager
def spared_libraries() -> Iterator[None]:
    """Has imports find none of them, but for those that are there already."""
    hidden = [name for name in SPARED if name not in sys.modules]
    # The import system's own way to say that there is no such module.
    sys.modules.update(dict.fromkeys(hidden))  # type: ignore[arg-type]
    try:
        yield
    finally:
        for name in hidden:
            del sys.modules[name]
