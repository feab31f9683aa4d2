"""The limiter against the simplest model of one: a bucket of exact fractions, filled by the clock."""

from dataclasses import dataclass
from fractions import Fraction
from itertools import accumulate

from hypothesis import given
from hypothesis import strategies as st

from gateway.balance.limits.account import Account, admit, standing, why_not
from gateway.balance.limits.terms import Refusal, Terms
from gateway.balance.limits.windows import today

MIDNIGHT = 1_790_000_000 // 86_400 * 86_400
NOW = today(MIDNIGHT + 1)

STEPS = st.lists(st.tuples(st.integers(0, 40_000), st.integers(0, 300)), min_size=1, max_size=60)
"""Requests: milliseconds since the one before, and tokens."""
RATES = st.sampled_from([1, 3, 60, 600, 7_000])
BURSTS = st.sampled_from([1.0, 7.0, 60.0, 120.0])


def refused(accounts: list[Account], tokens: int, now: float) -> Refusal | None:
    """Why a request does not pass, a second after midnight; None if it does."""
    return None if admit(accounts, tokens, now, NOW) else why_not(accounts, tokens, now, NOW, MIDNIGHT + 1)


@dataclass
class Bucket:
    """Holds `size` units at most, and gets `rate` per minute."""

    rate: int
    size: Fraction
    at: Fraction = Fraction(0)

    def __post_init__(self) -> None:
        self.level = self.size

    def fill(self, now: Fraction) -> None:
        self.level = min(self.size, self.level + (now - self.at) * self.rate / 60)
        self.at = now

    def take(self, units: int, now: Fraction) -> bool:
        self.fill(now)
        if units > self.level:
            return False
        self.level -= units
        return True


def times(steps: list[tuple[int, int]]) -> list[Fraction]:
    return [Fraction(ms, 1000) for ms in accumulate(pause for pause, _ in steps)]


@given(STEPS, RATES, BURSTS)
def test_requests_pass_as_through_a_bucket(steps: list[tuple[int, int]], rpm: int, burst: float) -> None:
    account = Account("a", Terms(rpm=rpm, burst=burst))
    bucket = Bucket(rpm, max(Fraction(1), Fraction(burst) * rpm / 60))

    for now in times(steps):
        passed = admit([account], 0, float(now), NOW)
        assert passed == bucket.take(1, now)


@given(STEPS, RATES.filter(lambda rate: rate >= 600), BURSTS)
def test_tokens_pass_as_through_a_bucket(steps: list[tuple[int, int]], tpm: int, burst: float) -> None:
    terms = Terms(tpm=tpm, burst=burst)
    account, bucket = Account("a", terms), Bucket(tpm, Fraction(burst) * tpm / 60)

    for now, (_, tokens) in zip(times(steps), steps, strict=True):
        asked = int(min(tokens, terms.most_tokens))
        passed = admit([account], asked, float(now), NOW)
        assert passed == bucket.take(asked, now)


@given(STEPS, RATES, BURSTS)
def test_no_span_of_time_sees_more_than_the_burst_and_the_rate(
    steps: list[tuple[int, int]], rpm: int, burst: float
) -> None:
    account = Account("a", Terms(rpm=rpm, burst=burst))
    passed = [now for now in times(steps) if admit([account], 0, float(now), NOW)]

    at_once = max(1.0, burst * rpm / 60)
    for first, start in enumerate(passed):
        for last in range(first, len(passed)):
            assert last - first + 1 <= at_once + float(passed[last] - start) * rpm / 60 + 1e-6


@given(STEPS, RATES, BURSTS)
def test_who_is_refused_passes_after_exactly_the_time_it_was_told(
    steps: list[tuple[int, int]], rpm: int, burst: float
) -> None:
    account = Account("a", Terms(rpm=rpm, tpm=6_000, burst=burst))

    for now, (_, tokens) in zip(map(float, times(steps)), steps, strict=True):
        asked = int(min(tokens, account.terms.most_tokens))
        refusal = refused([account], asked, now)
        if refusal is not None:
            assert account.refuses(asked, now + refusal.wait - 0.001, NOW) or refusal.wait < 0.002
            assert not account.refuses(asked, now + refusal.wait, NOW)


@given(
    st.lists(st.tuples(st.integers(0, 2_000), st.integers(1, 500), st.integers(0, 900), st.booleans()), max_size=60),
    BURSTS,
)
def test_settled_tokens_keep_to_the_rate_but_for_what_nobody_foresaw(
    steps: list[tuple[int, int, int, bool]], burst: float
) -> None:
    """What was used is within burst and rate, plus what some used beyond their estimate."""
    tpm = 60_000
    account = Account("a", Terms(tpm=tpm, burst=burst))
    now, open_ones, used, beyond = 0.0, list[tuple[int, int]](), 0, 0

    for pause, guessed, really, ends in steps:
        now += pause / 1000
        estimate = int(min(guessed, account.terms.most_tokens))
        if admit([account], estimate, now, NOW):
            open_ones.append((estimate, really))
        if ends and open_ones:
            reserved, spent = open_ones.pop(0)
            account.settle(spent - reserved, now, NOW)
            used += spent
            beyond += max(0, spent - reserved)
        assert used <= burst * tpm / 60 + now * tpm / 60 + beyond + 1


@given(st.lists(st.booleans(), max_size=80), st.integers(1, 5))
def test_no_more_run_at_once_than_may(starts: list[bool], parallel: int) -> None:
    account, running = Account("a", Terms(parallel=parallel)), 0

    for start in starts:
        if start:
            refusal = refused([account], 0, 0.0)
            assert (refusal is None) == (running < parallel)
            running += refusal is None
        elif running:
            account.running -= 1
            running -= 1
        assert account.running == running <= parallel


