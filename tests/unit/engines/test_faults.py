"""Every recorded error of every engine becomes a fault with a clean message."""

import re
import time
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engines.faults import Fault, FaultKind
from engines.profile import EngineKind
from engines.registry import PROFILES, profile


class Recorded(msgspec.Struct, frozen=True):
    """One recorded error answer and what it has to become."""

    engine: EngineKind
    case: str
    status: int
    body: str
    fault: FaultKind
    client: int
    param: str | None
    message: str


ROWS = [
    msgspec.json.decode(line, type=Recorded)
    for line in Path(__file__).with_name("recorded_errors.jsonl").read_bytes().splitlines()
]
TOO_LONG = "The decoder prompt (length 600) is longer than the maximum model length of 512."
INSIDE = re.compile(
    r"Traceback|InferenceResponse|InternalError|<class|NoneType|0x[0-9a-f]{6}|/usr/|/opt/|/models/|\w+://|'loc'|'type':"
    r"|validation error|input_value|ValueError|\bline \d+ column|Valid aliases|--http|VLLM_"
)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row.engine}-{row.case}-{row.status}")
def test_recorded_error(row: Recorded) -> None:
    """A recorded error gets the kind, status, parameter and words that a client should see."""
    fault = profile(row.engine).classify(row.status, row.body.encode())
    assert fault == Fault(row.fault, row.client, row.message, row.param)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row.engine}-{row.case}-{row.status}")
def test_nothing_of_the_inside_shows(row: Recorded) -> None:
    """Messages are sentences on one line without dumps, reprs, paths, flags for operators or model lists."""
    message = profile(row.engine).classify(row.status, row.body.encode()).message
    assert INSIDE.search(message) is None
    assert message == message.strip()
    assert "\n" not in message
    assert message[-1] in ".!?…"


def test_the_recordings_cover_all_engines_and_kinds() -> None:
    """The table holds hundreds of answers and every kind of fault."""
    assert {row.engine for row in ROWS} == set(EngineKind)
    assert {row.fault for row in ROWS} == set(FaultKind)
    assert len(ROWS) > 250


@pytest.mark.parametrize("kind", EngineKind)
@pytest.mark.parametrize(
    ("status", "body", "expected", "client"),
    [
        (502, b"<html><head><title>502 Bad Gateway</title></head><body>nginx/1.25</body></html>", "engine_error", 502),
        (400, b"<html><body><h1>Bad request</h1></body></html>", "invalid_request", 400),
        (500, b"", "engine_error", 502),
        (500, b'{"error":{"message":"","type":"","param":null,"code":500}}', "engine_error", 502),
        (500, b"Internal Server Error", "engine_error", 502),
        (503, b"", "engine_error", 502),
        (504, b"upstream request timeout", "engine_error", 502),
        (429, b"", "overloaded", 429),
        (429, b'{"error":{"message":"queue is full","type":"RateLimit","param":null,"code":429}}', "overloaded", 429),
        (503, b'{"error":{"message":"The engine is currently busy"}}', "overloaded", 503),
        (401, b"", "unauthorized", 502),
        (403, b"forbidden by 10.1.2.3", "unauthorized", 502),
        (404, b"", "no_such_path", 404),
        (404, b'{"detail":"Not Found"}', "no_such_path", 404),
        (404, b'{"error":"Not Found"}', "no_such_path", 404),
        (405, b"", "no_such_path", 404),
        (404, b"<html>nothing here</html>", "no_such_path", 404),
        (302, b"", "engine_error", 502),
        (400, b"null", "invalid_request", 400),
        (422, b'{"detail":[]}', "invalid_request", 400),
        (400, b'{"detail":[1,{"loc":"x"}]}', "invalid_request", 400),
        (413, b'{"error":"too big: 10.0.0.1:8000"}', "invalid_request", 413),
    ],
)
def test_answers_that_are_not_the_engines_own(
    kind: EngineKind, status: int, body: bytes, expected: str, client: int
) -> None:
    """Proxies in between, empty bodies and plain text give a fault with words too."""
    fault = profile(kind).classify(status, body)
    assert (fault.kind, fault.status) == (expected, client)
    assert fault.message
    assert INSIDE.search(fault.message) is None


