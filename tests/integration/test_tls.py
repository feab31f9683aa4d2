"""Engines behind TLS: the certificate is checked, and the data path is the same."""

import asyncio
import json
import ssl
import subprocess
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from pathlib import Path

import pytest

from gateway.background.fetch import Fetch, NoAnswer
from gateway.balance.endpoint import Endpoint
from tests.support.json_type import Json
from tests.support.serving import Serving

Gateway = Callable[[Mapping[str, Json]], Awaitable[Serving]]
BODY = b'{"model":"m","messages":[]}'
ANSWER = b'{"id":"chatcmpl-0123456789abcdef0123","object":"chat.completion","created":1,"model":"m","choices":[]}'


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A certificate for 127.0.0.1 that is its own authority, with its key in the same file."""
    folder = tmp_path_factory.mktemp("tls")
    pem = folder / "engine.pem"
    key = folder / "engine.key"
    command = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    command += ["-days", "2", "-subj", "/CN=engine", "-addext", "subjectAltName=IP:127.0.0.1"]
    subprocess.run([*command, "-keyout", str(key), "-out", str(pem)], check=True, capture_output=True)
    pem.write_bytes(pem.read_bytes() + key.read_bytes())
    return pem


@pytest.fixture
async def engine(certificate: Path) -> AsyncIterator[tuple[str, list[bytes]]]:
    """An engine that speaks TLS only: its URL, and the request bodies that it got."""
    got: list[bytes] = []

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while head := await reader.readuntil(b"\r\n\r\n"):
                length = next(int(line[15:]) for line in head.split(b"\r\n") if line.startswith(b"content-length:"))
                got.append(await reader.readexactly(length))
                writer.write(
                    b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n" % len(ANSWER)
                )
                writer.write(ANSWER)
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError, StopIteration):
            pass
        finally:
            writer.close()

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    server = await asyncio.start_server(answer, "127.0.0.1", 0, ssl=context)
    yield f"https://127.0.0.1:{server.sockets[0].getsockname()[1]}", got
    server.close()


def settings(url: str) -> dict[str, Json]:
    return {"engines": {"e": {"kind": "vllm", "urls": [url]}}, "models": {"m": {"engine": "e"}}}


async def test_an_engine_with_a_trusted_certificate_is_served_over_tls(
    gateway: Gateway, engine: tuple[str, list[bytes]], certificate: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The system's authorities count; SSL_CERT_FILE names another file, as for every OpenSSL program."""
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    url, got = engine
    serving = await gateway(settings(url))
    async with await serving.connect() as client:
        for _ in range(2):
            await client.post("/v1/chat/completions", BODY)
            answer = await client.answer()
            assert (answer.status, answer.body) == (200, ANSWER)
    assert got == [BODY, BODY]


async def test_an_engine_with_an_unknown_certificate_is_not_spoken_to(
    gateway: Gateway, engine: tuple[str, list[bytes]]
) -> None:
    """No byte of a request leaves before the engine has proved who it is."""
    url, got = engine
    serving = await gateway(settings(url))
    async with await serving.connect() as client:
        await client.post("/v1/chat/completions", BODY)
        answer = await client.answer()
    assert answer.status == 503
    assert answer.error["code"] == "engine_unavailable"
    assert "certificate" not in json.dumps(answer.error)
    assert got == []


async def test_an_operator_is_told_that_the_certificate_is_not_accepted(engine: tuple[str, list[bytes]]) -> None:
    fetch = Fetch()
    answer = await fetch.get(Endpoint(engine[0]), "/health")
    await fetch.close()

    assert answer == NoAnswer("its certificate is not accepted (self-signed certificate)")
