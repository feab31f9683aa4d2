"""`turnout doctor` finds what is wrong with live engines, and names the flag or the line that mends it."""

import asyncio
import json
import ssl
import subprocess
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from itertools import permutations
from pathlib import Path

import pytest

from engines.profile import EngineKind
from engines.simulator import Pace, SimulatedModel, build_app
from engines.simulator.models import Task
from engines.simulator.pace import Faults
from engines.simulator.server import RunningEngine, listening
from engines.simulator.wire import Request
from gateway.doctor.asker import Patience
from gateway.doctor.finding import Level
from tests.integration.doctor import Doctor, engine, examination
from tests.running import free_port
from tests.support.bent import Bent, Change
from tests.support.scripted import ScriptedEngine, Talk, reply, whole

SLOW = Pace(inter_token=0.02)
CHAT = SimulatedModel("m")
SHORT = Patience(answer=0.3, leaving=0.3, idle=0.1)


@pytest.fixture
def doctor(tmp_path: Path) -> Doctor:
    return Doctor(tmp_path)


def vllm(url: str, model: str = "{}", more: str = "", name: str = "m") -> str:
    return f"engines:\n  e: {{kind: vllm, urls: [{url}]{more}}}\nmodels:\n  {name}: {merged(model)}\n"


def merged(model: str) -> str:
    return "{engine: e" + (", " + model[1:-1] if model != "{}" else "") + "}"


def other(kind: str, url: str, model: str = "{}", more: str = "") -> str:
    return vllm(url, model, more).replace("kind: vllm", f"kind: {kind}")


def bent(change: Change, model: SimulatedModel = CHAT) -> AbstractAsyncContextManager[RunningEngine]:
    return listening(Bent(EngineKind.VLLM, [model], change))


# ---- good set-ups


async def test_nothing_is_found_on_good_set_ups_of_all_three_kinds(doctor: Doctor) -> None:
    """Nor where a file leaves to the gateway what the engine does not do, and says so."""
    async with (
        engine("vllm", "qwen", "minilm:embedding", pace=SLOW) as first,
        engine("trtllm", "llama", pace=SLOW) as second,
        engine("triton", SimulatedModel("mistral", default_tokens=4096), pace=SLOW) as third,
        engine("vllm", "plain:noparser", pace=SLOW) as fourth,
    ):
        found = await doctor(
            f"""\
engines:
  v: {{kind: vllm, urls: [{first}]}}
  t: {{kind: trtllm, urls: [{second}], parser: qwen3, guided_decoding: true}}
  r: {{kind: triton, urls: [{third}], parser: llama3}}
  n: {{kind: vllm, urls: [{fourth}], parser: none}}
models:
  qwen: {{engine: v, context: 4096}}
  qwen-by-format: {{engine: v, model: qwen, tools: {{format: hermes}}}}
  minilm: {{engine: v, task: embedding}}
  ranker: {{engine: v, task: rerank, model: minilm}}
  llama: {{engine: t}}
  mistral: {{engine: r}}
  plain: {{engine: n, tools: {{format: hermes}}}}
"""
        )
    assert found == []


async def test_an_engine_with_a_reasoning_parser_and_a_model_that_thinks_is_good(doctor: Doctor) -> None:
    async with engine("trtllm", SimulatedModel("m", reasoning="qwen3")) as url:
        found = await doctor(other("trtllm", url, more=", parser: qwen3, guided_decoding: true"))
    assert [finding for finding in found if finding.level is Level.ERROR] == []


# ---- the way to it


async def test_an_engine_that_is_down_is_named_with_its_address(doctor: Doctor) -> None:
    finding = await doctor.only(vllm(f"http://127.0.0.1:{free_port()}"), "reachable")
    assert (finding.level, finding.engine) == (Level.ERROR, "e")
    assert "nobody listens" in finding.evidence
    assert "start the engine" in finding.fix
    assert "turnout.yaml:2: engines.e.urls[0]" in finding.fix


