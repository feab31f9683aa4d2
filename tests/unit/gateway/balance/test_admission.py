from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from gateway.balance.admission import AdmissionSettings, Gate, Queued, Shed, Ticket, WaitingRoom

AGING = 2.0


class Waiting(RuleBasedStateMachine):
    """A queue in which people join, leave, are called and wait too long, against a plain list of who waits."""

    @initialize(places=st.integers(1, 6))
    def begin(self, places: int) -> None:
        self.places = places
        self.room: WaitingRoom[int] = WaitingRoom(AdmissionSettings(queue=places, wait=10.0, aging=AGING))
        self.waiting: list[tuple[Ticket[int], float]] = []
        self.gone: list[Ticket[int]] = []
        self.now = 0.0
        self.number = 0

    def forget(self, ticket: Ticket[int]) -> None:
        self.waiting = [entry for entry in self.waiting if entry[0] is not ticket]
        self.gone.append(ticket)

    @rule(priority=st.sampled_from([0.0, 0.0, 1.0, 5.0]))
    def join(self, priority: float) -> None:
        self.number += 1
        full = len(self.waiting) == self.places
        found = self.room.join(self.number, priority, self.now)
        if isinstance(found, Shed):
            assert full
            assert 1.0 <= found.retry_after <= 60.0
            # Nobody who waits would have to stand behind the one that was sent away.
            assert all(ticket.joined - held * AGING <= self.now - priority * AGING for ticket, held in self.waiting)
            return
        assert (found.displaced is not None) is full
        if found.displaced is not None:
            held = next(held for ticket, held in self.waiting if ticket is found.displaced)
            # Only a higher priority, by more than the other's waiting is worth, takes a place away.
            assert self.now - found.displaced.joined < AGING * (priority - held)
            self.forget(found.displaced)
        self.waiting.append((found.ticket, priority))

    @precondition(lambda self: self.waiting)
    @rule(which=st.integers(0, 100))
    def leave(self, which: int) -> None:
        ticket = self.waiting[which % len(self.waiting)][0]
        assert self.room.leave(ticket)
        self.forget(ticket)

    @precondition(lambda self: self.gone)
    @rule(which=st.integers(0, 100))
    def leave_again(self, which: int) -> None:
        assert not self.room.leave(self.gone[which % len(self.gone)])

    @rule()
    def call(self) -> None:
        ticket = self.room.call(self.now)
        if ticket is None:
            assert not self.waiting
            return
        mine = next(held for waiter, held in self.waiting if waiter is ticket)
        self.forget(ticket)
        for other, held in self.waiting:
            # Nobody is overtaken by one who came later than a difference of priority is worth.
            assert ticket.joined - other.joined <= AGING * (mine - held)
            if held == mine:
                assert other.owner > ticket.owner

    @rule(gap=st.sampled_from([0.5, 1.0, 4.0, 11.0]))
    def pass_time(self, gap: float) -> None:
        self.now += gap

    @rule()
    def expire(self) -> None:
        late = self.room.expire(self.now)
        assert {ticket.owner for ticket in late} == {
            ticket.owner for ticket, _ in self.waiting if self.now - ticket.joined >= 10.0
        }
        for ticket in late:
            self.forget(ticket)

    @rule()
    def flush(self) -> None:
        assert sorted(ticket.owner for ticket in self.room.flush()) == sorted(t.owner for t, _ in self.waiting)
        for ticket, _ in list(self.waiting):
            self.forget(ticket)

    @invariant()
    def the_count_is_true_and_bounded(self) -> None:
        if hasattr(self, "room"):
            assert self.room.waiting == len(self.waiting) <= self.places


TestWaiting = Waiting.TestCase
TestWaiting.settings = settings(max_examples=100, stateful_step_count=40, deadline=None)


def _joined(room: WaitingRoom[Any], owner: object, priority: float, now: float) -> Ticket[Any]:
    found = room.join(owner, priority, now)
    assert isinstance(found, Queued)
    return found.ticket


def test_a_low_priority_is_not_starved_by_a_stream_of_high_ones() -> None:
    room: WaitingRoom[str] = WaitingRoom(AdmissionSettings(queue=100, aging=1.0))
    _joined(room, "patient", 0.0, 0.0)
    called = []
    for second in range(20):
        _joined(room, "urgent", 5.0, float(second))
        ticket = room.call(float(second))
        assert ticket is not None
        called.append(ticket.owner)
    assert called.index("patient") == 5


def test_memory_does_not_grow_with_those_who_left() -> None:
    room: WaitingRoom[int] = WaitingRoom(AdmissionSettings(queue=10))
    for number in range(5000):
        room.leave(_joined(room, number, 0.0, 0.0))
    assert room.waiting == 0
    assert len(room) <= 16


def test_the_time_to_come_again_follows_the_rate_at_which_the_queue_drains() -> None:
    room: WaitingRoom[int] = WaitingRoom(AdmissionSettings(queue=1000))
    now = 0.0
    for number in range(300):
        now += 0.2
        _joined(room, number, 0.0, now)
        room.call(now)
    for number in range(99):
        _joined(room, number, 0.0, now)
    # Five a second, and a hundred to go with the one who asks.
    assert room.retry_after(now) == pytest.approx(20.0, rel=0.1)
    assert room.retry_after(now + 10_000.0) == 60.0


def test_without_any_rate_the_time_to_come_again_is_the_longest_wait() -> None:
    assert WaitingRoom[int](AdmissionSettings(wait=10.0)).retry_after(0.0) == 10.0


def test_a_gate_lets_no_more_in_than_its_limit() -> None:
    gate = Gate(2)
    assert [gate.enter(), gate.enter(), gate.enter()] == [True, True, False]
    gate.leave()
    assert gate.enter()
    gate.leave()
    gate.leave()
    with pytest.raises(ValueError, match="nobody"):
        gate.leave()


def test_a_gate_without_a_limit_is_always_open() -> None:
    gate = Gate(None)
    assert all(gate.enter() for _ in range(1000))
    assert gate.inside == 1000


def test_the_line_can_be_looked_at_without_moving_it() -> None:
    """The first one stays; whoever has gone, or left, is not in it."""
    room: WaitingRoom[str] = WaitingRoom(AdmissionSettings())
    tickets = []
    for at, name in enumerate("abcd"):
        joined = room.join(name, 0.0, float(at))
        assert isinstance(joined, Queued)
        tickets.append(joined.ticket)
    room.leave(tickets[0])
    assert room.first() is room.first() is tickets[1]
    room.called(tickets[2], 5.0)
    room.called(tickets[2], 5.0)

    assert [ticket.owner for ticket in room.in_line()] == ["b", "d"]
    assert room.waiting == 2


def test_other_settings_hold_for_those_who_join_from_then_on() -> None:
    room: WaitingRoom[str] = WaitingRoom(AdmissionSettings(queue=2, wait=10.0))
    first = room.join("a", 0.0, 0.0)
    assert isinstance(first, Queued)
    room.settings = AdmissionSettings(queue=1, wait=1.0)

    assert isinstance(room.join("b", 0.0, 0.5), Shed)
    assert room.expire(5.0) == []
    assert room.expire(10.0) == [first.ticket]
