"""`turnout serve` as a process."""

import json
import signal
import socket
from collections.abc import AsyncIterator, Callable, Mapping
from pathlib import Path

import httpx2
import pytest

from engines.simulator import simulated
from gateway.cli import main
from tests.running import free_port
from tests.support.json_type import Json
from tests.support.process import Process
from tests.support.scripted import ScriptedEngine, reply
from tests.support.waiting import until

HELLO = [{"role": "user", "content": "Hello!"}]
Start = Callable[..., Process]


@pytest.fixture
async def serve(tmp_path: Path) -> AsyncIterator[Start]:
    """Starts `turnout serve` with a configuration, or with arguments only."""
    started: list[Process] = []

    def start(settings: Mapping[str, Json] | None, *arguments: str, **environment: str) -> Process:
        if settings is not None:
            (tmp_path / "gateway.yaml").write_text(json.dumps(settings))
            arguments = ("--config", "gateway.yaml", *arguments)
        process = Process(tmp_path, "serve", *arguments, environment=environment)
        started.append(process)
        return process

    yield start
    for process in started:
        process.kill()


def one_engine(url: str, **server: Json) -> dict[str, Json]:
    return {
        "server": {"port": 0, **server},
        "engines": {"e": {"kind": "vllm", "urls": [url], "api_key": "sk-very-secret"}},
        "models": {"m": {"engine": "e"}},
    }


async def test_it_serves_a_file_and_ends_with_code_0(serve: Start) -> None:
    """Port 0 takes a free port, which is printed; logs are JSON lines without the engine's key."""
    async with simulated("vllm", ["m"]) as url:
        process = serve(one_engine(url))
        port = await process.listening()
        async with httpx2.AsyncClient(base_url=f"http://127.0.0.1:{port}") as client:
            answer = await client.post("/v1/chat/completions", json={"model": "m", "messages": HELLO})
            listed = await client.get("/v1/models")
        process.interrupt(signal.SIGINT)
        code = await process.ended()

    assert answer.status_code == 200
    assert answer.json()["choices"][0]["message"]["content"]
    assert "server" not in answer.headers
    assert [model["id"] for model in listed.json()["data"]] == ["m"]
    assert code == 0
    assert process.stdout == f"turnout: listening on http://127.0.0.1:{port}\n"
    assert process.logged("endpoint is up")[0]["engine"] == "e"
    assert "sk-very-secret" not in process.stderr
    assert {line["level"] for line in process.logs} == {"info"}


async def test_engines_without_a_file_are_asked_for_their_models(serve: Start) -> None:
    """Chat and embedding models are told apart; an engine that starts later is added when it answers."""
    late = free_port()
    async with simulated("vllm", ["qwen", "minilm:embedding"]) as vllm, simulated("triton", ["llama"]) as triton:
        process = serve(
            None, "--port", "0", "--engine", f"vllm={vllm}", "--engine", f"triton={triton}", "--engine",
            f"vllm=http://127.0.0.1:{late}",
        )  # fmt: skip
        port = await process.listening()
        async with httpx2.AsyncClient(base_url=f"http://127.0.0.1:{port}") as client:
            assert await names(client) == ["qwen", "minilm", "llama"]
            vectors = await client.post("/v1/embeddings", json={"model": "minilm", "input": "x"})
            wrong = await client.post("/v1/chat/completions", json={"model": "minilm", "messages": HELLO})
            assert (await client.get("/readyz")).json()["status"] in {"ready", "degraded"}
            engine = await ScriptedEngine().start(late)
            try:
                engine.on("/v1/models", reply({"object": "list", "data": [{"id": "new", "object": "model"}]}))
                await until(lambda: bool(process.logged("models discovered")[1:]), what="the late engine's models")
                assert await names(client) == ["qwen", "minilm", "llama", "new"]
            finally:
                await engine.stop()

    assert vectors.status_code == 200
    assert wrong.status_code == 400
    assert wrong.json()["error"]["param"] == "model"


async def names(client: httpx2.AsyncClient) -> list[str]:
    return [model["id"] for model in (await client.get("/v1/models")).json()["data"]]


async def test_flags_win_over_the_file(serve: Start) -> None:
    process = serve(one_engine("http://127.0.0.1:9", port=1), "--port", "0")

    assert await process.listening() > 1


def test_a_port_in_use_is_one_line_and_code_1(capsys: pytest.CaptureFixture[str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        code = main(["serve", "--engine", "vllm=http://127.0.0.1:9", "--port", str(port)])

    assert code == 1
    said = capsys.readouterr()
    assert (said.out, said.err.count("\n")) == ("", 1)
    assert said.err.startswith(f"turnout: cannot listen on 127.0.0.1:{port}: Address already in use; ")


def test_a_wrong_file_is_told_as_check_tells_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    wrong = tmp_path / "wrong.yaml"
    wrong.write_text("engines:\n  e: {kind: vlm, urls: [http://h:1], api_key: sk-secret}\n")
    assert main(["check", str(wrong)]) == 2
    checked = capsys.readouterr()
    assert main(["serve", "--config", str(wrong)]) == 2

    assert capsys.readouterr() == checked
    assert 'did you mean "vllm"?' in checked.err
    assert "sk-secret" not in checked.err


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("--engine", "http://127.0.0.1:8000"), "expected KIND=URL"),
        (("--engine", "vlm=http://127.0.0.1:8000"), "vllm"),
        (("--engine", "vllm=127.0.0.1:8000"), "expected a URL with http:// or https://"),
        (("--engine", "vllm=http://127.0.0.1:8000", "--config", "x.yaml"), "not both"),
        (("--workers", "0", "--engine", "vllm=http://127.0.0.1:8000"), "workers"),
        (("--config", "missing.yaml"), "missing.yaml: no such file"),
        ((), "no configuration file"),
    ],
)
def test_wrong_arguments_are_one_line_and_code_2(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    arguments: tuple[str, ...],
    told: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("TURNOUT_CONFIG", raising=False)
    code = main(["serve", *arguments])
    out, err = capsys.readouterr()

    assert code == 2
    assert told in err
    assert len(err.splitlines()) == 1
    assert out == ""