async def test_a_host_without_address_and_a_port_that_speaks_no_http_are_told_apart(doctor: Doctor) -> None:
    finding = await doctor.only(vllm("http://no-such-host.invalid:8000"), "reachable")
    assert "resolved" in finding.evidence or "in time" in finding.evidence  # where no name server answers
    async with await asyncio.start_server(lambda _, writer: writer.close(), "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        finding = await doctor.only(vllm(f"http://127.0.0.1:{port}"), "reachable")
        assert "no HTTP answer" in finding.evidence


async def test_an_engine_that_is_not_ready_is_told_from_one_that_is_down(doctor: Doctor) -> None:
    async with engine("vllm", "m", faults=Faults(unhealthy=True)) as url:
        finding = await doctor.only(vllm(url), "reachable")
    assert "not ready" in finding.evidence
    assert "503" in finding.evidence


# ---- TLS


@pytest.fixture(scope="module")
def certify(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str, int], Path]:
    """Makes a certificate that is its own authority: for a name, and so many days."""

    def make(name: str, days: int) -> Path:
        folder = tmp_path_factory.mktemp("tls")
        pem, key = folder / "engine.pem", folder / "engine.key"
        command = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
        command += ["-days", str(days), "-subj", "/CN=engine", "-addext", f"subjectAltName={name}"]
        subprocess.run([*command, "-keyout", str(key), "-out", str(pem)], check=True, capture_output=True)
        pem.write_bytes(pem.read_bytes() + key.read_bytes())
        return pem

    return make


async def behind_tls(pem: Path) -> asyncio.Server:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(pem)

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(whole(b""))
        await writer.drain()
        writer.close()

    return await asyncio.start_server(answer, "127.0.0.1", 0, ssl=context)


def secured(server: asyncio.Server, host: str = "127.0.0.1") -> str:
    return vllm(f"https://{host}:{server.sockets[0].getsockname()[1]}")


async def test_a_certificate_nobody_vouches_for_is_found_with_the_variable_that_mends_it(
    doctor: Doctor, certify: Callable[[str, int], Path]
) -> None:
    async with await behind_tls(certify("IP:127.0.0.1", 30)) as server:
        finding = await doctor.only(secured(server), "tls")
    assert finding.level is Level.ERROR
    assert "self-signed certificate" in finding.evidence
    assert "SSL_CERT_FILE=" in finding.fix