@given(st.lists(st.tuples(st.integers(0, 400), st.integers(-400, 400)), max_size=60))
def test_a_request_passes_while_anything_of_a_budget_is_left(steps: list[tuple[int, int]]) -> None:
    account = Account("a", Terms(day=1_000, month=1_500))
    for tokens, correction in steps:
        before = account.used_on(NOW), account.used_in_month(NOW)
        refusal = refused([account], tokens, 0.0)
        assert (refusal is None) == (before[0] < 1_000 and before[1] < 1_500)
        if refusal is None:
            account.settle(max(correction, -tokens), 0.0, NOW)
        else:
            ends = {"day": NOW.day_ends, "month": NOW.month_ends}[refusal.dimension]
            assert refusal.wait == ends - (MIDNIGHT + 1)


def test_a_new_day_has_a_new_budget_and_a_late_settlement_does_not_touch_it() -> None:
    account, tomorrow = Account("a", Terms(day=100, month=250)), today(NOW.day_ends)
    assert admit([account], 100, 0.0, NOW)
    assert not admit([account], 1, 0.0, NOW)
    assert admit([account], 100, 0.0, tomorrow)

    account.settle(-60, 0.0, NOW)
    assert account.used_on(tomorrow) == 100
    assert account.used_in_month(tomorrow) == 140


@given(st.lists(st.tuples(st.integers(0, 5_000), st.integers(0, 200)), max_size=50))
def test_a_request_is_charged_to_all_its_accounts_or_to_none(steps: list[tuple[int, int]]) -> None:
    key = Account("key", Terms(rpm=600, parallel=1_000))
    model = Account("model", Terms(tpm=12_000, burst=5.0))
    alone = Account("alone", Terms(rpm=600, parallel=1_000))
    now, passed = 0.0, 0

    for pause, tokens in steps:
        now += pause / 1000
        if admit([key, model], tokens, now, NOW):
            assert admit([alone], tokens, now, NOW)
            passed += 1
        assert (key.running, key.requests_until) == (passed, alone.requests_until)


@given(
    st.lists(st.tuples(st.integers(0, 5_000), st.integers(0, 200), st.booleans()), max_size=50),
    st.builds(
        Terms,
        st.sampled_from([None, 60, 600]),
        st.sampled_from([None, 6_000]),
        st.sampled_from([None, 2, 20]),
        st.sampled_from([None, 1_000]),
        st.sampled_from([None, 2_000]),
        BURSTS,
    ),
)
def test_a_request_of_one_account_passes_as_one_of_several_does(
    steps: list[tuple[int, int, bool]], terms: Terms
) -> None:
    """The short way for one account does what the long way does, to the last digit."""
    alone, among, unlimited = Account("a", terms), Account("a", terms), Account("b", Terms())
    now = 0.0
    for pause, tokens, ends in steps:
        now += pause / 1000
        assert admit([alone], tokens, now, NOW) == admit([among, unlimited], tokens, now, NOW)
        if ends and alone.running:
            alone.settle(-tokens, now, NOW)
            among.settle(-tokens, now, NOW)
        assert {name: getattr(alone, name) for name in Account.__slots__} == {
            name: getattr(among, name) for name in Account.__slots__
        }


@given(STEPS, RATES, BURSTS)
def test_what_is_left_is_what_would_pass_now(steps: list[tuple[int, int]], rpm: int, burst: float) -> None:
    account = Account("a", Terms(rpm=rpm, burst=burst))
    now = 0.0
    for pause, _ in steps:
        now += pause / 1000
        admit([account], 0, now, NOW)
    left = standing([account], now)

    assert left is not None
    more = 0
    while more <= left.requests_left and admit([account], 0, now, NOW):
        more += 1
    assert more == left.requests_left
    fresh = Account("fresh", account.terms)
    full = standing([fresh], now)
    assert full is not None
    at_reset = standing([account], now + account.request_depth + 1e-6)
    assert at_reset is not None
    assert at_reset.requests_left == full.requests_left


@given(st.integers(1, 10_000), st.integers(1, 10_000), st.integers(1, 64), st.integers(1, 16))
def test_the_shares_of_several_processes_are_the_whole_at_most(rpm: int, tpm: int, parallel: int, among: int) -> None:
    """But for requests at once, of which each process may have one."""
    terms = Terms(rpm=rpm, tpm=tpm, parallel=parallel, day=tpm, month=tpm)
    share = terms.divided(among)

    assert share.rpm is not None
    assert share.tpm is not None
    assert share.parallel is not None
    assert share.day is not None
    assert abs(share.rpm * among - rpm) < 1e-6 * rpm
    assert abs(share.tpm * among - tpm) < 1e-6 * tpm
    assert share.parallel * among <= max(parallel, among)
    assert share.day * among <= tpm


@given(RATES, RATES, st.integers(0, 30))
def test_other_terms_leave_as_many_requests_owed_as_before(before: int, after: int, count: int) -> None:
    account = Account("a", Terms(rpm=before, burst=10_000.0))
    passed = sum(admit([account], 0, 0.0, NOW) for _ in range(count))
    account.agree(Terms(rpm=after, burst=10_000.0), 0.0)

    left = standing([account], 0.0)
    assert left is not None
    assert left.requests_left == max(0, int(10_000 * after / 60 + 1e-6) - passed)
