from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from gateway.balance.breaker import Breaker, BreakerSettings, Position


@given(st.lists(st.booleans(), max_size=120))
def test_it_wants_to_open_by_a_run_or_by_a_share_and_never_else(outcomes: list[bool]) -> None:
    """Five failures in a row, or half of at least twenty: judged against a plain recount."""
    breaker = Breaker(BreakerSettings())
    for count, good in enumerate(outcomes, start=1):
        seen = outcomes[:count]
        if good:
            breaker.served(1.0)
            continue
        in_a_row = len(seen) >= 5 and not any(seen[-5:])
        by_share = count >= 20 and seen.count(False) * 2 >= count
        assert (breaker.failed(1.0) is not None) is (in_a_row or by_share)


def test_old_outcomes_are_forgotten() -> None:
    breaker = Breaker(BreakerSettings())
    for _ in range(100):
        breaker.served(0.0)
    assert breaker.counts(8.9) == (100, 0)
    assert breaker.counts(10.0) == (0, 0)


class Trials(RuleBasedStateMachine):
    """A breaker that is opened, waited for, tried, and closed, in any order a shell could do it."""

    def __init__(self) -> None:
        super().__init__()
        self.settings = BreakerSettings(trials=2)
        self.breaker = Breaker(self.settings)
        self.now = 0.0
        self.out = 0
        self.good = 0
        self.terms = [self.breaker.term]
        self.pauses: list[float] = []

    def moved(self) -> None:
        self.terms.append(self.breaker.term)
        self.out = self.good = 0

    @precondition(lambda self: self.breaker.position is Position.CLOSED)
    @rule()
    def trip(self) -> None:
        self.breaker.open(self.now)
        self.pauses = [self.breaker.pause]
        self.moved()

    @precondition(lambda self: self.breaker.position is Position.OPEN)
    @rule()
    def wait(self) -> None:
        self.now = self.breaker.reopens_at
        self.breaker.half_open()
        self.moved()

    @precondition(lambda self: self.breaker.trials_free > 0)
    @rule()
    def begin(self) -> None:
        self.breaker.begin_trial()
        self.out += 1

    @precondition(lambda self: self.out > 0)
    @rule(good=st.booleans())
    def come_back(self, good: bool) -> None:
        self.out -= 1
        self.good += good
        closes = self.breaker.end_trial(good=good)
        assert closes is (self.good == self.settings.trials)
        if closes:
            self.breaker.close()
            self.moved()

    @precondition(lambda self: self.out > 0)
    @rule()
    def fail_trial(self) -> None:
        self.breaker.open(self.now)
        self.pauses.append(self.breaker.pause)
        self.moved()

    @invariant()
    def trials_never_exceed_their_number(self) -> None:
        free = self.settings.trials - self.out - self.good
        assert self.breaker.trials_free == (free if self.breaker.position is Position.HALF_OPEN else 0)
        assert self.breaker.trials_free >= 0

    @invariant()
    def every_move_begins_a_new_term(self) -> None:
        assert len(set(self.terms)) == len(self.terms)

    @invariant()
    def pauses_double_up_to_a_minute(self) -> None:
        assert self.pauses == [5.0, 10.0, 20.0, 40.0, *[60.0] * len(self.pauses)][: len(self.pauses)]


TestTrials = Trials.TestCase
TestTrials.settings = settings(max_examples=60, stateful_step_count=40)