async def test_a_certificate_for_another_name_and_one_that_ends_soon_are_found(
    doctor: Doctor, certify: Callable[[str, int], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    pem = certify("DNS:engine.internal", 30)
    monkeypatch.setenv("SSL_CERT_FILE", str(pem))
    async with await behind_tls(pem) as server:
        finding = await doctor.only(secured(server), "tls")
        assert "use a name that the certificate has" in finding.fix
    pem = certify("IP:127.0.0.1", 5)
    monkeypatch.setenv("SSL_CERT_FILE", str(pem))
    async with await behind_tls(pem) as server:
        finding = await doctor.one(secured(server), "tls")
    assert (finding.level, "ends in 4 days" in finding.evidence) == (Level.WARNING, True)


async def test_the_certificate_of_an_address_has_to_name_the_name(
    tmp_path: Path, certify: Callable[[str, int], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The address was found by its name, and the name is what a client asks the certificate for."""
    pem = certify("DNS:engine.internal", 30)
    monkeypatch.setenv("SSL_CERT_FILE", str(pem))
    async with await behind_tls(pem) as server:
        url = f"dns+https://engine.internal:{server.sockets[0].getsockname()[1]}"
        ready = examination(tmp_path / "turnout.yaml", vllm(url))
        ready.addresses = {url: ["127.0.0.1"]}
        found = (await ready.run()).findings
    assert {"tls", "reachable"} & {finding.check for finding in found} == set()


async def test_http_to_a_port_that_speaks_tls_and_the_other_way_round_are_found(
    doctor: Doctor, certify: Callable[[str, int], Path]
) -> None:
    async with engine("vllm", "m") as url:
        finding = await doctor.only(vllm(url.replace("http:", "https:")), "reachable")
    assert "http:// instead of https://" in finding.fix


# ---- who is there


@pytest.mark.parametrize(("real", "said"), [*permutations(["vllm", "trtllm", "triton"], 2)])
async def test_another_kind_than_the_file_says_is_the_only_finding(doctor: Doctor, real: str, said: str) -> None:
    async with engine(real, "m") as url:
        finding = await doctor.only(other(said, url), "kind")
    assert finding.level is Level.ERROR
    assert finding.fix == f"turnout.yaml:2: engines.e.kind: {real}"


async def test_a_server_that_is_no_engine_is_noticed(doctor: Doctor) -> None:
    async with ScriptedEngine() as scripted:
        found = await doctor(vllm(scripted.url))
    assert {"kind", "inference"} <= {finding.check for finding in found}


async def test_each_address_of_a_name_is_examined_under_that_name(tmp_path: Path) -> None:
    """The name is in the Host header, and findings tell the addresses apart."""
    hosts: list[str] = []
    app = build_app(EngineKind.VLLM, ["m"], observer=lambda request: hosts.append(request.header(b"host")))
    async with listening(app) as running:
        url = f"dns+http://engines.test:{running.port}"
        ready = examination(tmp_path / "turnout.yaml", vllm(url))
        ready.addresses = {url: ["127.0.0.1", "127.0.0.2"]}
        found = (await ready.run()).findings
    assert set(hosts) == {f"engines.test:{running.port}"}
    assert [finding.check for finding in found] == ["reachable"]  # the engine is at the first address only
    assert f"http://engines.test:{running.port} (127.0.0.2) gives no answer" in found[0].evidence


async def test_replicas_of_different_versions_are_told(doctor: Doctor) -> None:
    old = '{"version":"0.11.0"}'

    def older(path: str, body: bytes) -> bytes:
        return old.encode() if path == "/version" else body

    async with engine("vllm", "m") as new, bent(older) as running:
        finding = await doctor.one(vllm(f"{new}, {running.url}"), "version")
    assert "0.11.0, 0.32.0" in finding.evidence


# ---- keys


async def test_a_wrong_key_is_found_and_never_shown(doctor: Doctor) -> None:
    async with engine("vllm", "m", keys=["right-secret"]) as url:
        finding = await doctor.only(vllm(url, more=", api_key: wrong-secret"), "key")
    assert finding.level is Level.ERROR
    assert "turnout.yaml:2: engines.e.api_key" in finding.fix
    assert "--api-key" in finding.fix
    assert "secret" not in finding.evidence + finding.fix


async def test_a_missing_key_is_found(doctor: Doctor) -> None:
    async with engine("vllm", "m", keys=["right"]) as url:
        finding = await doctor.only(vllm(url), "key")
    assert "asks for a key" in finding.evidence
    assert "engines.e.api_key: ${ENGINE_KEY}" in finding.fix


async def test_paths_that_a_key_does_not_guard_are_named(doctor: Doctor) -> None:
    async with engine("vllm", "m", keys=["right"]) as url:
        finding = await doctor.only(vllm(url, more=", api_key: right"), "open_paths")
    assert "/invocations, /tokenize" in finding.evidence
    assert finding.level is Level.WARNING


@pytest.mark.parametrize("kind", ["vllm", "trtllm"])
async def test_an_engine_that_answers_without_the_key_is_found(doctor: Doctor, kind: str) -> None:
    async with engine(kind, "m") as url:
        finding = await doctor.one(other(kind, url, more=", api_key: unneeded"), "key")
    assert finding.level is Level.WARNING
    assert "--api-key" in finding.fix or kind == "trtllm"


async def test_the_header_that_triton_wants_its_key_in_is_named(doctor: Doctor) -> None:
    """For its list of models and for inference; with both right nothing is found."""
    keys = ["model-repository:x-key:v", "inference:x-key:v"]
    model = SimulatedModel("m", default_tokens=999)
    async with engine("triton", model, keys=keys) as url:
        finding = await doctor.only(other("triton", url), "key")
        assert "engines.e.api_key_header: x-key, and turnout.yaml:2: engines.e.api_key: ${ENGINE_KEY}" in finding.fix
        finding = await doctor.only(other("triton", url, more=", api_key: w, api_key_header: x-key"), "key")
        assert "refuses the key in the header 'x-key'" in finding.evidence
        assert await doctor(other("triton", url, more=", api_key: v, api_key_header: x-key")) == []
    async with engine("triton", model, keys=keys[1:]) as url:
        finding = await doctor.only(other("triton", url), "inference")
        assert "engines.e.api_key_header: x-key" in finding.fix


# ---- models


async def test_a_wrong_model_name_is_found_with_the_one_that_was_meant(doctor: Doctor) -> None:
    async with engine("vllm", "Qwen/Qwen2.5-1.5B-Instruct") as url:
        finding = await doctor.only(vllm(url, "{model: qwen2.5-1.5b-instruct}"), "model")
    assert finding.level is Level.ERROR
    assert "does not list 'qwen2.5-1.5b-instruct'" in finding.evidence
    assert finding.fix == "turnout.yaml:4: models.m.model: Qwen/Qwen2.5-1.5B-Instruct"


async def test_trtllm_takes_any_name_so_that_a_wrong_one_is_a_warning(doctor: Doctor) -> None:
    async with engine("trtllm", "llama-3.1-8b") as url:
        text = other("trtllm", url, "{model: llama}", ", parser: qwen3, guided_decoding: true")
        found = await doctor(text)
    assert [(finding.check, finding.level) for finding in found if finding.check == "model"] == [
        ("model", Level.WARNING)
    ]


async def test_an_adapter_that_is_not_loaded_is_found_with_its_flags(doctor: Doctor) -> None:
    async with engine("vllm", SimulatedModel("qwen", adapters=("sql-lora",))) as url:
        assert await doctor(vllm(url, "{model: sql-lora}")) == []
        finding = await doctor.only(vllm(url, "{model: law-lora}"), "model")
    assert "--enable-lora --lora-modules law-lora=" in finding.fix
    async with engine("triton", SimulatedModel("llama", default_tokens=999)) as url:
        finding = await doctor.only(other("triton", url, "{model: llama_lora_sql}"), "model")
    assert "--lora-separator _lora_" in finding.fix


async def test_a_context_that_is_promised_too_long_is_found(doctor: Doctor) -> None:
    async with engine("vllm", SimulatedModel("m", max_length=4096)) as url:
        finding = await doctor.only(vllm(url, "{context: 32768}"), "context")
    assert "promises a context of 32768 tokens, and the engine has 4096" in finding.evidence
    assert "models.m.context: 4096, or start the engine with --max-model-len 32768" in finding.fix


# ---- inference


async def test_a_model_that_is_listed_and_never_answers_is_found(doctor: Doctor) -> None:
    async with engine("vllm", "m", faults=Faults(never_answer=True)) as url:
        finding = await doctor.only(vllm(url), "inference", SHORT)
    assert finding.level is Level.ERROR
    assert "no answer within 0.3 s" in finding.evidence


async def test_a_model_that_fails_is_found_with_the_engines_words(doctor: Doctor) -> None:
    async with engine("vllm", "m", faults=Faults(status=500)) as url:
        finding = await doctor.only(vllm(url), "inference")
    assert "status 500: " in finding.evidence


async def test_an_answer_with_nothing_in_it_is_found(doctor: Doctor) -> None:
    def swallow(path: str, body: bytes) -> bytes:
        return body.replace(b'"content":"Hello! How can I help you today?"', b'"content":""')

    async with bent(swallow) as running:
        finding = await doctor.only(vllm(running.url), "inference")
    assert "empty answer" in finding.evidence


@pytest.mark.parametrize("kind", ["vllm", "triton"])
async def test_an_embedding_route_to_a_chat_model_is_found(doctor: Doctor, kind: str) -> None:
    more = ", embeddings: true" if kind == "triton" else ""
    async with engine(kind, "m") as url:
        finding = await doctor.only(other(kind, url, "{task: embedding}", more), "inference")
    assert "is it a chat model?" in finding.evidence
    assert "leave out turnout.yaml:" in finding.fix


@pytest.mark.parametrize("kind", ["vllm", "triton"])
async def test_a_chat_route_to_an_embedding_model_is_found(doctor: Doctor, kind: str) -> None:
    async with engine(kind, "m:embedding") as url:
        finding = await doctor.only(other(kind, url), "inference")
    assert "is it an embedding model?" in finding.evidence
    assert "models.m.task: embedding" in finding.fix


async def test_vectors_that_differ_in_base64_or_are_not_of_unit_length_are_found(doctor: Doctor) -> None:
    def lengthen(path: str, body: bytes) -> bytes:
        if path != "/v1/embeddings":
            return body
        answer = json.loads(body)
        row = answer["data"][0]
        row["embedding"] = [3 * one for one in row["embedding"]] if isinstance(row["embedding"], list) else "AAAA"
        return json.dumps(answer).encode()

    async with bent(lengthen, SimulatedModel("m", Task.EMBEDDING)) as running:
        found = await doctor(vllm(running.url, "{task: embedding}"))
    assert [(finding.check, finding.level) for finding in found] == [
        ("embeddings", Level.ERROR),
        ("embeddings", Level.WARNING),
    ]
    assert "base64" in found[0].evidence
    assert "length 3.000" in found[1].evidence


# ---- streams and limits


async def test_a_stream_without_the_usage_that_was_asked_for_is_found(doctor: Doctor) -> None:
    def without(path: str, body: bytes) -> bytes:
        return b": \n\n" if b'"choices":[],' in body else body

    async with bent(without) as running:
        finding = await doctor.only(vllm(running.url), "stream")
    assert "no usage" in finding.evidence


@pytest.mark.parametrize("only", [None, 3], ids=["always", "once"])
async def test_a_stream_that_repeats_what_it_has_said_is_found(doctor: Doctor, only: int | None) -> None:
    said: list[str] = []

    def so_far(path: str, body: bytes) -> bytes:
        if not body.startswith(b"data: {"):
            return body
        event = json.loads(body[6:])
        for choice in event["choices"]:
            said.append(choice["delta"].get("content") or "")
            if only is None or len(said) == only:
                choice["delta"]["content"] = "".join(said)
        return b"data: " + json.dumps(event).encode() + b"\n\n"

    async with bent(so_far) as running:
        finding = await doctor.one(vllm(running.url), "stream")
    assert "whole text so far" in finding.evidence


async def test_a_stop_reason_that_hides_the_limit_is_found(doctor: Doctor) -> None:
    def stop(path: str, body: bytes) -> bytes:
        return body.replace(b'"finish_reason":"length"', b'"finish_reason":"stop"')

    async with bent(stop) as running:
        finding = await doctor.one(vllm(running.url), "stop_reason")
    assert "'stop' instead of 'length'" in finding.evidence


async def test_tritons_default_of_16_tokens_is_found_with_its_flag(doctor: Doctor) -> None:
    async with engine("triton", "m") as url:
        finding = await doctor.only(other("triton", url), "default_tokens")
    assert "stops after 16 tokens" in finding.evidence
    assert "--default-max-tokens 4096" in finding.fix


async def test_an_engine_that_works_on_for_clients_that_left_is_found(doctor: Doctor) -> None:
    """Its gauge goes up with the long story, and does not come down; before the question it was down."""
    running = [b"0"]

    def gauge(path: str, body: bytes) -> bytes:
        return b"vllm:num_requests_running{} " + running[-1] + b"\n" if path == "/metrics" else body

    def count(request: Request) -> None:
        if b'"max_tokens":128' in request.body:
            running.append(b"1")

    async with listening(Bent(EngineKind.VLLM, [SimulatedModel("m")], gauge, count)) as bending:
        finding = await doctor.one(vllm(bending.url), "disconnect", Patience(answer=5, leaving=0.3, idle=0.1))
        assert "still counts as running" in finding.evidence
        # Now it was busy before, perhaps for others: nothing can be said.
        assert await doctor(vllm(bending.url), SHORT) == []


# ---- manners


async def test_a_clock_that_is_off_is_found(doctor: Doctor) -> None:
    async with ScriptedEngine() as scripted:
        scripted.on("/health", reply(b"", headers=[b"date: Tue, 01 Jan 2019 00:00:00 GMT"]))
        finding = await doctor.one(vllm(scripted.url), "clock")
    assert "behind ours" in finding.evidence
    assert "NTP" in finding.fix


async def test_connections_that_are_closed_too_soon_are_found(doctor: Doctor) -> None:
    async def then_close(talk: Talk) -> None:
        await talk.send(whole(b""))
        talk.fin()

    async with ScriptedEngine() as scripted:
        scripted.on("/health", then_close)
        finding = await doctor.one(vllm(scripted.url), "keep_alive")
    assert "the gateway counts on 5 s" in finding.evidence
    assert "VLLM_HTTP_TIMEOUT_KEEP_ALIVE" in finding.fix
