"""Simulated engines: servers that speak as vLLM, trtllm-serve and Triton's OpenAI frontend do on the wire.

They are for demos, tests and load tests. They are not engines: no model runs, answers come from a fixed script, and
tokens are counted by a rough rule. How they speak follows recordings of the real servers (trtllm-serve: of its
transcribed request and answer code) and is held to them by the contract tests.

    engine = build_app("vllm", [SimulatedModel("qwen")], pace=Pace(inter_token=0.01))   # an ASGI application
    async with simulated("triton", ["llama"]) as url: ...                                # listens on a free port
    running = await start(engine); running.url; running.faults = Faults(die_after=3); await running.stop()
"""

from engines.simulator.app import SimulatedEngine
from engines.simulator.build import build_app, default_models, default_port, serve, serve_app, simulated
from engines.simulator.load import Load
from engines.simulator.markup import Markup
from engines.simulator.models import SimulatedModel, Task, parse_model
from engines.simulator.pace import NO_FAULTS, Faults, Pace
from engines.simulator.script import Answer, Call, Script, Thought, Turn, tiny_script
from engines.simulator.server import RunningEngine, listening, start
from engines.simulator.wire import Request

__all__ = [
    "NO_FAULTS",
    "Answer",
    "Call",
    "Faults",
    "Load",
    "Markup",
    "Pace",
    "Request",
    "RunningEngine",
    "Script",
    "SimulatedEngine",
    "SimulatedModel",
    "Task",
    "Thought",
    "Turn",
    "build_app",
    "default_models",
    "default_port",
    "listening",
    "parse_model",
    "serve",
    "serve_app",
    "simulated",
    "start",
    "tiny_script",
]
