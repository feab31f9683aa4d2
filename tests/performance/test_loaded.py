"""What a serving process has in memory: code that serving does not need stays out of it.

Modules are counted, not megabytes, so that the result is the same on every machine. Python itself says what it loads.
"""

import json
import re
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import httpx2
import pytest

from engines.simulator import simulated
from tests.support.process import Process

NEEDLESS = {
    "greenlet": "structlog would keep contexts of gevent's threads in it",
    "httpx2": "health checks go over the connections of requests; it is for commands",
    "pygments": "rich colours with it",
    "click": "uvicorn's command line is made with it",
    "multiprocessing": "uvicorn's reloaders use it",
    "pydantic.v1": "FastAPI would ask of every model whether it is one of those",
    "pydantic_settings": "only variables that override keys need it",
    "redis": "only state.redis needs it",
    "rich": "it is for commands",
    "typer": "it is for commands, and for a `serve` that is not plain",
    "gateway.cli.commands": "the table of all commands",
    "gateway.doctor.examination": "the doctor examines when it is called; its last results need none of that",
    "gateway.settings.advice": "`turnout check` gives advice",
    "gateway.supervisor.supervisor": "it is for several processes",
    "engines.launch.kinds": "only engines with launch settings need it",
}
"""Modules that are large or bring in large ones, and why a plain serving process has none of them."""

LATER = {
    "gateway.background.planning": "only /admin/plan needs it",
    "prometheus_client.exposition": "it writes /metrics, and has servers and clients of its own",
}
"""Modules that come with the first request that needs them."""

HELLO = [{"role": "user", "content": "Hello!"}]
PAGES = (
    *("/", "/healthz", "/readyz", "/metrics", "/v1/models", "/openapi.json"),
    *("/admin/engines", "/admin/config", "/admin/doctor"),
)

Start = Callable[..., Process]


@pytest.fixture
async def serve(tmp_path: Path) -> AsyncIterator[Start]:
    """Starts `turnout serve`, which tells what it imports."""
    started: list[Process] = []

    def start(*arguments: str) -> Process:
        process = Process(tmp_path, "serve", *arguments, environment={"PYTHONVERBOSE": "1"})
        started.append(process)
        return process

    yield start
    for process in started:
        process.kill()


def loaded(process: Process) -> set[str]:
    """The names of all modules that it has imported until now."""
    return set(re.findall(r"^import '([\w.]+)' # ", process.stderr, re.MULTILINE))


@pytest.mark.parametrize("carrier", ["protocol", "asgi"])
async def test_a_serving_process_has_loaded_nothing_that_it_does_not_need(serve: Start, carrier: str) -> None:
    """Nor does it after requests, streams, and a look at the operators' pages."""
    async with simulated("vllm", ["m"]) as url:
        process = serve("--engine", f"vllm={url}", "--port=0", "--carrier", carrier)
        port = await process.listening()
        at_first = loaded(process)
        async with httpx2.AsyncClient(base_url=f"http://127.0.0.1:{port}") as client:
            body = {"model": "m", "messages": HELLO}
            answers = [await client.post("/v1/chat/completions", json={**body, "stream": s}) for s in (False, True)]
            answers += [await client.get(page) for page in PAGES]

    assert [answer.status_code for answer in answers] == [200] * len(answers)
    found = loaded(process)
    assert "gateway.app" in at_first
    assert LATER.keys() & at_first == set()
    assert "prometheus_client.exposition" in found
    assert {name: why for name, why in NEEDLESS.items() if name in found} == {}


async def test_redis_is_loaded_where_the_configuration_asks_for_it(serve: Start, tmp_path: Path) -> None:
    settings = {
        "server": {"port": 0},
        "engines": {"e": {"kind": "vllm", "urls": ["http://127.0.0.1:1"]}},
        "models": {"m": {"engine": "e"}},
        "state": {"redis": "redis://127.0.0.1:1"},
    }
    (tmp_path / "gateway.yaml").write_text(json.dumps(settings))
    process = serve("--config", "gateway.yaml")
    await process.listening()

    assert loaded(process) & NEEDLESS.keys() == {"redis"}
