"""The parameter tables are complete, and a request that needs nothing is not looked at."""

from typing import get_type_hints

import msgspec
import pytest
from openai.types import completion_create_params, embedding_create_params
from openai.types.chat import completion_create_params as chat_create_params

from engines.parameters import ENGINE_EXTRAS, GUIDED
from engines.policy import UNCHANGED, Drop, Pass, Reject, Rename, Translate
from engines.profile import EngineKind, Health, Operation, ParameterRefused, Unknown
from engines.registry import PROFILES, profile

from .support import members

CURRENT_API = {
    Operation.CHAT: {
        *get_type_hints(chat_create_params.CompletionCreateParamsBase),
        *get_type_hints(chat_create_params.CompletionCreateParamsStreaming),
    },
    Operation.COMPLETIONS: {
        *get_type_hints(completion_create_params.CompletionCreateParamsBase),
        *get_type_hints(completion_create_params.CompletionCreateParamsStreaming),
    },
    Operation.EMBEDDINGS: {*get_type_hints(embedding_create_params.EmbeddingCreateParams)},
}
TABLES = [(kind, operation) for kind, one in PROFILES.items() for operation in one.tables]


@pytest.mark.parametrize(("kind", "operation"), TABLES)
def test_every_parameter_of_the_openai_sdk_has_a_policy(kind: EngineKind, operation: Operation) -> None:
    """A parameter that a new SDK brings fails here until each engine's table says what becomes of it."""
    known = {"model", *profile(kind).tables[operation].policies}
    assert CURRENT_API[operation] - known == set()


@pytest.mark.parametrize(("kind", "operation"), [(k, o) for k, o in TABLES if o is not Operation.EMBEDDINGS])
def test_every_engines_own_parameters_have_a_policy_on_all_engines(kind: EngineKind, operation: Operation) -> None:
    """What one engine has beyond OpenAI is not unknown on another: it is passed, dropped or refused by meaning."""
    assert {*ENGINE_EXTRAS, *GUIDED} - set(profile(kind).tables[operation].policies) == set()


@pytest.mark.parametrize(("kind", "operation"), TABLES)
def test_each_row_says_why(kind: EngineKind, operation: Operation) -> None:
    """Whatever is not passed has a reason, for messages and for the generated documents."""
    for name, policy in profile(kind).tables[operation].policies.items():
        match policy:
            case Pass():
                continue
            case Drop(reason) | Reject(reason) | Rename(_, reason) | Translate(_, reason):
                assert reason, name


@pytest.mark.parametrize(("kind", "operation"), TABLES)
def test_no_table_names_the_model(kind: EngineKind, operation: Operation) -> None:
    """The model's name is the gateway's to set."""
    table = profile(kind).tables[operation]
    assert "model" not in table.policies
    assert "model" not in {default.name for default in table.defaults}


class Untouchable:
    """A member's value that must not be looked at."""

    def __bytes__(self) -> bytes:
        raise AssertionError("looked at")

    def __eq__(self, other: object) -> bool:
        raise AssertionError("compared")

    __hash__ = None  # type: ignore[assignment]


@pytest.mark.parametrize("operation", Operation)
def test_a_plain_vllm_request_is_not_looked_at(operation: Operation) -> None:
    """The cost does not depend on the body: no value is read, and the answer is one shared object."""
    one = profile(EngineKind.VLLM)
    table = one.tables.get(operation)
    policies = {"whatever": Pass()} if table is None else table.policies
    names = {"model", *(n for n, p in policies.items() if isinstance(p, Pass))}
    request = dict.fromkeys(names, Untouchable())
    assert one.prepare(operation, request) is UNCHANGED  # type: ignore[arg-type]


@pytest.mark.parametrize(("kind", "operation"), TABLES)
def test_unknown_members_follow_the_models_setting(kind: EngineKind, operation: Operation) -> None:
    """`unknown_parameters` decides about a member that no table names: dropped and told, refused, or passed."""
    request = members({"model": "m", "some_new_thing": {"a": 1}})
    one = profile(kind)
    dropped = one.prepare(operation, request, Unknown.DROP)
    assert dropped.members is not None
    assert "some_new_thing" not in dropped.members
    assert dropped.dropped == ("some_new_thing",)
    passed = one.prepare(operation, request, Unknown.PASS)
    assert passed.dropped == ()
    assert bytes((passed.members or request)["some_new_thing"]) == b'{"a":1}'
    with pytest.raises(ParameterRefused) as refusal:
        one.prepare(operation, request, Unknown.REJECT)
    assert (refusal.value.param, refusal.value.code) == ("some_new_thing", "unknown_parameter")


def test_an_operation_without_a_path_has_no_table() -> None:
    """Each kind serves exactly the operations it has paths for; those without a table are passed on whole."""
    for one in PROFILES.values():
        assert one.paths.keys() >= one.tables.keys()
    assert Operation.EMBEDDINGS not in profile(EngineKind.TRTLLM).paths


@pytest.mark.parametrize(
    ("kind", "status", "expected"),
    [
        (EngineKind.VLLM, 200, Health.READY),
        (EngineKind.VLLM, 503, Health.NOT_READY),
        (EngineKind.VLLM, 404, Health.BROKEN),
        (EngineKind.TRTLLM, 200, Health.READY),
        (EngineKind.TRTLLM, 503, Health.NOT_READY),
        (EngineKind.TRITON, 200, Health.READY),
        (EngineKind.TRITON, 400, Health.NOT_READY),
        (EngineKind.TRITON, 404, Health.BROKEN),
    ],
)
def test_health_statuses(kind: EngineKind, status: int, expected: Health) -> None:
    """Each engine's health path says ready, not ready, or is another server's answer."""
    assert profile(kind).health.judge(status) is expected


def test_prepare_does_not_change_the_clients_members() -> None:
    """Another attempt on another engine starts from what the client sent."""
    request = members({"model": "m", "messages": [{"role": "developer", "content": "x"}], "store": True, "tools": []})
    before = msgspec.json.encode(request)
    for one in PROFILES.values():
        one.prepare(Operation.CHAT, request)
    assert msgspec.json.encode(request) == before
