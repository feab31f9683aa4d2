"""The fault scenarios."""

from dataclasses import replace
from typing import Any, Final

from engines.simulator import Faults
from loadtests.faults.scenario import (
    USUAL,
    Ease,
    EndGateway,
    Excuse,
    FaultScenario,
    Freeze,
    Guests,
    Kill,
    Reload,
    Rename,
    Start,
    Terminate,
    Thaw,
    Trouble,
)

BEGUN: Final = frozenset({Excuse.BEGUN})
ALL: Final = (0, 1, 2)

IMPATIENT: Final[dict[str, Any]] = {"timeouts": {"first_token": "1500ms", "idle": "2s"}}
ON_TIMEOUT: Final[dict[str, Any]] = {"retry": {"on_timeout": True}}

KILL: Final = FaultScenario(
    "kill",
    "One of three replicas is killed and comes back.",
    (Kill(0.8), Start(2.2)),
    excuses=BEGUN,
)
RESTART: Final = FaultScenario(
    "restart",
    "The replicas are restarted one after the other.",
    (Kill(0.5, 0), Start(0.8, 0), Kill(3.0, 1), Start(3.3, 1), Kill(5.5, 2), Start(5.8, 2)),
    seconds=7.5,
    excuses=BEGUN,
)
SIGTERM: Final = FaultScenario(
    "sigterm",
    "A replica is told to stop and does it as vLLM does: it accepts nobody, and what runs there falls silent for good.",
    (Terminate(0.8), Start(3.4)),
    seconds=5.0,
    engine={"timeouts": {"idle": "2s"}},
    excuses=BEGUN,
)
MUTE: Final = FaultScenario(
    "mute",
    "A replica takes requests and never answers them; its health checks pass.",
    (Trouble(0.6, Faults(never_answer=True)), Ease(3.6)),
    seconds=5.0,
    engine=IMPATIENT,
    settings=ON_TIMEOUT,
)
FROZEN: Final = FaultScenario(
    "frozen",
    "A replica's process is stopped: the kernel accepts connections, and nobody answers, health checks included.",
    (Freeze(0.6), Thaw(3.6)),
    seconds=5.0,
    engine=IMPATIENT,
    settings=ON_TIMEOUT,
    excuses=BEGUN,
)
RESET: Final = FaultScenario(
    "reset",
    "Every second connection to one replica is reset after five events.",
    (Trouble(0.6, Faults(every=2, die_after=5, reset=True)), Ease(2.6)),
    excuses=BEGUN,
)
SLOW_START: Final = FaultScenario(
    "slow_start",
    "A replica comes back cold: slow, and with room for four requests. It must not be given its full share at once.",
    (
        Kill(0.4),
        Start(1.0, pace=replace(USUAL, first_token=0.3, inter_token=0.02, max_running=2, max_requests=4)),
        Ease(4.0),
    ),
    seconds=5.0,
    excuses=BEGUN,
    shares={0: 0.25},
)
ERRORS: Final = FaultScenario(
    "errors",
    "One replica answers everything with 500; its health checks pass.",
    (Trouble(0.6, Faults(status=500)), Ease(2.6)),
)
BUSY: Final = FaultScenario(
    "busy",
    "All replicas say for a while that they are full (503).",
    (Trouble(0.8, replicas=ALL, pace=replace(USUAL, max_requests=1)), Ease(1.6, ALL)),
    excuses=frozenset({Excuse.NONE_LEFT}),
    notice=1.1,
)
TENFOLD: Final = FaultScenario(
    "tenfold",
    "One replica is ten times slower than the others.",
    paces={0: replace(USUAL, first_token=0.2, inter_token=0.1)},
    shares={0: 0.2},
)
NAMES: Final = FaultScenario(
    "names",
    "The engine's name loses one address and gains another; the replica that lost it is killed a little later.",
    (Rename(0.5, (1, 2, 3)), Kill(6.2)),
    seconds=8.0,
    per_second=15.0,
    replicas=4,
    names=True,
    once=True,
)
RACE: Final = FaultScenario(
    "keep_alive_race",
    "Replicas close idle connections at the moment at which the next requests come.",
    seconds=5.2,
    per_second=12.0,
    every=1.26,
    keep_alive=1.0,
)
FIVE_SECONDS: Final = FaultScenario(
    "keep_alive_5s",
    "The same with the five seconds of real engines.",
    seconds=10.6,
    per_second=4.0,
    every=5.26,
)
VANISHING: Final = FaultScenario(
    "vanishing",
    "Eight clients that leave before the answer or in the middle of it, again and again.",
    per_second=15.0,
    guests=Guests(vanishing=8),
)
DEAF: Final = FaultScenario(
    "deaf",
    "Two clients that ask for a long stream and never read it.",
    per_second=15.0,
    pace=replace(USUAL, inter_token=0.002),
    settings={"server": {"write_timeout": "1s"}},
    seconds=5.0,
    guests=Guests(deaf=2),
)
DRIPPING: Final = FaultScenario(
    "dripping",
    "Eight clients that send a byte now and then.",
    per_second=15.0,
    guests=Guests(dripping=8),
)
STOP: Final = FaultScenario(
    "stop",
    "The gateway is told to stop under load: what runs is finished.",
    (EndGateway(1.5),),
    seconds=2.5,
    excuses=frozenset({Excuse.NO_GATEWAY}),
    once=True,
)
TAKE_OVER: Final = FaultScenario(
    "take_over",
    "Another gateway takes over the port under load, and the first is told to stop.",
    (EndGateway(0.8, successor=True),),
    seconds=5.0,
    once=True,
)
RELOAD: Final = FaultScenario(
    "reload",
    "The gateway's configuration changes every second.",
    tuple(Reload(at) for at in (0.5, 1.5, 2.5, 3.5)),
)
FLAPPING: Final = FaultScenario(
    "flapping",
    "One of three replicas is killed and started again every three seconds, for two minutes at 200 requests a second.",
    (Kill(0.5), Start(1.5)),
    seconds=3.0,
    per_second=200.0,
    tokens=8,
    excuses=BEGUN,
    only_long=True,
    long_seconds=120.0,
)

SCENARIOS: Final = (
    KILL,
    RESTART,
    SIGTERM,
    MUTE,
    FROZEN,
    RESET,
    SLOW_START,
    ERRORS,
    BUSY,
    TENFOLD,
    NAMES,
    RACE,
    FIVE_SECONDS,
    VANISHING,
    DEAF,
    DRIPPING,
    STOP,
    TAKE_OVER,
    RELOAD,
    FLAPPING,
)
SHORT: Final = tuple(scenario for scenario in SCENARIOS if not scenario.only_long)
