"""Asks a Triton about its models, loads and unloads them, and waits until that is done.

tritonclient is an extra and takes a while to import, so that the two modules that use it are loaded when they are
first needed.
"""

import asyncio
import importlib
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Final, Protocol, Self, TypeAlias

from engines.kserve import ModelEntry, ModelState, Order, remedy, settled

LOOK_AGAIN: Final = 0.25
"""Seconds between two looks at the index."""
LOADING: Final = 1800.0
"""Seconds that a model may take to load: weights of hundreds of gigabytes are read."""
QUICK: Final = 2.0
"""Seconds for an answer that needs no model."""
INSTALL: Final = "pip install turnout[triton]"

Sleep: TypeAlias = Callable[[float], Awaitable[None]]


class KServeError(Exception):
    """Triton refuses or cannot be asked. `fix` says what to do; it may be empty."""

    def __init__(self, message: str, fix: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.fix = fix

    def __str__(self) -> str:
        return f"{self.message} ({self.fix})" if self.fix else self.message


class MissingExtraError(KServeError):
    """tritonclient is not installed."""

    def __init__(self) -> None:
        super().__init__("KServe needs tritonclient, which is not installed", INSTALL)


class ModelRefusedError(KServeError):
    """Triton does not do what was asked of a model. `unknown`: it has no such model."""

    def __init__(self, message: str, *, unknown: bool = False) -> None:
        super().__init__(message, remedy(message))
        self.unknown = unknown


class TritonUnreachableError(KServeError):
    """Nobody answers there, or not in time, or not as Triton does."""


@dataclass(frozen=True, slots=True)
class Address:
    """Where Triton's KServe is: a base URL for HTTP, or host:port for gRPC."""

    http: str = ""
    grpc: str = ""

    def __str__(self) -> str:
        return self.http or f"grpc://{self.grpc}"


@dataclass(frozen=True, slots=True)
class Statistics:
    """What a version of a model has done since it was loaded. Times are sums, in nanoseconds."""

    name: str
    version: str
    last: int
    """Milliseconds since 1970 of the last inference; 0 if there was none."""
    succeeded: int
    failed: int
    took: int
    queued: int


class KServe(Protocol):
    """One Triton. Every method raises TritonUnreachableError or ModelRefusedError. Use it as an async context."""

    async def __aenter__(self) -> Self:
        """Opens it."""

    async def __aexit__(self, *_: object) -> None:
        """Closes its connections."""

    async def server_ready(self) -> bool:
        """Whether the whole server is ready; it is not while any model is being unloaded."""

    async def model_ready(self, model: str) -> bool:
        """Whether one model is ready; False too if there is no such model."""

    async def index(self) -> Sequence[ModelEntry]:
        """The repository's models and their states."""

    async def load(self, model: str) -> None:
        """Loads a model, or loads it anew; comes back when Triton is done with it."""

    async def unload(self, model: str) -> None:
        """Begins to unload a model; Triton goes on after its answer."""

    async def metadata(self, model: str = "") -> dict[str, object]:
        """What the server, or a model, says of itself."""

    async def statistics(self, model: str = "") -> Sequence[Statistics]:
        """What a model, or each loaded one, has done."""


def connect(address: Address, patience: float = QUICK) -> KServe:
    """The Triton at an address. `patience` is in seconds, for each answer.

    Raises:
        MissingExtraError: tritonclient is not installed.
    """
    kind = "http" if address.http else "grpc"
    try:
        module = importlib.import_module(f"gateway.kserve.over_{kind}")
    except ModuleNotFoundError as error:
        if error.name is not None and error.name.startswith("gateway"):
            raise
        raise MissingExtraError from None
    client: KServe = module.connect(address.http or address.grpc, patience)
    return client


async def carry_out(
    triton: KServe, order: Order, model: str, patience: float = LOADING, sleep: Sleep = asyncio.sleep
) -> Sequence[ModelEntry]:
    """Loads or unloads a model and waits until the index says that it is done; gives the model's entries then.

    Raises:
        ModelRefusedError: Triton refuses, or gives the model up.
        TritonUnreachableError: it does not answer, or is not done in `patience` seconds.
    """
    if not any(entry.name == model for entry in await triton.index()):
        raise ModelRefusedError(f'the repository has no model "{model}"', unknown=True)
    if order is Order.LOAD:
        await triton.load(model)
    else:
        await triton.unload(model)
    waited = 0.0
    while not settled(order, model, entries := [one for one in await triton.index() if one.name == model]):
        given_up = [one.reason for one in entries if one.state is ModelState.UNAVAILABLE and one.reason]
        if order is Order.LOAD and given_up and all(one.state is ModelState.UNAVAILABLE for one in entries):
            raise ModelRefusedError(f"{model} could not be loaded: {given_up[0]}")
        if waited >= patience:
            states = ", ".join(one.state.value.lower() or "not loaded" for one in entries)
            raise TritonUnreachableError(f"{model} is still {states} after {patience:g} s", "it goes on in Triton")
        await sleep(LOOK_AGAIN)
        waited += LOOK_AGAIN
    return entries


async def models_ready(address: Address, models: Sequence[str]) -> bool:
    """Whether Triton says of each of these models that it is ready. Raises KServeError."""
    async with connect(address) as triton:
        for model in models:
            if not await triton.model_ready(model):
                return False
    return bool(models)