@pytest.mark.parametrize(
    "message",
    [
        "failed to open /models/llama/1/model.json",
        "cannot reach http://10.0.0.5:8000/v1",
        "connection to 10.0.0.5 refused",
        'Traceback (most recent call last): File "x.py", line 1',
        "unsupported operand <class 'int'>",
        "'NoneType' object is not subscriptable",
        "('Error generating stream: x', Other(model={}))",
        "<vllm.outputs.RequestOutput object at 0x7f00>",
    ],
)
def test_a_refusal_that_speaks_of_the_inside_is_replaced(message: str) -> None:
    """A 400 whose words show a path, an address or code says only that the request was refused."""
    body = msgspec.json.encode({"error": {"message": message, "type": "BadRequestError", "param": None, "code": 400}})
    for one in PROFILES.values():
        assert one.classify(400, body) == Fault(FaultKind.INVALID_REQUEST, 400, "The engine refused the request.")


def test_a_failing_trtllm_engine_is_not_the_clients_mistake() -> None:
    """trtllm-serve reports engine failures as 400: known words tell them (`chat_engine_error_nonstream`)."""
    body = b'{"object":"error","message":"CUDA out of memory","type":"BadRequestError","param":null,"code":400}'
    assert profile(EngineKind.TRTLLM).classify(400, body).kind is FaultKind.ENGINE_ERROR
    assert profile(EngineKind.VLLM).classify(400, body).kind is FaultKind.INVALID_REQUEST


@pytest.mark.parametrize(
    "body",
    [
        b'{"object":"error","message":"too long","type":"BadRequestError","code":"context_length_exceeded"}',
        b'{"object":"error","message":"The prompt length 5000 exceeds max_seq_len 4096","code":400}',
    ],
)
def test_a_too_long_prompt_is_recognised_on_trtllm(body: bytes) -> None:
    """By its code in newer versions, by its words in older ones (`derived_endpoints`)."""
    assert profile(EngineKind.TRTLLM).classify(400, body).kind is FaultKind.CONTEXT_LENGTH


@pytest.mark.parametrize(
    "words",
    [
        "The sum of prompt length (600) and query length (0) should not exceed max_num_tokens (512)",
        "Prompt length (600) exceeds maximum input length (512). Set log level to info and check TRTGptModel logs",
        "Input length (600) + max new tokens (16) + draft tokens length (0) must be less than max sequence length (5)",
    ],
)
def test_tensorrt_llm_says_in_many_ways_that_a_prompt_is_too_long(words: str) -> None:
    """In its executor's words, whichever server passes them on (its source)."""
    body = msgspec.json.encode({"object": "error", "message": words, "type": "BadRequestError", "code": 400})
    assert profile(EngineKind.TRTLLM).classify(400, body).kind is FaultKind.CONTEXT_LENGTH
    if "max_num_tokens" not in words:
        assert profile(EngineKind.TRITON).classify(500, triton_failure(words)).kind is FaultKind.CONTEXT_LENGTH


@pytest.mark.parametrize("quote", ["'", '"'])
@pytest.mark.parametrize(
    ("words", "shown"),
    [
        (
            f"{TOO_LONG} Make sure that `max_model_len` is no smaller than the number of text tokens.",
            TOO_LONG,
        ),
        (
            "This model's maximum context length is 512 tokens. However, you requested 600 tokens.",
            "This model's maximum context length is 512 tokens. However, you requested 600 tokens.",
        ),
    ],
)
def test_a_too_long_prompt_is_recognised_on_triton(words: str, shown: str, quote: str) -> None:
    """It is 500 there, with the engine's words in a Python tuple: the client's mistake all the same."""
    fault = profile(EngineKind.TRITON).classify(500, triton_failure(words, quote))
    assert fault == Fault(FaultKind.CONTEXT_LENGTH, 400, shown)


