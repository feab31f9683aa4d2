"""Prompts that begin alike go where their beginning is cached already, unless that endpoint has enough to do."""

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil
from typing import ClassVar, Final

from gateway.balance.endpoint import Endpoint
from gateway.balance.policies.hashing import score
from gateway.balance.policies.least_requests import LeastRequests
from gateway.balance.policies.policy import Pick, Rng

LONGEST: Final = 32 * 1024
"""Bytes of a prompt that are looked at: beyond it, prompts that agree so far may part without being noticed."""


def _boundaries() -> tuple[int, ...]:
    """Ends of the prefixes that are told apart, each a quarter longer than the one before."""
    ends = [256]
    while ends[-1] < LONGEST:
        ends.append(min(LONGEST, ends[-1] + ends[-1] // 4))
    return tuple(ends)


BOUNDARIES: Final = _boundaries()


@dataclass(frozen=True, slots=True)
class PrefixAffinity:
    """The endpoint that last took the longest known prefix of the key (the prompt's bytes), within a bound on load.

    `factor`: no endpoint is given a request that takes its load above the mean over the ready endpoints times this
    (rounded up). `entries`: prefixes remembered, least recently used forgotten first.

    Invariants: right after a choice the chosen endpoint's load is at most ceil(factor * mean); at most `entries`
    prefixes are remembered; a prefix nobody remembers goes to an endpoint that depends only on its first bytes and the
    set of endpoints within the bound, so several gateways agree. Requests without a key go to the least loaded.
    """

    sticky_target: ClassVar[bool] = False
    uses_load: ClassVar[bool] = True

    factor: float = 1.25
    entries: int = 20_000

    def __post_init__(self) -> None:
        """Raises ValueError for a factor below 1 (some endpoint must be within the bound) or no room at all."""
        if self.factor < 1 or self.entries < 1:
            raise ValueError("prefix_affinity needs factor >= 1 and entries >= 1")

    def picker(self) -> Pick:
        """Start with nothing remembered."""
        return PrefixMap(self.factor, self.entries).pick


class PrefixMap:
    """What a picker remembers: the hash of a prefix, and the endpoint that took it."""

    __slots__ = ("_entries", "_factor", "_keyless", "_owners")

    def __init__(self, factor: float, entries: int) -> None:
        """See `PrefixAffinity`."""
        self._factor = factor
        self._entries = entries
        self._keyless = LeastRequests().picker()
        self._owners: OrderedDict[int, Endpoint] = OrderedDict()

    def __len__(self) -> int:
        return len(self._owners)

    def pick(self, ready: Sequence[Endpoint], key: bytes | None, rng: Rng) -> Endpoint:
        """Choose, and remember the choice for every prefix that is longer than what was known."""
        if key is None:
            return self._keyless(ready, key, rng)
        # One more than now: the bound must hold with the request that is about to be placed.
        bound = ceil(self._factor * (sum(e.in_flight + e.extra for e in ready) + 1) / len(ready))
        prefixes = _prefixes(key)
        known, owner = self._longest_known(prefixes, ready)
        if owner is None or owner.in_flight + owner.extra >= bound:
            owner = _first_choice(ready, key, bound)
        self._remember(prefixes, known, owner)
        return owner

    def _longest_known(self, prefixes: list[int], ready: Sequence[Endpoint]) -> tuple[int, Endpoint | None]:
        """How many of `prefixes` are known to ready endpoints, and who took the longest of them."""
        for count in range(len(prefixes), 0, -1):
            owner = self._owners.get(prefixes[count - 1])
            if owner is not None and owner in ready:
                return count, owner
        return 0, None

    def _remember(self, prefixes: list[int], known: int, owner: Endpoint) -> None:
        """Keep the owners of what was known: who is sent elsewhere by the bound must not take its siblings along."""
        owners = self._owners
        for count, prefix in enumerate(prefixes):
            if count >= known or prefix not in owners:
                owners[prefix] = owner
            owners.move_to_end(prefix)
        while len(owners) > self._entries:
            owners.popitem(last=False)


def _prefixes(key: bytes) -> list[int]:
    """Hashes of the key's prefixes, shortest first; a key shorter than the first boundary is one prefix."""
    hashes = []
    chained = begin = 0
    for end in BOUNDARIES:
        if end > len(key):
            break
        # Python's own hash: fast, 64 bits, and private to this process, as the map is.
        chained = hash((chained, key[begin:end]))
        hashes.append(chained)
        begin = end
    return hashes or [hash((0, key))]


def _first_choice(ready: Sequence[Endpoint], key: bytes, bound: int) -> Endpoint:
    """Rendezvous over the endpoints that are within the bound."""
    start = key[: BOUNDARIES[0]]
    return max((e for e in ready if e.in_flight + e.extra < bound), key=lambda endpoint: score(start, endpoint.label))
