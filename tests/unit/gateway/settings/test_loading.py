"""What a configuration file becomes: settings, with every default and every form of a value."""

import hashlib
from collections.abc import Callable
from pathlib import Path

import pytest
from pydantic import ValidationError

from engines.policy import Unknown
from engines.profile import EngineKind
from gateway.settings import ConfigErrors, Engine, Loaded, Model, Server, Settings, load
from gateway.settings.advice import load_advised

Read = Callable[..., Loaded]

SMALLEST = "engines: {qwen: {kind: vllm, urls: [http://127.0.0.1:8000]}}\n"


def test_the_smallest_file_has_the_documented_defaults(read: Read) -> None:
    settings = read(SMALLEST).settings
    server, engine = settings.server, settings.engines["qwen"]
    assert (server.host, server.port, server.workers, server.max_body) == ("127.0.0.1", 8080, 1, 64 * 2**20)
    assert (server.drain, server.write_timeout, server.keep_alive) == (30, 60, 75)
    assert (server.cors_origins, server.access_log) == ((), False)
    assert (engine.kind, engine.urls) == (EngineKind.VLLM, ("http://127.0.0.1:8000",))
    assert (engine.api_key, engine.max_in_flight) == (None, None)
    limits = engine.timeouts
    assert (limits.connect, limits.first_token, limits.idle, limits.total) == (2, 60, 60, 900)
    assert (engine.health.interval, engine.health.path) == (5, None)
    assert settings.retry.attempts == 3
    assert settings.discovers_models


def test_every_key_of_this_version_is_read(read: Read) -> None:
    settings = read(
        """
        server: {host: 0.0.0.0, port: 9000, workers: 1, max_body: 1MB, cors_origins: [https://chat.example.org, "*"],
                 drain: 1m, write_timeout: 500ms, keep_alive: 10, access_log: true}
        engines:
          qwen:
            kind: vllm
            urls: ["http://one:8000/base/", "https://[::1]:8443"]
            api_key: sk-1
            max_in_flight: 256
            embeddings: false
            timeouts: {connect: 1s, first_token: 2s, idle: 3s, total: 1h}
            health: {interval: 1s, path: /ping}
          llama: {kind: trtllm, urls: [http://two]}
        models:
          chat:
            targets: [{engine: qwen, weight: 3}, {engine: llama, model: llama-8b}]
            policy: round_robin
            unknown_parameters: reject
          "org/emb": {engine: qwen, model: e5, aliases: [e, f], task: embedding, token_inputs: pass}
        retry: {attempts: 5}
        """
    ).settings
    assert settings.server == Server(
        host="0.0.0.0",
        port=9000,
        max_body=10**6,
        cors_origins=("https://chat.example.org", "*"),
        drain=60,
        write_timeout=0.5,
        keep_alive=10,
        access_log=True,
    )
    qwen = settings.engines["qwen"]
    assert qwen.urls == ("http://one:8000/base", "https://[::1]:8443")
    assert qwen.api_key is not None
    assert qwen.api_key.get_secret_value() == "sk-1"
    assert (qwen.max_in_flight, qwen.timeouts.total, qwen.health.path) == (256, 3600, "/ping")
    chat, embedding = settings.models["chat"], settings.models["org/emb"]
    assert [(t.engine, t.model, t.weight) for t in chat.targets_of("chat")] == [
        ("qwen", "chat", 3),
        ("llama", "llama-8b", 1),
    ]
    assert (chat.policy, chat.unknown_parameters) == ("round_robin", Unknown.REJECT)
    assert [(t.engine, t.model) for t in embedding.targets_of("org/emb")] == [("qwen", "e5")]
    assert (embedding.task, embedding.aliases, embedding.token_inputs) == ("embedding", ("e", "f"), "pass")
    assert settings.retry.attempts == 5


def test_the_example_file_is_valid_and_sound() -> None:
    file = Path(__file__).parents[4] / "config" / "turnout.yaml"
    loaded = load_advised(file, {})
    settings = loaded.settings
    assert loaded.warnings == ()
    assert {engine.kind for engine in settings.engines.values()} == set(EngineKind)


def test_keys_without_a_value_count_as_left_out(read: Read) -> None:
    settings = read(f"server:\nmodels:\nretry: {{attempts: }}\n{SMALLEST}").settings
    assert settings == Settings(engines=settings.engines)


def test_anchors_and_merge_keys_work(read: Read) -> None:
    """A key of the mapping itself wins over a merged one, the first merged mapping over the next."""
    engines = read(
        """
        engines:
          one: &one {kind: vllm, urls: [http://one:1], max_in_flight: 1}
          two: &two {<<: *one, urls: [http://two:2]}
          three: {max_in_flight: 3, <<: [*two, *one]}
        """
    ).settings.engines
    assert engines["two"] == engines["one"].model_copy(update={"urls": ("http://two:2",)})
    assert engines["three"] == engines["two"].model_copy(update={"max_in_flight": 3})


