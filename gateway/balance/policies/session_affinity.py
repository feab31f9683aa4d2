"""One session, one endpoint."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from gateway.balance.endpoint import Endpoint
from gateway.balance.policies.hashing import score
from gateway.balance.policies.least_requests import LeastRequests
from gateway.balance.policies.policy import Pick, Rng


@dataclass(frozen=True, slots=True)
class SessionAffinity:
    """Requests with the same key go to the same endpoint (rendezvous hashing over the endpoints' URLs).

    The key is the session header, the `user` field or `prompt_cache_key`: real fields, never text found in a prompt.
    Requests without a key go to the endpoint with the fewest requests.

    Invariants: the choice depends on nothing but the key and the set of ready endpoints, so every gateway makes the
    same; when an endpoint leaves, only its keys move, and when it comes back they return.
    """

    sticky_target: ClassVar[bool] = True
    uses_load: ClassVar[bool] = False

    def picker(self) -> Pick:
        """Only requests without a key need state."""
        return _Session().pick


class _Session:
    __slots__ = ("_keyless",)

    def __init__(self) -> None:
        self._keyless = LeastRequests().picker()

    def pick(self, ready: Sequence[Endpoint], key: bytes | None, rng: Rng) -> Endpoint:
        if key is None:
            return self._keyless(ready, key, rng)
        if len(ready) == 1:
            return ready[0]
        return max(ready, key=lambda endpoint: score(key, endpoint.label))
