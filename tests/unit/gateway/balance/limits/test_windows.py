"""Days and months by arithmetic, against the standard library's calendar."""

from datetime import UTC, date, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from gateway.balance.limits.windows import civil, first_of, today

EPOCH = date(1970, 1, 1)
DAYS = st.dates()


@given(DAYS)
def test_a_day_is_the_librarys(when: date) -> None:
    number = (when - EPOCH).days

    assert civil(number) == (when.year, when.month, when.day)
    assert first_of(when.year, when.month) == (when.replace(day=1) - EPOCH).days


@given(st.datetimes(datetime(1970, 1, 2), datetime(9998, 1, 1), timezones=st.just(UTC)))
def test_today_ends_when_the_day_and_the_month_do(when: datetime) -> None:
    found = today(when.timestamp())
    midnight = when.replace(hour=0, minute=0, second=0, microsecond=0)
    following = (midnight.replace(day=1) + timedelta(days=32)).replace(day=1)

    assert found.date == when.date().isoformat()
    assert found.day_ends == (midnight + timedelta(days=1)).timestamp()
    assert found.month_ends == following.timestamp()
    assert today(found.month_ends).month == found.month + 1
