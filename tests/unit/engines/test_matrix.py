"""Every parameter has a policy on every engine: nothing is left to chance."""

from collections.abc import Mapping

import pytest
from openai.types import completion_create_params, embedding_create_params
from openai.types.chat import completion_create_params as chat_create_params

from engines.capabilities import OPENAI as LISTED
from engines.policy import Pass
from engines.profile import EngineKind, Operation
from engines.registry import PROFILES, profile

OPENAI: Mapping[Operation, frozenset[str]] = {
    Operation.CHAT: frozenset({*chat_create_params.CompletionCreateParamsBase.__annotations__, "stream"}),
    Operation.COMPLETIONS: frozenset({*completion_create_params.CompletionCreateParamsBase.__annotations__, "stream"}),
    Operation.EMBEDDINGS: frozenset(embedding_create_params.EmbeddingCreateParams.__annotations__),
}
"""What the OpenAI SDK can send: a new parameter there fails this file."""


def test_the_list_of_the_documents_is_that_of_the_sdk() -> None:
    """Every parameter of OpenAI's, once."""
    for operation, names in LISTED.items():
        assert len(names) == len(set(names))
        assert {*names, "model"} == OPENAI[operation]


SERVED = [(kind, operation) for kind in EngineKind for operation in profile(kind).tables]


@pytest.mark.parametrize(("kind", "operation"), SERVED)
def test_every_parameter_has_a_policy(kind: EngineKind, operation: Operation) -> None:
    """OpenAI's own, and what any other engine knows, in every variant."""
    known = set(OPENAI[operation]).union(
        *(p.tables[operation].policies for p in PROFILES.values() if operation in p.tables)
    )
    kinds = profile(kind)
    for tables in (kinds.tables, *(variant.tables for variant in kinds.variants)):
        if operation in tables:
            assert known - set(tables[operation].policies) == {"model"}


@pytest.mark.parametrize(("kind", "operation"), SERVED)
def test_every_policy_but_passing_on_has_a_reason(kind: EngineKind, operation: Operation) -> None:
    """A reason reads on in a message, so it is no sentence of its own."""
    for name, policy in profile(kind).tables[operation].policies.items():
        if not isinstance(policy, Pass):
            assert policy.reason, name
            assert not policy.reason.endswith("."), name
            assert "  " not in policy.reason, name
