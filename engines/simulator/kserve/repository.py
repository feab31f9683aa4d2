"""A model repository in explicit mode, with the states that Triton's index shows."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

VERSION = "1"


class Refused(Exception):
    """What Triton answers; `http` and `grpc` are the statuses."""

    def __init__(self, message: str, http: int, grpc: str) -> None:
        super().__init__(message)
        self.message, self.http, self.grpc = message, http, grpc


@dataclass(slots=True)
class SimulatedRepository:
    """Models by name. `unreadable` ones have a configuration that cannot be parsed; those of `failing` are refused by
    their backend, with the reason. A model goes on unloading until it has been looked at `lingering` times."""

    models: Iterable[str]
    unreadable: frozenset[str] = frozenset()
    failing: Mapping[str, str] = field(default_factory=dict)
    lingering: int = 2
    explicit: bool = True
    inferences: int = 4
    states: dict[str, str] = field(default_factory=dict)
    calls: list[str] = field(default_factory=list)
    """Every load and unload that was asked for, as `load NAME`."""
    _left: dict[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.states = {name: self.states.get(name, "") for name in self.models}

    @property
    def ready(self) -> bool:
        """Strict readiness: not while anything is on its way out; with no model at all, yes (`ready_with_no_model`)."""
        return "UNLOADING" not in self.states.values()

    def model_ready(self, name: str) -> bool:
        """Whether a model answers."""
        return self.states.get(name) == "READY"

    def index(self, *, ready: bool = False) -> list[dict[str, str]]:
        """The repository's index, by name; `ready`: of those only. Each look brings what is on its way out nearer to
        its end."""
        listed = [_row(name, state) for name, state in sorted(self.states.items()) if state == "READY" or not ready]
        for name, left in list(self._left.items()):
            self._left[name] = left - 1
            if left <= 1:
                del self._left[name]
                self.states[name] = "UNAVAILABLE"
        return listed

    def load(self, name: str) -> None:
        """Loads a model, or loads it anew. Raises Refused."""
        self.calls.append(f"load {name}")
        self._only_explicit()
        if name not in self.states or name in self.unreadable:
            raise Refused(f"failed to load '{name}', failed to poll from model repository", 500, "INTERNAL")
        if (reason := self.failing.get(name)) is not None:
            raise Refused(
                f"load failed for model '{name}': version 1 is at UNAVAILABLE state: {reason};\n",
                400,
                "INVALID_ARGUMENT",
            )
        self._left.pop(name, None)
        self.states[name] = "READY"

    def unload(self, name: str) -> None:
        """Begins to unload a model; unknown ones are let pass. Raises Refused."""
        self.calls.append(f"unload {name}")
        self._only_explicit()
        if self.states.get(name) == "READY":
            self.states[name] = "UNLOADING"
            self._left[name] = self.lingering

    def _only_explicit(self) -> None:
        if not self.explicit:
            message = "explicit model load / unload is not allowed if polling is enabled"
            raise Refused(message, 503, "UNAVAILABLE")

    def server_metadata(self) -> dict[str, object]:
        """`server_metadata.json`, its extensions shortened."""
        return {"name": "triton", "version": "2.51.0", "extensions": ["model_repository", "statistics"]}

    def metadata(self, name: str) -> dict[str, object]:
        """A model's inputs and outputs. Raises Refused."""
        self.known(name)
        text = {"datatype": "BYTES", "shape": [1, 1]}
        return {
            "name": name,
            "versions": [VERSION],
            "platform": "python",
            "inputs": [{"name": "text_input", **text}],
            "outputs": [{"name": "text_output", **text}],
        }

    def statistics(self, name: str) -> list[dict[str, object]]:
        """What a model has done, or each loaded one (`stats_after.json`). Raises Refused."""
        if name:
            self.known(name)
        names = [name] if name else [one for one, state in sorted(self.states.items()) if state == "READY"]
        counted = {"count": self.inferences, "ns": self.inferences * 17_000_000}
        queued = {"count": self.inferences, "ns": self.inferences * 57_000}
        stats = {"success": counted, "fail": {"count": 0, "ns": 0}, "queue": queued}
        last = 1_796_089_429_370 if self.inferences else 0
        return [{"name": one, "version": VERSION, "last_inference": last, "inference_stats": stats} for one in names]

    def known(self, name: str) -> None:
        """Raises Refused for a model that is not loaded."""
        if name not in self.states:
            raise Refused(f"Request for unknown model: '{name}' is not found", 404, "NOT_FOUND")
        if self.states[name] != "READY":
            raise Refused(f"Request for unknown model: '{name}' has no available versions", 404, "NOT_FOUND")


def _row(name: str, state: str) -> dict[str, str]:
    if not state:
        return {"name": name}
    reason = {"reason": "unloaded"} if state == "UNAVAILABLE" else {}
    return {"name": name, "version": VERSION, "state": state, **reason}
