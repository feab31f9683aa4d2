"""`turnout doctor` on a real vLLM: nothing is found where all is well, and what is planted is."""

import contextlib
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.conftest import PATIENCE, Engine
from tests.e2e.serve_vllm import CHAT_MODEL, CONTEXT, EMBEDDING_MODEL, serve
from tests.running import LOOPBACK, answers, eventually, free_port

pytestmark = pytest.mark.e2e


def doctor(folder: Path, text: str) -> tuple[int, list[dict[str, Any]]]:
    """The exit code and the findings."""
    (folder / "turnout.yaml").write_text(text)
    command = [sys.executable, "-m", "gateway", "doctor", "turnout.yaml", "--json", "--results", "results"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=120, check=False)
    assert done.stderr == ""
    return done.returncode, json.loads(done.stdout)["findings"]


@contextlib.contextmanager
def started(*flags: str) -> Iterator[str]:
    """A further vLLM with flags of its own; its URL."""
    port = free_port()
    process = serve(CHAT_MODEL, port, "--max-model-len", str(CONTEXT), *flags)
    try:
        url = f"http://{LOOPBACK}:{port}"
        assert eventually(lambda: answers(f"{url}/health") or process.poll() is not None, PATIENCE, pause=0.5)
        assert process.poll() is None
        yield url
    finally:
        process.terminate()
        process.wait(60)


def one(findings: list[dict[str, Any]], check: str, model: str = "") -> dict[str, Any]:
    (found,) = [finding for finding in findings if (finding["check"], finding["model"]) == (check, model)]
    return found


def test_nothing_is_found_where_all_is_well(engine: Engine, tmp_path: Path) -> None:
    """Chat with the engine's parser and with ours, embeddings, ranking; warnings count too."""
    text = f"""\
engines:
  chat: {{kind: vllm, urls: [{engine.chat_url}]}}
  embedder: {{kind: vllm, urls: [{engine.embedding_url}]}}
models:
  {CHAT_MODEL}: {{engine: chat, context: {CONTEXT}}}
  raw: {{engine: chat, model: {CHAT_MODEL}, tools: {{format: hermes, parse: gateway}}}}
  {EMBEDDING_MODEL}: {{engine: embedder, task: embedding}}
  ranker: {{engine: embedder, model: {EMBEDDING_MODEL}, task: rerank}}
"""
    assert doctor(tmp_path, text) == (0, [])


def test_mistakes_of_the_file_are_found(engine: Engine, tmp_path: Path) -> None:
    text = f"""\
engines:
  chat: {{kind: vllm, urls: [{engine.chat_url}]}}
  triton: {{kind: triton, urls: [{engine.chat_url}]}}
models:
  wrong-format: {{engine: chat, model: {CHAT_MODEL}, tools: {{format: mistral, parse: gateway}}}}
  too-long: {{engine: chat, model: {CHAT_MODEL}, context: 8192}}
  misspelt: {{engine: chat, model: tiny-chatt}}
  no-vectors: {{engine: chat, model: {CHAT_MODEL}, task: embedding}}
  thoughts: {{engine: chat, model: {CHAT_MODEL}, reasoning: {{format: 'off'}}}}
"""
    code, findings = doctor(tmp_path, text)
    fixes = {(finding["check"], finding["model"]): finding["fix"] for finding in findings}
    assert code == 1
    assert fixes.pop(("tool_format", "wrong-format")) == "turnout.yaml:5: models.wrong-format.tools.format: hermes"
    assert "--max-model-len 8192" in fixes.pop(("context", "too-long"))
    assert fixes.pop(("model", "misspelt")) == f"turnout.yaml:7: models.misspelt.model: {CHAT_MODEL}"
    assert "leave out turnout.yaml:8: models.no-vectors.task" in fixes.pop(("inference", "no-vectors"))
    assert fixes.pop(("reasoning", "thoughts")) == "turnout.yaml:9: models.thoughts.reasoning.format: auto"
    assert fixes.pop(("kind", "")) == "turnout.yaml:3: engines.triton.kind: vllm"
    assert fixes == {}


def test_a_vllm_without_tool_parser_is_found(engine: Engine, tmp_path: Path) -> None:
    """It is the only finding, and it goes away when the file says so: forced calls go by a schema then."""
    with started() as url:
        text = f"engines: {{e: {{kind: vllm, urls: [{url}]}}}}\nmodels: {{m: {{engine: e, model: {CHAT_MODEL}}}}}\n"
        code, (finding,) = doctor(tmp_path, text)
        assert (code, finding["check"], finding["level"]) == (0, "tool_calls", "warning")
        assert "--enable-auto-tool-choice --tool-call-parser hermes" in finding["fix"]
        said = text.replace("]}", "], parser: none}", 1).replace(CHAT_MODEL, f"{CHAT_MODEL}, tools: {{format: hermes}}")
        assert doctor(tmp_path, said) == (0, [])


def test_a_wrong_parser_and_a_key_are_found(engine: Engine, tmp_path: Path) -> None:
    with started("--enable-auto-tool-choice", "--tool-call-parser", "pythonic", "--api-key", "right") as url:
        text = f"""\
engines:
  none: {{kind: vllm, urls: [{url}]}}
  wrong: {{kind: vllm, urls: [{url}], api_key: wrong}}
  right: {{kind: vllm, urls: [{url}], api_key: right}}
models:
  m: {{engine: right, model: {CHAT_MODEL}}}
  strict: {{engine: right, model: {CHAT_MODEL}, tools: {{parse: engine}}}}
"""
        code, findings = doctor(tmp_path, text)
    assert code == 1
    assert [(finding["engine"], finding["check"], finding["level"]) for finding in findings] == [
        ("none", "key", "error"),
        ("wrong", "key", "error"),
        ("right", "open_paths", "warning"),
        ("right", "tool_calls", "warning"),
        ("right", "tool_calls", "error"),
    ]
    assert "turnout.yaml:2: engines.none.api_key" in findings[0]["fix"]
    assert "--tool-call-parser hermes" in one(findings, "tool_calls", "strict")["fix"]
    assert "/invocations, /tokenize" in one(findings, "open_paths")["evidence"]
