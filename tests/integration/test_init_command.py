"""`turnout init` as a process: from addresses to a file that `check` accepts and `serve` serves."""

import contextlib
import json
from collections.abc import Awaitable, Callable
from pathlib import Path

import httpx2
import pytest

from engines.simulator import simulated
from gateway.settings import Settings
from gateway.settings.advice import load_advised
from tests.running import free_port
from tests.support.json_type import Json
from tests.support.openai_bytes import EMBEDDINGS
from tests.support.process import Process
from tests.support.scripted import ScriptedEngine, Talk, reply

Run = Callable[..., Awaitable[Process]]
VECTOR = reply({"object": "list", "data": [{"index": 0, "embedding": [0.5]}]})


@pytest.fixture
async def run(tmp_path: Path, nothing_unheard: None) -> Run:
    async def turnout(*arguments: str, **environment: str) -> Process:
        process = Process(tmp_path, *arguments, environment=environment)
        await process.ended()
        return process

    return turnout


def written(tmp_path: Path, **environ: str) -> Settings:
    """The file as it was written; it has no warning either."""
    loaded = load_advised(tmp_path / "turnout.yaml", environ)
    assert loaded.warnings == ()
    return loaded.settings


def listing(*models: Json) -> bytes:
    return json.dumps({"object": "list", "data": list(models)}).encode()


async def test_three_engines_become_a_file_that_serves(run: Run, tmp_path: Path) -> None:
    """Kinds, models, tasks and tool formats are found; the file is accepted without a warning, and it works."""
    async with contextlib.AsyncExitStack() as stack:
        vllm, trtllm, triton, vectors = [
            await stack.enter_async_context(simulated(kind, [model]))
            for kind, model in (
                ("vllm", "Qwen/Qwen2.5-1.5B-Instruct"),
                ("trtllm", "meta-llama/Llama-3.1-8B-Instruct"),
                ("triton", "mistral"),
                ("vllm", "BAAI/bge-m3:embedding"),
            )
        ]
        done = await run("init", vllm, trtllm, triton, vectors)
        assert (done.popen.returncode, done.stdout) == (0, "")
        assert f"{vllm}: vLLM 0.32.0, Qwen/Qwen2.5-1.5B-Instruct (chat)\n" in done.stderr
        assert done.stderr.endswith(
            "wrote turnout.yaml. Next: turnout check turnout.yaml, turnout doctor turnout.yaml, turnout serve --config "
            "turnout.yaml\n"
        )
        assert (await run("check", "--strict", "turnout.yaml")).popen.returncode == 0

        settings = written(tmp_path)
        assert {name: engine.urls for name, engine in settings.engines.items()} == {
            "vllm": (vllm,),
            "trtllm": (trtllm,),
            "triton": (triton,),
            "vllm-2": (vectors,),
        }
        assert {name: (model.task, model.tools.format) for name, model in settings.models.items()} == {
            "Qwen/Qwen2.5-1.5B-Instruct": ("chat", "hermes"),
            "meta-llama/Llama-3.1-8B-Instruct": ("chat", "llama3_json"),
            "mistral": ("chat", "mistral_v11"),
            "BAAI/bge-m3": ("embedding", "auto"),
        }

        gateway = Process(tmp_path, "serve", "--config", "turnout.yaml", "--port", "0")
        stack.callback(gateway.kill)
        port = await gateway.listening()
        async with httpx2.AsyncClient(base_url=f"http://127.0.0.1:{port}") as client:
            asked = {"model": "mistral", "messages": [{"role": "user", "content": "Hello!"}]}
            assert (await client.post("/v1/chat/completions", json=asked)).status_code == 200


async def test_addresses_may_be_pasted_as_they_stand_elsewhere(run: Run, tmp_path: Path) -> None:
    async with simulated("vllm", ["m"]) as url:
        done = await run("init", f"{url.removeprefix('http://')}/v1/", url)
        assert done.popen.returncode == 0
    assert written(tmp_path).engines["vllm"].urls == (url,)


