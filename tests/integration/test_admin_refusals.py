"""What the control plane says to requests that it cannot serve: what is wrong, where, and what would be right."""

import json
from collections.abc import Sequence

import pytest

from tests.integration.conftest import Gateway, one_engine
from tests.support.client import Answer
from tests.support.scripted import ScriptedEngine
from tests.support.serving import Serving

DRAIN = "/admin/engines/e/drain"
JSON = ("content-type", "application/json")
HALF = b'{"url": "\\ud800"}'
DEEP = b'{"url": ' + b"[" * 100_000


async def call(
    serving: Serving, method: str, path: str, body: bytes = b"", headers: Sequence[tuple[str, str]] = (JSON,)
) -> Answer:
    lines = [f"{method} {path} HTTP/1.1", "host: localhost", *(f"{name}: {value}" for name, value in headers)]
    async with await serving.connect() as client:
        await client.send("\r\n".join([*lines, f"content-length: {len(body)}", "", ""]).encode() + body)
        return await client.answer()


@pytest.mark.parametrize(
    ("method", "path", "body", "status", "told"),
    [
        ("GET", "/admin/nothing", b"", 404, "GET /openapi.json lists all paths"),
        ("GET", "/admin/engines/", b"", 404, "/admin/engines without the slash at its end"),
        ("POST", "/v1/chat/completions/", b"{}", 404, "/v1/chat/completions without the slash at its end"),
        ("DELETE", "/admin/engines", b"", 405, "it takes GET"),
        ("GET", "/v1/chat/completions", b"", 405, "it takes POST"),
        ("POST", DRAIN, b"\xff", 400, "UTF-8"),
        ("POST", DRAIN, DEEP, 400, "nested too deeply"),
        ("POST", DRAIN, b"[]", 400, "must be a JSON object"),
        ("POST", DRAIN, HALF, 404, "no replica \\ud800; it has "),
        ("POST", DRAIN, b'{"\\ud800": 1}', 400, "unicode string"),
        ("POST", "/admin/plan", b'{"settings": {"engines": {"e": {"kind": "\\ud800"}}}}', 400, "unicode string"),
        ("GET", "/admin/usage?since=2026-13-45", b"", 400, "expected a day, such as 2026-12-31"),
        ("GET", "/admin/usage?since=yesterday", b"", 400, "expected a day, such as 2026-12-31"),
        ("GET", "/admin/usage?since=2026-12-31&until=2026-12-01", b"", 400, "'until' is before 'since'"),
        ("GET", "/admin/engines/e/models", b"", 400, "engines.e.kserve"),
    ],
)
async def test_a_refusal_says_what_would_be_right(
    gateway: Gateway, engine: ScriptedEngine, method: str, path: str, body: bytes, status: int, told: str
) -> None:
    serving = await gateway(one_engine(engine), whole=True)
    answer = await call(serving, method, path, body)

    assert answer.status == status
    assert told in str(answer.error["message"])


async def test_a_body_of_another_type_is_told_which_one_is_taken(gateway: Gateway, engine: ScriptedEngine) -> None:
    serving = await gateway(one_engine(engine), whole=True)
    answer = await call(serving, "POST", DRAIN, b'{"url": null}', [("content-type", "text/plain")])

    assert answer.status == 400
    assert "content-type: application/json" in str(answer.error["message"])


async def test_who_may_not_come_in_is_told_how_one_may(gateway: Gateway, engine: ScriptedEngine) -> None:
    serving = await gateway(one_engine(engine), whole=True)
    stranger = await call(serving, "GET", "/admin/engines", headers=[("origin", "http://page.test")])
    guarded = await gateway(one_engine(engine) | {"admin": {"token": "right"}}, whole=True)
    wrong = await call(guarded, "GET", "/admin/engines", headers=[("authorization", "Bearer wrong")])

    assert stranger.status == 403
    assert "admin.token" in str(stranger.error["message"])
    assert (wrong.status, json.loads(wrong.body)["error"]["code"]) == (401, "invalid_admin_token")
    for answer in (stranger, wrong):
        assert "'Authorization: Bearer TOKEN'" in str(answer.error["message"])
