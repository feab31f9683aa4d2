"""Triton's model repository as KServe's extension shows it: what a state means, and what a refusal leaves unsaid.

Source: recordings of a real Triton 2.51 over HTTP and gRPC.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Final

POLL_FAILED: Final = "failed to poll from model repository"
NOT_EXPLICIT: Final = "explicit model load / unload is not allowed"
"""What Triton says in its other control modes, from memory, not recorded. Where its words differ, they are shown."""


class ModelState(Enum):
    """What the index says of a version; a model that was never loaded has none."""

    NEVER = ""
    UNKNOWN = "UNKNOWN"
    READY = "READY"
    UNAVAILABLE = "UNAVAILABLE"
    LOADING = "LOADING"
    UNLOADING = "UNLOADING"


@dataclass(frozen=True, slots=True)
class ModelEntry:
    """One line of the repository's index. `version` and `reason` are empty where Triton gives none."""

    name: str
    version: str
    state: ModelState
    reason: str


class Order(Enum):
    """What can be asked of a model."""

    LOAD = "load"
    UNLOAD = "unload"


def state_of(text: object) -> ModelState:
    """The state that a text of the index is; UNKNOWN for a new one."""
    try:
        return ModelState(text or "")
    except ValueError:
        return ModelState.UNKNOWN


def settled(order: Order, model: str, index: Sequence[ModelEntry]) -> bool:
    """Whether an order has been carried out.

    A load is over once a version is ready, an unload once none is ready or on its way out: Triton answers an unload at
    once, goes on unloading for seconds, and is not ready as a whole until then.
    """
    states = {entry.state for entry in index if entry.name == model}
    match order:
        case Order.LOAD:
            return ModelState.READY in states and ModelState.LOADING not in states
        case Order.UNLOAD:
            return not states & {ModelState.READY, ModelState.LOADING, ModelState.UNLOADING}


def remedy(message: str) -> str:
    """What to do about a refusal; empty where Triton's own words are enough."""
    if POLL_FAILED in message:
        return (
            "the reason is in Triton's log only: there is no such folder, config.pbtxt cannot be read (the log has "
            "line and column), its name differs from the folder, or it names no backend"
        )
    if NOT_EXPLICIT in message:
        return "start Triton with --model-control-mode=explicit (launch.model_control_mode: explicit)"
    if "unable to find backend library" in message:
        return "the backend is not in this image: use the one with that backend"
    if "at least one version must be available" in message:
        return "a model needs a folder for a version, and its name is a whole number such as 1"
    if "no GPUs are available" in message:
        return "instance_group must be KIND_MODEL for vLLM, or the server needs a GPU"
    return ""