def test_variables_stand_for_values_of_any_type(read: Read) -> None:
    environ = {"PORT": "9001", "KIND": "triton", "LOG": "true", "HOST": "engine"}
    settings = read(
        """
        server: {port: "${PORT}", access_log: "${LOG}", drain: "${DRAIN:-5s}"}
        engines: {x: {kind: "${KIND}", urls: ["http://${HOST}:9000"], api_key: "${KEY:-}"}}
        """,
        environ,
    ).settings
    assert (settings.server.port, settings.server.access_log, settings.server.drain) == (9001, True, 5)
    assert settings.engines["x"] == Engine(kind=EngineKind.TRITON, urls=("http://engine:9000",))


def test_a_secret_comes_from_a_file(read: Read, tmp_path: Path) -> None:
    (tmp_path / "key").write_text("sk-file\n")
    text = f"engines: {{x: {{kind: vllm, urls: [http://h:1], api_key: 'file:{tmp_path}/key'}}}}"
    secret = read(text).settings.engines["x"].api_key
    assert secret is not None
    assert secret.get_secret_value() == "sk-file"


def test_a_secret_shows_in_no_representation(read: Read) -> None:
    loaded = read("engines: {x: {kind: vllm, urls: [http://h:1], api_key: sk-1}}")
    assert "sk-1" not in f"{loaded} {loaded.settings!r} {loaded.settings.model_dump_json()}"


def test_the_hash_is_that_of_the_text(read: Read, tmp_path: Path) -> None:
    loaded = read(SMALLEST)
    assert loaded.text_hash == hashlib.sha256(SMALLEST.encode()).hexdigest()
    assert loaded.source == tmp_path / "turnout.yaml"


def test_the_tree_cannot_be_changed(read: Read) -> None:
    settings = read(SMALLEST).settings
    with pytest.raises(ValidationError, match="frozen"):
        settings.server.port = 1
    with pytest.raises(ValidationError, match="frozen"):
        settings.retry = settings.retry


def test_the_environment_names_the_file(tmp_path: Path) -> None:
    file = tmp_path / "other.yaml"
    file.write_text(SMALLEST)
    assert load(None, {"TURNOUT_CONFIG": str(file)}).source == file


@pytest.mark.parametrize("name", ["turnout.yaml", "config/turnout.yaml"])
def test_the_default_files_are_found(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / name).parent.mkdir(exist_ok=True)
    (tmp_path / name).write_text(SMALLEST)
    monkeypatch.chdir(tmp_path)
    assert load(None, {}).source == Path(name)


def test_without_any_file_the_error_says_where_it_looked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ConfigErrors, match=r"looked for turnout\.yaml and config/turnout\.yaml"):
        load(None, {})


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    (tmp_path / "latin").write_bytes(b"a: \xe9")
    for name, reason in [("away", "no such file"), (".", "cannot be read"), ("latin", "is not UTF-8 text")]:
        with pytest.raises(ConfigErrors) as caught:
            load(tmp_path / name, {})
        assert str(caught.value).startswith(f"{tmp_path / name}: {reason}")


def test_settings_for_a_command_line_have_one_engine_per_url() -> None:
    settings = Settings.from_engines([("vllm", "http://a:1"), ("triton", "http://b:2/"), ("vllm", "http://c:3")])
    assert {name: (engine.kind, engine.urls) for name, engine in settings.engines.items()} == {
        "vllm": (EngineKind.VLLM, ("http://a:1",)),
        "triton": (EngineKind.TRITON, ("http://b:2",)),
        "vllm-2": (EngineKind.VLLM, ("http://c:3",)),
    }
    assert settings.discovers_models


def test_every_wrong_engine_of_a_command_line_is_reported() -> None:
    with pytest.raises(ConfigErrors) as caught:
        Settings.from_engines([("vlm", "http://a:1"), ("vllm", "http://me:secret@a:1"), ("triton", "http://b:2")])
    assert str(caught.value).splitlines() == [
        '--engine vlm=…: expected one of vllm, trtllm, triton (did you mean "vllm"?)',
        "--engine vllm=…: a URL must not hold credentials (use api_key)",
    ]


def test_building_settings_in_code_reads_no_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TURNOUT_SERVER__PORT", "1")
    monkeypatch.setenv("TURNOUT_SERVER", '{"port": 1}')
    assert Settings().server.port == 8080


def test_a_model_of_one_engine_takes_its_own_name_there() -> None:
    assert [target.model for target in Model(engine="qwen").targets_of("chat")] == ["chat"]
