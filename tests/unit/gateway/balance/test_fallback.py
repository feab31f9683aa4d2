import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.balance.fallback import Cause, Fallbacks, cause_of, next_model
from gateway.balance.outcome import (
    CLIENT_GONE,
    REFUSED,
    SERVED,
    STALE,
    TRUNCATED,
    Broken,
    Outcome,
    Overloaded,
    Phase,
    Rejected,
    TimedOut,
)
from gateway.balance.route import Unavailable


@pytest.mark.parametrize(
    ("end", "cause"),
    [
        (Overloaded(), Cause.OVERLOAD),
        (Unavailable("all_busy", 1.0), Cause.OVERLOAD),
        (Unavailable("no_endpoint", 1.0), Cause.ENGINE_LOSS),
        (Unavailable("all_tried", 1.0), Cause.ENGINE_LOSS),
        (REFUSED, Cause.ENGINE_LOSS),
        (STALE, Cause.ENGINE_LOSS),
        (Broken(500), Cause.ENGINE_LOSS),
        (TimedOut(Phase.FIRST_TOKEN), Cause.ENGINE_LOSS),
        (TimedOut(Phase.TOTAL), None),
        (TimedOut(Phase.FIRST_TOKEN, by_client=True), None),
        (Rejected(400), None),
        (SERVED, None),
        (TRUNCATED, None),
        (CLIENT_GONE, None),
    ],
    ids=str,
)
def test_another_model_is_asked_only_for_overload_and_loss(end: Outcome | Unavailable, cause: Cause | None) -> None:
    assert cause_of(end) is cause


def test_a_prompt_that_is_too_long_goes_elsewhere_only_if_that_was_asked_for() -> None:
    cause = cause_of(Rejected(400), context_too_long=True)
    assert cause is Cause.CONTEXT_LENGTH
    assert next_model(Fallbacks(("large",)), cause, {"small"}) is None
    assert next_model(Fallbacks(("large",), frozenset(Cause)), cause, {"small"}) == "large"


def test_fallbacks_are_asked_in_order_and_only_if_they_can_serve_the_request() -> None:
    fallbacks = Fallbacks(("a", "b", "c"))
    assert next_model(fallbacks, Cause.OVERLOAD, {"m"}) == "a"
    assert next_model(fallbacks, Cause.OVERLOAD, {"m", "a"}) == "b"
    assert next_model(fallbacks, Cause.OVERLOAD, {"m"}, usable=["c"]) == "c"
    assert next_model(fallbacks, None, {"m"}) is None


@given(st.dictionaries(st.sampled_from("abcde"), st.lists(st.sampled_from("abcde"), max_size=5), max_size=5))
def test_models_that_name_each_other_are_asked_once_each(table: dict[str, list[str]]) -> None:
    visited = ["a"]
    model: str | None = "a"
    while model is not None:
        model = next_model(Fallbacks(tuple(table.get(model, ()))), Cause.ENGINE_LOSS, visited)
        if model is not None:
            assert model not in visited
            visited.append(model)
    assert len(visited) <= 5