async def test_servers_with_the_same_models_are_replicas_and_names_for_one_model_are_aliases(
    run: Run, tmp_path: Path, engines: Callable[[], Awaitable[ScriptedEngine]]
) -> None:
    rows = [
        {"id": "qwen", "owned_by": "vllm", "root": "Qwen/Qwen3-8B", "parent": None, "max_model_len": 4096},
        {"id": "gpt-4o", "owned_by": "vllm", "root": "Qwen/Qwen3-8B", "parent": None},
        {"id": "sql", "owned_by": "vllm", "root": "/lora/sql", "parent": "qwen"},
    ]
    one, two, three = [await engines() for _ in range(3)]
    for engine in (one, two):
        engine.on("/v1/models", reply(listing(*rows)))
    three.on("/v1/models", reply(listing({"id": "qwen", "owned_by": "tensorrt_llm"})))
    done = await run("init", one.url, two.url, three.url)
    assert done.popen.returncode == 0, done.stderr
    settings = written(tmp_path)
    assert settings.engines["vllm"].urls == (one.url, two.url)
    assert [target.engine for target in settings.models["qwen"].targets] == ["vllm", "trtllm"]
    assert settings.models["qwen"].aliases == ("gpt-4o",)
    assert settings.models["qwen"].tools.format == "hermes"
    assert "# A LoRA adapter of qwen." in (tmp_path / "turnout.yaml").read_text()


async def test_the_rust_frontend_is_recognised_and_told(run: Run, tmp_path: Path, engine: ScriptedEngine) -> None:
    engine.on("/version", reply({"version": "0.32.0", "rust_frontend_version": "0.1.0"}))
    engine.on("/v1/models", reply(listing({"id": "m", "owned_by": "vllm-frontend-rs"})))
    assert (await run("init", engine.url)).popen.returncode == 0
    assert "# vLLM 0.32.0, Rust frontend: " in (tmp_path / "turnout.yaml").read_text()


async def test_a_tokenizer_on_this_machine_tells_the_format(run: Run, tmp_path: Path, engine: ScriptedEngine) -> None:
    """It is a better sign than the name."""
    folder = tmp_path / "qwen"
    folder.mkdir()
    (folder / "chat_template.jinja").write_text("…<function={{ name }}><parameter={{ key }}>…")
    engine.on("/v1/models", reply(listing({"id": "qwen", "owned_by": "vllm", "root": str(folder), "parent": None})))
    assert (await run("init", engine.url)).popen.returncode == 0
    assert written(tmp_path).models["qwen"].tools.format == "qwen3_xml"
    assert "a guess, by its chat template" in (tmp_path / "turnout.yaml").read_text()


@pytest.mark.parametrize("answer", [VECTOR, reply(b"", status=400)])
async def test_embeddings_on_triton_are_tried(run: Run, tmp_path: Path, engine: ScriptedEngine, answer: Json) -> None:
    """Only Triton's vLLM backend has them, and nothing but an answer shows it."""
    owner = "Triton Inference Server"
    engine.on("/v1/models", reply(listing({"id": "e5-base", "owned_by": owner}, {"id": "llama", "owned_by": owner})))
    engine.on(EMBEDDINGS, answer)
    assert (await run("init", engine.url)).popen.returncode == 0
    settings, has = written(tmp_path), answer is VECTOR
    assert settings.engines["triton"].embeddings is has
    assert {name: model.task for name, model in settings.models.items()} == (
        {"e5-base": "embedding", "llama": "chat"} if has else {"llama": "chat"}
    )


async def test_a_key_stays_out_of_the_file(run: Run, tmp_path: Path, engine: ScriptedEngine) -> None:
    """It is shown to those that ask for one, and to nobody else."""
    shown: list[bytes | None] = []

    async def guarded(talk: Talk) -> None:
        shown.append(talk.request.header("authorization"))
        right = shown[-1] == b"Bearer sk-marked"
        models = listing({"id": "m", "owned_by": "vllm"})
        await (reply(models) if right else reply({"error": "Unauthorized"}, status=401))(talk)

    engine.on("/v1/models", guarded)
    done = await run("init", engine.url)
    assert (done.popen.returncode, (tmp_path / "turnout.yaml").exists()) == (1, False)
    assert "vllm asks for a key (put it into an environment variable, and give --key VARIABLE)" in done.stderr

    done = await run("init", engine.url, "--key", "QWEN_KEY", QWEN_KEY="sk-wrong")
    assert "vllm does not take the key (use the key that it was started with)" in done.stderr
    done = await run("init", engine.url, "--key", "sk-marked")
    assert "--key: no environment variable of that name is set (it takes the name of the variable" in done.stderr
    assert "marked" not in done.stderr + done.stdout

    shown.clear()
    done = await run("init", engine.url, "--key", "QWEN_KEY", QWEN_KEY="sk-marked")
    assert (done.popen.returncode, shown[0]) == (0, None)
    text = (tmp_path / "turnout.yaml").read_text()
    assert "api_key: ${QWEN_KEY}" in text
    assert "marked" not in text + done.stderr + done.stdout
    assert written(tmp_path, QWEN_KEY="x").engines["vllm"].api_key is not None