@pytest.mark.parametrize(
    ("words", "param"),
    [
        ("max_tokens must be at least 1, got 0.", "max_tokens"),
        ("top_p must be in (0, 1], got 0.0.", "top_p"),
        ("min_tokens must be less than or equal to max_tokens=16, got 20.", "min_tokens"),
        ("stop cannot contain an empty string.", "stop"),
    ],
)
def test_what_vllm_refuses_behind_triton_is_the_clients_mistake(words: str, param: str) -> None:
    """Triton takes the value, and answers 500 when the engine behind it does not (vLLM's source, 0.32)."""
    fault = profile(EngineKind.TRITON).classify(500, triton_failure(words))
    assert fault == Fault(FaultKind.INVALID_REQUEST, 400, words, param)


@pytest.mark.parametrize(
    "words",
    [
        "CUDA out of memory (scripted)",
        "CUDA out of memory: try a lower maximum sequence length",
        "EngineCore encountered an issue. See stack trace (above) for the root cause.",
        "Unknown tokenizer",
        "list index out of range",
    ],
)
def test_other_failures_behind_triton_stay_failures(words: str) -> None:
    """500 is the engine's fault unless its words are known to be about the request."""
    for body in (triton_failure(words), msgspec.json.encode({"detail": words})):
        assert profile(EngineKind.TRITON).classify(500, body).kind is FaultKind.ENGINE_ERROR


@pytest.mark.parametrize("words", ["CUDA out of memory", "queue is full", "maximum context length", "internal error"])
def test_a_clients_own_words_do_not_pass_for_the_engines(words: str) -> None:
    """What a refusal quotes decides nothing: else anybody could have an engine taken for broken."""
    dump = (
        f"[{{'type': 'int_parsing', 'loc': ('body', 'seed'), 'msg': 'Input should be an integer', 'input': '{words}'}}]"
    )
    flat = f"tool_choice requested function '{words}' which is not present in `tools`. Available functions: ['a']."
    for engine, status, body in (
        (EngineKind.TRTLLM, 400, {"error": dump}),
        (EngineKind.TRTLLM, 400, {"object": "error", "message": flat, "type": "BadRequestError", "code": 400}),
        (EngineKind.TRITON, 400, {"detail": f"Tool '{words}' has not been passed in `tools`."}),
    ):
        assert profile(engine).classify(status, msgspec.json.encode(body)).kind is FaultKind.INVALID_REQUEST


def triton_failure(words: str, quote: str = "'") -> bytes:
    """An exception as Triton's frontend shows it (`chat_engine_error_nonstream`)."""
    said = f"Error generating stream: {words}".replace(quote, "\\" + quote)
    inside = "InferenceResponse(model={'name': 'm', 'version': 1}, outputs={}, error=InternalError(...), final=True)"
    return msgspec.json.encode({"detail": f"({quote}{said}{quote}, {inside})"})


def test_newer_fastapi_prints_dumps_over_several_lines() -> None:
    """The `error` string of trtllm-serve reads the same with the FastAPI of 2026, which counts errors first."""
    body = msgspec.json.encode(
        {
            "error": "1 validation error:\n  {'type': 'extra_forbidden', 'loc': ('body', 'foo'), "
            "'msg': 'Extra inputs are not permitted', 'input': 1}"
        }
    )
    fault = profile(EngineKind.TRTLLM).classify(400, body)
    assert fault == Fault(FaultKind.INVALID_REQUEST, 400, "Unsupported parameter: 'foo'.", "foo")


