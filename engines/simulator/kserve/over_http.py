"""KServe's HTTP port of a simulated Triton."""

import contextlib
import json
from collections.abc import AsyncIterator

from engines.profile import EngineKind
from engines.simulator.app import Receive, Scope
from engines.simulator.build import build_app
from engines.simulator.kserve.repository import Refused, SimulatedRepository
from engines.simulator.run import Send, send_reply
from engines.simulator.server import start
from engines.simulator.wire import Reply, reply

_READY = Reply(200, b"", b"text/plain")
_NOT_FOUND = Reply(404, b"")


class HttpKServe:
    """The ASGI application."""

    def __init__(self, repository: SimulatedRepository) -> None:
        self._repository = repository

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serves one request."""
        body = b""
        while True:
            message = await receive()
            body += message.get("body", b"")
            if not message.get("more_body"):
                break
        ready = b'"ready"' in body and bool(json.loads(body).get("ready"))
        try:
            answer = self._answer(scope["method"], scope["path"].strip("/").split("/"), ready=ready)
        except Refused as refused:
            answer = reply(refused.http, {"error": refused.message})
        await send_reply(send, answer)

    def _answer(self, method: str, parts: list[str], *, ready: bool) -> Reply:
        repository = self._repository
        match method, *parts:
            case "GET", "v2":
                return reply(200, repository.server_metadata())
            case "GET", "v2", "health", "live":
                return _READY
            case "GET", "v2", "health", "ready":
                return _READY if repository.ready else Reply(400, b"", b"text/plain")
            case "GET", "v2", "models", "stats":
                return reply(200, {"model_stats": repository.statistics("")})
            case "GET", "v2", "models", name, "stats":
                return reply(200, {"model_stats": repository.statistics(name)})
            case "GET", "v2", "models", name, "ready":
                return _READY if repository.model_ready(name) else reply(400, {"error": "Model version not ready"})
            case "GET", "v2", "models", name:
                return reply(200, repository.metadata(name))
            case "POST", "v2", "repository", "index":
                return reply(200, repository.index(ready=ready))
            case "POST", "v2", "repository", "models", name, "load":
                repository.load(name)
                return Reply(200, b"")
            case "POST", "v2", "repository", "models", name, "unload":
                repository.unload(name)
                return Reply(200, b"")
        return _NOT_FOUND


@contextlib.asynccontextmanager
async def http_kserve(repository: SimulatedRepository) -> AsyncIterator[str]:
    """Serves on a free loopback port; yields the base URL."""
    running = await start(build_app(EngineKind.TRITON), application=HttpKServe(repository))
    try:
        yield running.url
    finally:
        await running.stop()
