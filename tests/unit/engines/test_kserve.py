"""When an order to Triton's model repository has been carried out, and what its refusals leave unsaid."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engines.kserve import ModelEntry, ModelState, Order, remedy, settled, state_of

INDEXES = st.lists(
    st.builds(
        ModelEntry,
        st.sampled_from(["a", "b"]),
        st.sampled_from(["", "1", "2"]),
        st.sampled_from(ModelState),
        st.just(""),
    ),
    max_size=6,
)


@given(INDEXES)
def test_no_model_is_loaded_and_gone_at_once(index: list[ModelEntry]) -> None:
    assert not (settled(Order.LOAD, "a", index) and settled(Order.UNLOAD, "a", index))


@given(INDEXES, INDEXES)
def test_other_models_do_not_matter(index: list[ModelEntry], more: list[ModelEntry]) -> None:
    others = [entry for entry in more if entry.name != "a"]

    for order in Order:
        assert settled(order, "a", index) == settled(order, "a", index + others)


@given(INDEXES)
def test_while_a_model_is_on_its_way_no_order_is_over(index: list[ModelEntry]) -> None:
    assert not settled(Order.UNLOAD, "a", [*index, ModelEntry("a", "1", ModelState.UNLOADING, "")])
    for order in Order:
        assert not settled(order, "a", [*index, ModelEntry("a", "1", ModelState.LOADING, "")])


@pytest.mark.parametrize(
    ("text", "state"),
    [
        ("READY", ModelState.READY),
        ("UNLOADING", ModelState.UNLOADING),
        (None, ModelState.NEVER),
        ("", ModelState.NEVER),
        ("DREAMING", ModelState.UNKNOWN),
        (7, ModelState.UNKNOWN),
    ],
)
def test_states_are_read_and_new_ones_are_not_taken_for_known_ones(text: object, state: ModelState) -> None:
    assert state_of(text) is state


@pytest.mark.parametrize(
    ("message", "said"),
    [
        ("failed to load 'x', failed to poll from model repository", "Triton's log only"),
        ("at least one version must be available under the version policy of model 'x'", "whole number such as 1"),
        ("unable to find backend library for backend 'tensorrtllm'", "not in this image"),
        ("instance group x of model x has kind KIND_GPU but no GPUs are available", "KIND_MODEL"),
        ("'model.json' containing vllm engine args must be provided", ""),
    ],
)
def test_recorded_refusals_are_explained_where_they_are_not_plain(message: str, said: str) -> None:
    """The messages of `model_repository_lint.json`."""
    assert said in remedy(message)
    assert bool(said) == bool(remedy(message))
