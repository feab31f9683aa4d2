"""Which of the ready endpoints takes the next request: one file per policy, one row in this table."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from gateway.balance.policies.least_requests import LeastRequests
from gateway.balance.policies.policy import Policy
from gateway.balance.policies.power_of_two import PowerOfTwo
from gateway.balance.policies.prefix_affinity import PrefixAffinity
from gateway.balance.policies.round_robin import RoundRobin
from gateway.balance.policies.session_affinity import SessionAffinity
from gateway.balance.policies.weighted import Weighted

POLICIES: Final[Mapping[str, type[Policy]]] = MappingProxyType(
    {
        "round_robin": RoundRobin,
        "weighted": Weighted,
        "least_requests": LeastRequests,
        "power_of_two": PowerOfTwo,
        "prefix_affinity": PrefixAffinity,
        "session_affinity": SessionAffinity,
    }
)