@pytest.mark.parametrize(
    ("kind", "event", "expected"),
    [
        # recording wire_engine_crash
        (
            EngineKind.VLLM,
            b'{"error": {"message": "EngineCore encountered an issue.", "type": "InternalServerError", "code": 500}}',
            FaultKind.ENGINE_ERROR,
        ),
        # recording rust_tool_required_stream
        (
            EngineKind.VLLM,
            b'{"error":{"message":"Internal server error","type":"server_error","param":null,"code":"server_error"}}',
            FaultKind.ENGINE_ERROR,
        ),
        # recording completions_midstream_error
        (
            EngineKind.TRTLLM,
            b'{"error": {"message": "CUDA out of memory (scripted)", "type": "server_error", "code": null}}',
            FaultKind.ENGINE_ERROR,
        ),
        (EngineKind.VLLM, b'{"error":"gone"}', FaultKind.ENGINE_ERROR),
        (EngineKind.VLLM, b'{"object":"error","message":"bad","type":"BadRequestError"}', FaultKind.INVALID_REQUEST),
        (EngineKind.VLLM, b'{"error":{"message":"busy, try again later","code":503}}', FaultKind.OVERLOADED),
    ],
)
def test_error_event(kind: EngineKind, event: bytes, expected: FaultKind) -> None:
    """An error in the middle of a stream is seen, whatever the status line said."""
    fault = profile(kind).classify_event(event)
    assert fault is not None
    assert fault.kind is expected
    assert "CUDA" not in fault.message


@pytest.mark.parametrize(
    "event",
    [
        b'{"id":"x","choices":[{"index":0,"delta":{"content":"an \\"error\\" happened"}}]}',
        b'{"id":"x","choices":[],"error":null}',
        b'{"id":"x","choices":[{"delta":{"content":"error"}}]}',
        b'{"error":',
        b"[DONE]",
        b'["error"]',
        b"",
    ],
)
def test_other_events_carry_no_error(event: bytes) -> None:
    """Text about errors, a null error and junk are no fault."""
    for one in PROFILES.values():
        assert one.classify_event(event) is None


@pytest.mark.parametrize(
    "text",
    [
        "x" * 200_000,
        "prompt exceeds " * 15_000,
        " (parameter=a, value=" * 10_000,
        "{'type': 'a', 'loc': (" * 10_000,
        "{'type': 'a', 'loc': 'b', 'msg': '" * 8_000,
        "1 validation error for X\n" * 8_000,
        "/a" * 100_000,
        "1.1." * 50_000,
        "model " * 30_000,
        "[" * 100_000,
    ],
    ids=lambda text: text[:12],
)
def test_long_texts_are_read_in_no_time(text: str) -> None:
    """Engines quote their clients: nobody can keep the gateway busy with what comes back in an error."""
    began = time.process_time()
    for one in PROFILES.values():
        for body in ({"error": {"message": text}}, {"error": text}, {"detail": text}, {"detail": [{"msg": text}]}):
            one.classify(400, msgspec.json.encode(body))
        one.classify(400, text.encode())
        one.classify_event(b'{"error":' + text.encode())
    assert time.process_time() - began < 1


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=20),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.sampled_from(["error", "detail", "message", "loc", "msg", "type", "param", "code"])
            | st.text(max_size=3),
            inner,
            max_size=5,
        )
    ),
    max_leaves=20,
)


@given(st.sampled_from(EngineKind), st.integers(300, 599), st.binary(max_size=300) | JSON.map(msgspec.json.encode))
def test_any_answer_gives_a_fault(kind: EngineKind, status: int, body: bytes) -> None:
    """Whatever an engine answers, the client gets a sentence and an error status of its own class."""
    fault = profile(kind).classify(status, body)
    assert fault.message
    assert "\n" not in fault.message
    assert 400 <= fault.status <= 599
    if fault.kind is FaultKind.ENGINE_ERROR:
        assert fault.status == 502
    profile(kind).classify_event(body)
