"""`turnout demo`."""

import asyncio
import logging
import socket
import sys
from contextlib import AsyncExitStack
from typing import Annotated, Final

import typer
import uvloop

from engines.profile import EngineKind
from engines.registry import profile
from engines.simulator import Pace, simulated
from gateway import logs
from gateway.app import create_app
from gateway.cli.failing import Failure
from gateway.cli.listening import bind
from gateway.cli.server import server_for
from gateway.settings import Server, Settings

USUAL_PORT: Final = 8080

PACE: Final = Pace(first_token=0.12, prefill=0.0002, inter_token=0.02, batch_slowdown=0.02, max_running=64)
"""About that of a small model on one GPU."""

SIMULATED: Final = {
    EngineKind.VLLM: ("qwen2.5-1.5b", "minilm:embedding"),
    EngineKind.TRTLLM: ("llama-3.2-3b",),
    EngineKind.TRITON: ("mistral-7b",),
}

MODELS: Final = {
    "qwen2.5-1.5b": {"engine": "vllm", "aliases": ["gpt-4o-mini"]},
    "llama-3.2-3b": {"engine": "trtllm"},
    "mistral-7b": {"engine": "triton"},
    "chat": {
        "targets": [
            {"engine": "vllm", "model": "qwen2.5-1.5b", "weight": 2},
            {"engine": "trtllm", "model": "llama-3.2-3b"},
            {"engine": "triton", "model": "mistral-7b"},
        ]
    },
    "minilm": {"engine": "vllm", "task": "embedding"},
}

GUIDE: Final = """\
Turnout demo. The three engines are simulated: no model runs, answers come from a script.

  base URL   {url}/v1
  engines    {engines}
  models     qwen2.5-1.5b (vLLM; alias gpt-4o-mini), llama-3.2-3b (trtllm-serve), mistral-7b (Triton),
             chat (one of these three), minilm (embeddings)

With curl:

  curl -N {url}/v1/chat/completions -H 'content-type: application/json' -d '{{"model": "gpt-4o-mini", "stream": true, \
"messages": [{{"role": "user", "content": "Tell me a story."}}]}}'

With the OpenAI SDK (pip install openai):

  from openai import OpenAI
  client = OpenAI(base_url="{url}/v1", api_key="none")
  print(client.chat.completions.create(model="chat", messages=[{{"role": "user", "content": "Hello!"}}]))

Where to look:

  status     {url}/
  readiness  {url}/readyz
  metrics    {url}/metrics
  OpenAPI    {url}/openapi.json

Ctrl-C ends all of it.
"""


def demo(
    port: Annotated[
        int | None,
        typer.Option(
            min=0, max=65535, help=f"The gateway's port; default: {USUAL_PORT}, or a free one if it is taken."
        ),
    ] = None,
) -> None:
    """Start three simulated engines and the gateway, and print what to try."""
    logs.configure(sys.stderr, logging.WARNING)
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        crashed = runner.run(_run(port))
    if crashed:
        raise typer.Exit(1)


async def _run(port: int | None) -> bool:
    """Everything lives in this process and this loop, so nothing can be left behind."""
    async with AsyncExitStack() as stack:
        urls = {
            kind: await stack.enter_async_context(simulated(kind, models, PACE)) for kind, models in SIMULATED.items()
        }
        engines = {kind.value: {"kind": kind, "urls": [url]} for kind, url in urls.items()}
        server = Server(port=port or 0, drain=5.0)
        sockets = _listen(server) if port is None else bind(server, hint="; --port 0 takes a free one")
        settings = Settings.model_validate({"server": server, "engines": engines, "models": MODELS})
        shown = "\n             ".join(f"{profile(kind).title:<14} {url}" for kind, url in urls.items())
        running = server_for(create_app(settings), lambda url: typer.echo(GUIDE.format(url=url, engines=shown)))
        await running.serve(sockets)
        return running.crashed


def _listen(server: Server) -> list[socket.socket]:
    try:
        return bind(server.model_copy(update={"port": USUAL_PORT}))
    except Failure:
        return bind(server)
