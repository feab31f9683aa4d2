"""Does what a scenario says, to the replicas or to the gateway."""

import signal
from collections.abc import Sequence
from typing import assert_never

from engines.simulator import NO_FAULTS
from loadtests.faults.engine import Order
from loadtests.faults.gate import Gate
from loadtests.faults.replicas import Replica
from loadtests.faults.scenario import (
    Act,
    Ease,
    EndGateway,
    Freeze,
    Kill,
    Reload,
    Rename,
    Start,
    Terminate,
    Thaw,
    Trouble,
)


async def perform(act: Act, replicas: Sequence[Replica], gate: Gate) -> str | None:
    """Does it; what was wrong with how it went, if anything."""
    match act:
        case Rename(_, numbers):
            gate.rename(numbers)
        case Reload():
            gate.reload()
        case EndGateway(_, successor):
            return await gate.end(successor=successor)
        case Trouble() | Ease():
            for number in act.replicas:
                _order(act, replicas[number])
        case _:
            await _treat(act, replicas[act.replica])
    return None


def _order(act: Trouble | Ease, replica: Replica) -> None:
    """Tells a replica how to behave."""
    if isinstance(act, Trouble):
        replica.out()
        replica.tell(Order(act.faults, act.pace))
    else:
        replica.tell(Order(NO_FAULTS, act.pace))
        replica.back()


async def _treat(act: Kill | Start | Terminate | Freeze | Thaw, replica: Replica) -> None:
    """Does something to a replica's process."""
    match act:
        case Kill():
            replica.kill()
        case Start(_, _, pace):
            await replica.start(pace)
        case Terminate():
            replica.out()
            replica.signal(signal.SIGTERM)
        case Freeze():
            replica.out()
            replica.signal(signal.SIGSTOP)
        case Thaw():
            replica.signal(signal.SIGCONT)
            replica.back()
        case _:
            assert_never(act)
