from hypothesis import given
from hypothesis import strategies as st

from gateway.balance.policies.hashing import score, weighted_score


def test_scores_are_the_same_in_every_process() -> None:
    assert score(b"user-1", b"http://10.0.0.1:8000") == 6561106256678831916


@given(st.binary(max_size=30), st.binary(max_size=30), st.floats(0.01, 100))
def test_more_weight_is_never_a_lower_score(key: bytes, label: bytes, weight: float) -> None:
    assert 0 < weighted_score(key, label, weight) < weighted_score(key, label, weight * 2)


def test_key_and_label_are_not_confused() -> None:
    assert score(b"ab", b"c") != score(b"a", b"bc")
