"""Deadlines are heard in time, once, and not after they were dropped."""

import asyncio
from collections.abc import Callable
from typing import cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.proxy.deadlines import TICK, Deadlines


class HandTurned:
    """The part of a loop that a wheel needs, with a clock that a test moves."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.due: list[tuple[float, Callable[[], None]]] = []

    def time(self) -> float:
        return self.now

    def call_later(self, delay: float, call: Callable[[], None]) -> object:
        self.due.append((self.now + delay, call))
        return object()

    def advance(self, seconds: float) -> None:
        end = self.now + seconds
        while self.due and min(self.due)[0] <= end:
            self.due.sort(key=lambda timer: timer[0])
            at, call = self.due.pop(0)
            self.now = max(self.now, at)
            call()
        self.now = end


class Waiting:
    def __init__(self, clock: HandTurned, *answers: float) -> None:
        self.clock = clock
        self.answers = iter(answers)
        self.bucket = -1
        self.heard: list[float] = []

    def on_deadline(self, now: float) -> float | None:
        assert now == self.clock.now
        self.heard.append(now)
        return next(self.answers, None)


@pytest.fixture
def clock() -> HandTurned:
    return HandTurned()


def wheel_on(clock: HandTurned) -> Deadlines:
    return Deadlines(cast("asyncio.AbstractEventLoop", clock))


@given(st.lists(st.floats(-1, 5), min_size=1, max_size=8), st.floats(0.01, 0.5))
def test_each_is_heard_once_and_in_time(delays: list[float], step: float) -> None:
    clock = HandTurned()
    wheel = wheel_on(clock)
    begun = clock.now
    entries = [(delay, Waiting(clock)) for delay in delays]
    for delay, entry in entries:
        wheel.put(entry, begun + delay)
    for _ in range(int(6 / step) + 1):
        clock.advance(step)

    for delay, entry in entries:
        assert len(entry.heard) == 1
        assert max(0.0, delay) - 1e-6 <= entry.heard[0] - begun <= max(0.0, delay) + 2 * TICK + 1e-6
    assert len(wheel) == 0
    assert clock.due == []


@given(st.lists(st.tuples(st.booleans(), st.floats(0, 2), st.floats(0, 0.3)), max_size=20))
def test_only_the_last_deadline_counts_and_none_after_a_drop(steps: list[tuple[bool, float, float]]) -> None:
    clock = HandTurned()
    wheel = wheel_on(clock)
    entry = Waiting(clock)
    expected: float | None = None
    for put, delay, wait in steps:
        if entry.bucket < 0:
            expected = None
        entry.heard.clear()
        if put:
            expected = clock.now + delay
            wheel.put(entry, expected)
        else:
            expected = None
            wheel.drop(entry)
        assert len(wheel) == (expected is not None)
        clock.advance(wait)
        if expected is None or clock.now < expected:
            assert entry.heard == []
        elif clock.now > expected + 2 * TICK + 1e-6:
            assert len(entry.heard) == 1


def test_an_answer_is_the_next_deadline(clock: HandTurned) -> None:
    wheel = wheel_on(clock)
    entry = Waiting(clock, 1002.0, 1001.0)
    wheel.put(entry, 1001.0)
    clock.advance(10)

    assert [round(time, 1) for time in entry.heard] == [1001.1, 1002.1, 1002.3]
    assert len(wheel) == 0


def test_one_entry_may_drop_another_that_is_due_too(clock: HandTurned) -> None:
    wheel = wheel_on(clock)

    class Dropping(Waiting):
        def on_deadline(self, now: float) -> float | None:
            super().on_deadline(now)
            for other in entries:
                if other is not self:
                    wheel.drop(other)
            return None

    entries = [Dropping(clock) for _ in range(3)]
    for entry in entries:
        wheel.put(entry, 1001.0)
    clock.advance(5)

    assert sum(len(entry.heard) for entry in entries) == 1
    assert len(wheel) == 0


def test_one_entry_may_move_another_that_is_due_too(clock: HandTurned) -> None:
    wheel = wheel_on(clock)

    class Moving(Waiting):
        def on_deadline(self, now: float) -> float | None:
            super().on_deadline(now)
            for other in entries:
                if other is not self and not other.heard:
                    wheel.put(other, now + 1.0)
            return None

    entries = [Moving(clock) for _ in range(2)]
    for entry in entries:
        wheel.put(entry, 1001.0)
    clock.advance(5)

    assert [len(entry.heard) for entry in entries] == [1, 1]
    assert abs(entries[0].heard[0] - entries[1].heard[0]) >= 1.0


def test_an_entry_that_fails_does_not_stop_the_clock(clock: HandTurned) -> None:
    wheel = wheel_on(clock)

    class Failing(Waiting):
        def on_deadline(self, now: float) -> float | None:
            super().on_deadline(now)
            raise ValueError("broken")

    failing, others = Failing(clock), [Waiting(clock) for _ in range(5)]
    for entry in (failing, *others):
        wheel.put(entry, 1001.0)
    later = Waiting(clock)
    wheel.put(later, 1003.0)
    with pytest.raises(ValueError, match="broken"):
        clock.advance(5)
    clock.advance(5)

    assert [len(entry.heard) for entry in (failing, *others, later)] == [1] * 7


def test_a_wheel_without_entries_has_no_timer(clock: HandTurned) -> None:
    wheel = wheel_on(clock)
    entry = Waiting(clock)
    wheel.put(entry, 1001.0)
    wheel.drop(entry)
    clock.advance(3)

    assert clock.due == []
    assert entry.heard == []
