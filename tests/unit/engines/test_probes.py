"""Engines are told apart by what they say about themselves."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engines.probes import NO_ANSWER, Answer, EngineModel, fingerprint, parse_build, parse_models
from engines.profile import Build, EngineKind

NOT_FOUND = Answer(404, b'{"detail":"Not Found"}')


def listing(**entry: object) -> Answer:
    """Give a model list with one entry."""
    return Answer(200, msgspec.json.encode({"object": "list", "data": [entry]}))


def test_vllm_models_with_alias_and_adapter() -> None:
    """Aliases share a root, an adapter names its parent, the context length is read (recording `get_models`)."""
    rows = [
        {"id": "tiny-chat", "owned_by": "vllm", "root": "tiny-chat", "parent": None, "max_model_len": 1024},
        {"id": "tiny-alias", "owned_by": "vllm", "root": "tiny-chat", "parent": None, "max_model_len": 1024},
        {"id": "tiny-lora", "owned_by": "vllm", "root": "tiny-lora", "parent": "tiny-chat", "max_model_len": None},
    ]
    assert parse_models(msgspec.json.encode({"object": "list", "data": rows})) == (
        EngineModel("tiny-chat", 1024, None, "tiny-chat", "vllm"),
        EngineModel("tiny-alias", 1024, None, "tiny-chat", "vllm"),
        EngineModel("tiny-lora", None, "tiny-chat", "tiny-lora", "vllm"),
    )


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"<html>",
        b"null",
        b"[]",
        b"{}",
        b'{"data":null}',
        b'{"data":{}}',
        b'{"data":[1,null,{},{"id":5},{"id":""}]}',
    ],
)
def test_junk_is_no_model(body: bytes) -> None:
    """A list that cannot be read is empty."""
    assert parse_models(body) == ()


def test_odd_fields_are_passed_over() -> None:
    """The id counts; other fields of a wrong type are as if absent."""
    assert parse_models(b'{"data":[{"id":"m","max_model_len":true,"parent":5,"root":[]}]}') == (EngineModel("m"),)


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (b'{"version":"0.32.0"}', "0.32.0"),
        (b'{"version":"0.32.0","rust_frontend_version":"0.32.0"}', "0.32.0"),
        (b'{"version":1}', None),
        (b'{"version":""}', None),
        (b"nope", None),
    ],
)
def test_version(body: bytes, expected: str | None) -> None:
    """The version is a short text or nothing."""
    assert parse_build(body).version == expected


def test_the_rust_frontend_names_itself() -> None:
    """It adds a version of its own (recording `rust_get_version`)."""
    assert parse_build(b'{"version":"0.32.0","rust_frontend_version":"0.32.0"}') == Build("0.32.0", rust_frontend=True)
    assert parse_build(b'{"version":"0.32.0"}') == Build("0.32.0")


@pytest.mark.parametrize(
    ("version", "models", "ready", "expected"),
    [
        (Answer(200, b'{"version":"0.32.0"}'), listing(id="m", owned_by="vllm"), NOT_FOUND, EngineKind.VLLM),
        (Answer(200, b'{"version":"1"}'), listing(id="m", owned_by="vllm-frontend-rs"), NOT_FOUND, EngineKind.VLLM),
        (Answer(200, b'{"version":"1.2.0"}'), listing(id="m", owned_by="tensorrt_llm"), NOT_FOUND, EngineKind.TRTLLM),
        (NOT_FOUND, listing(id="m", owned_by="Triton Inference Server"), Answer(200), EngineKind.TRITON),
        # Triton with no model loaded, and while it is not ready
        (NOT_FOUND, Answer(200, b'{"object":"list","data":[]}'), Answer(200), EngineKind.TRITON),
        (
            NOT_FOUND,
            Answer(200, b'{"object":"list","data":[]}'),
            Answer(400, b'{"detail":"Attached inference engine is not ready for inference requests."}'),
            EngineKind.TRITON,
        ),
        # without the key: recordings auth_models_missing, auth_models_missing_key
        (Answer(200, b'{"version":"0.32.0"}'), Answer(401, b'{"error":"Unauthorized"}'), NOT_FOUND, EngineKind.VLLM),
        (
            NOT_FOUND,
            Answer(
                401,
                b'{"error":{"message":"This API is restricted","type":"authentication_error","code":"invalid_auth"}}',
            ),
            NOT_FOUND,
            EngineKind.TRITON,
        ),
        (Answer(200, b'{"version":"1","rust_frontend_version":"1"}'), NO_ANSWER, NO_ANSWER, EngineKind.VLLM),
        (Answer(200, b'{"version":"9"}'), listing(id="m", owned_by="someone"), NOT_FOUND, None),
        (NO_ANSWER, NO_ANSWER, NO_ANSWER, None),
        (Answer(200, b"<html>"), Answer(200, b"<html>"), Answer(200, b"<html>"), None),
    ],
)
def test_fingerprint(version: Answer, models: Answer, ready: Answer, expected: EngineKind | None) -> None:
    """The answers of /version, /v1/models and /health/ready tell the kind, or that it cannot be told."""
    found = fingerprint(version, models, ready)
    assert found.kind is expected
    assert found.evidence
    assert found.needs_key == (models.status == 401)


def test_fingerprint_carries_what_was_read() -> None:
    """Version, frontend and models are read on the way."""
    found = fingerprint(
        Answer(200, b'{"version":"0.32.0","rust_frontend_version":"0.32.0"}'),
        listing(id="m", owned_by="vllm-frontend-rs", max_model_len=9),
        NOT_FOUND,
    )
    assert (found.version, found.rust_frontend) == ("0.32.0", True)
    assert found.models == (EngineModel("m", 9, None, None, "vllm-frontend-rs"),)


ANSWERS = st.builds(Answer, st.sampled_from([0, 200, 400, 401, 404, 500]), st.binary(max_size=60))


@given(ANSWERS, ANSWERS, ANSWERS)
def test_any_answers_are_read(version: Answer, models: Answer, ready: Answer) -> None:
    """Whatever listens at an address, the probe gives a result."""
    assert fingerprint(version, models, ready).evidence
