"""Counts work: calls, bytecode instructions and memory. Never time."""

import gc
import sys
import tracemalloc
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any, Final, TypeAlias

from tests.conftest import ROOT
from tests.performance.scenarios import Scenario, Step

OWN: Final = str(Path(__file__).parent)
WARM_UP: Final = 450
STEPS: Final = 40
"""Steps that are counted; what happens only now and then, such as the growth of a table, is shared among them."""

Trace: TypeAlias = Any
"""What `sys.settrace` takes, which refers to itself."""


@dataclass(frozen=True, slots=True)
class Work:
    """The work of one step. `calls` says how often which function was called."""

    python_calls: float
    c_calls: float
    instructions: float
    """Bytecode instructions."""
    peak_bytes: int
    """The most memory that a step held at once, beyond what was held before it."""
    kept_bytes: float
    """What a step leaves behind."""
    calls: dict[str, float]


def measure(scenario: Scenario) -> Work:
    """Does the scenario's step many times, under one counter after the other."""
    step = scenario.prepare()
    for _ in range(WARM_UP):
        step()
    with without_collector():
        python, c = calls(step)
        instructions = instructions_of(step)
        peak, kept = memory(step)
    return Work(
        python.total() / STEPS,
        c.total() / STEPS,
        instructions / STEPS,
        peak,
        kept,
        {name: count / STEPS for name, count in sorted((python + c).items())},
    )


@contextmanager
def without_collector() -> Iterator[None]:
    """The garbage collector comes at times of its own."""
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def name_of(frame: FrameType) -> str:
    """`gateway/proxy/exchange.py Exchange.begin`."""
    path = Path(frame.f_code.co_filename)
    if path.is_relative_to(ROOT) and "site-packages" not in path.parts:
        path = path.relative_to(ROOT)
    else:
        path = Path(*path.parts[-2:])
    return f"{path.as_posix()} {frame.f_code.co_qualname}"


def name_of_builtin(called: object) -> str:
    module, name = getattr(called, "__module__", None), getattr(called, "__qualname__", repr(called))
    return f"{module or 'builtins'} {name}"


def calls(step: Step) -> tuple[Counter[str], Counter[str]]:
    """Calls of Python functions, and of C functions by Python ones; the rig's own are left out."""
    python: Counter[str] = Counter()
    c: Counter[str] = Counter()

    def profile(frame: FrameType, kind: str, called: object) -> None:
        if frame.f_code.co_filename.startswith(OWN):
            return
        if kind == "call":
            python[name_of(frame)] += 1
        elif kind == "c_call":
            c[name_of_builtin(called)] += 1

    before = sys.getprofile()
    sys.setprofile(profile)
    try:
        for _ in range(STEPS):
            step()
    finally:
        sys.setprofile(before)
    return python, c


def instructions_of(step: Step) -> int:
    """Bytecode instructions that were executed outside of the rig."""
    count = 0

    def one(frame: FrameType, kind: str, argument: object) -> Trace:
        nonlocal count
        if kind == "opcode":
            count += 1
        return one

    def trace(frame: FrameType, kind: str, argument: object) -> Trace:
        if frame.f_code.co_filename.startswith(OWN):
            return None
        frame.f_trace_opcodes = True
        frame.f_trace_lines = False
        return one

    before = sys.gettrace()
    try:
        for steps in (1, STEPS):  # the first time that it is asked for instructions, Python 3.12 tells of none
            count = 0
            sys.settrace(trace)
            for _ in range(steps):
                step()
            sys.settrace(before)
    finally:
        sys.settrace(before)
    if not count:
        raise RuntimeError("no instruction was counted")
    return count


def memory(step: Step) -> tuple[int, float]:
    """The most bytes a step held at once, and what the steps left behind, per step."""
    tracemalloc.start()
    try:
        step()
        peak = 0
        begin = tracemalloc.get_traced_memory()[0]
        for _ in range(STEPS):
            held = tracemalloc.get_traced_memory()[0]
            tracemalloc.reset_peak()
            step()
            peak = max(peak, tracemalloc.get_traced_memory()[1] - held)
        return peak, max(0.0, tracemalloc.get_traced_memory()[0] - begin) / STEPS
    finally:
        tracemalloc.stop()