async def test_what_is_no_engine_is_explained_and_nothing_is_written(
    run: Run, tmp_path: Path, engines: Callable[[], Awaitable[ScriptedEngine]]
) -> None:
    nobody, (kserve, other, page) = f"http://127.0.0.1:{free_port()}", [await engines() for _ in range(3)]
    kserve.on("/v2/health/live", reply(b""))
    kserve.on("/v1/models", reply(b"", status=404))
    other.on("/v1/models", reply(listing({"id": "m", "owned_by": "library"})))
    page.on("/v1/models", reply(b"<html>", content_type=b"text/html"))
    async with simulated("vllm", ["m"]) as url:
        done = await run("init", nobody, kserve.url, other.url, page.url, url)
        assert done.popen.returncode == 1
        assert done.stderr.splitlines() == [
            f"{nobody}: nobody listens at its address (start the engine, or leave this address out)",
            (
                f"{kserve.url}: Triton's own HTTP port, which has no OpenAI paths (start its OpenAI frontend "
                "(openai_frontend/main.py), usually on port 9000)"
            ),
            (
                f"{other.url}: a server whose models are owned by 'library' (give the address of vLLM, trtllm-serve or "
                "Triton's OpenAI frontend, without /v1)"
            ),
            (
                f"{page.url}: a server that is not recognised (give the address of vLLM, trtllm-serve or Triton's "
                "OpenAI frontend, without /v1)"
            ),
            f"{url}: vLLM 0.32.0, m (chat)",
            "turnout: not every address is an engine's, so that nothing is written: --skip leaves the others out",
        ]
        assert not (tmp_path / "turnout.yaml").exists()
        done = await run("init", nobody, url, "--skip")
        assert done.popen.returncode == 0
        assert list(written(tmp_path).engines) == ["vllm"]


async def test_a_file_that_exists_is_left_alone(run: Run, tmp_path: Path) -> None:
    """Even the link to one that does not."""
    (tmp_path / "turnout.yaml").write_text("mine")
    async with simulated("vllm", ["m"]) as url:
        done = await run("init", url)
        assert done.popen.returncode == 1
        assert done.stderr == "turnout: turnout.yaml exists: --force overwrites it, --out FILE writes another one\n"
        assert (tmp_path / "turnout.yaml").read_text() == "mine"
        assert (await run("init", url, "--force")).popen.returncode == 0
        assert "m" in written(tmp_path).models
        printed = await run("init", url, "--out", "-")
        assert printed.stdout == (tmp_path / "turnout.yaml").read_text()


async def test_editors_find_the_schema_where_it_is_near(run: Run, tmp_path: Path) -> None:
    (tmp_path / "config").mkdir()
    (tmp_path / "config" / "turnout.schema.json").write_text("{}")
    async with simulated("vllm", ["m"]) as url:
        for out, line in (
            ("turnout.yaml", "# yaml-language-server: $schema=config/turnout.schema.json"),
            ("config/my.yaml", "# yaml-language-server: $schema=turnout.schema.json"),
        ):
            assert (await run("init", url, "--out", out)).popen.returncode == 0
            assert (tmp_path / out).read_text().splitlines()[0] == line


async def test_a_place_where_no_file_can_be_is_told_before_anybody_is_asked(run: Run, tmp_path: Path) -> None:
    """The message names the place that was given, never a temporary file beside it."""
    done = await run("init", "--out", str(tmp_path), "--force")
    assert done.popen.returncode == 1
    assert f"{tmp_path} is a directory: --out names the file to write, such as {tmp_path}/turnout.yaml" in done.stderr
    nowhere = tmp_path / "nonexistent" / "x.yaml"
    done = await run("init", "--out", str(nowhere))

    assert done.popen.returncode == 1
    assert done.stderr == f"turnout: {nowhere} cannot be written: there is no directory {nowhere.parent}\n"


async def test_a_file_that_cannot_be_written_is_named_as_it_was_given(run: Run, engine: ScriptedEngine) -> None:
    engine.on("/v1/models", reply(listing({"id": "m", "owned_by": "vllm"})))
    done = await run("init", engine.url, "--out", "/proc/x.yaml")

    assert done.popen.returncode == 1
    assert "turnout: /proc/x.yaml cannot be written: " in done.stderr
    assert ".new" not in done.stderr
