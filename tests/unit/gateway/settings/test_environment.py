"""Overrides from environment variables."""

from collections.abc import Callable
from pathlib import Path

import pytest

from gateway.settings import Loaded

Read = Callable[..., Loaded]
Wrong = Callable[..., list[str]]

TEXT = """
server: {port: 8080}
engines: {Llama-TRT: {kind: vllm, urls: [http://h:1]}}
models: {"qwen2.5": {engine: Llama-TRT}}
"""


def test_a_variable_overrides_one_key_and_leaves_the_rest(read: Read) -> None:
    settings = read(TEXT, {"TURNOUT_SERVER__PORT": "9090", "TURNOUT_SERVER__DRAIN": "1m"}).settings
    assert (settings.server.port, settings.server.drain, settings.server.host) == (9090, 60, "127.0.0.1")


def test_names_are_found_whatever_their_case_and_punctuation(read: Read) -> None:
    environ = {
        "TURNOUT_ENGINES__LLAMA_TRT__API_KEY": "[not-json",
        "TURNOUT_ENGINES__Llama-TRT__TIMEOUTS__IDLE": "5s",
        "TURNOUT_MODELS__QWEN2_5__MODEL": "7",
    }
    settings = read(TEXT, environ).settings
    engine = settings.engines["Llama-TRT"]
    assert list(settings.engines) == ["Llama-TRT"]
    assert engine.api_key is not None
    assert engine.api_key.get_secret_value() == "[not-json"
    assert engine.timeouts.idle == 5
    assert settings.models["qwen2.5"].model == "7"


def test_lists_and_mappings_are_json(read: Read) -> None:
    environ = {
        "TURNOUT_ENGINES__LLAMA_TRT__URLS": '["http://a:1", "http://b:2"]',
        "TURNOUT_ENGINES__EXTRA": '{"kind": "triton", "urls": ["http://c:3"]}',
        "TURNOUT_ENGINES__LLAMA_TRT__TIMEOUTS": '{"idle": "7s"}',
    }
    engines = read(TEXT, environ).settings.engines
    assert engines["Llama-TRT"].urls == ("http://a:1", "http://b:2")
    assert engines["Llama-TRT"].timeouts.idle == 7
    assert engines["extra"].urls == ("http://c:3",)


def test_a_whole_engine_can_come_from_variables(read: Read) -> None:
    environ = {"TURNOUT_ENGINES__NEW__KIND": "vllm", "TURNOUT_ENGINES__NEW__URLS": '["http://n:1"]'}
    assert read("models: {m: {engine: new}}", environ).settings.engines["new"].urls == ("http://n:1",)


def test_a_secret_file_can_be_named_by_a_variable(read: Read, tmp_path: Path) -> None:
    (tmp_path / "key").write_text("sk-file")
    key = (
        read(TEXT, {"TURNOUT_ENGINES__LLAMA_TRT__API_KEY": f"file:{tmp_path}/key"})
        .settings.engines["Llama-TRT"]
        .api_key
    )
    assert key is not None
    assert key.get_secret_value() == "sk-file"


def test_variables_of_others_are_left_alone(read: Read) -> None:
    """Kubernetes sets TURNOUT_PORT and the like for a service called turnout."""
    environ = {"TURNOUT_PORT": "tcp://10.0.0.1:80", "TURNOUT_SERVICE_HOST": "10.0.0.1", "MY__SERVER__PORT": "1"}
    assert read(TEXT, environ).settings == read(TEXT).settings


@pytest.mark.parametrize(
    ("variable", "value", "problem"),
    [
        ("TURNOUT_SERVER__PROT", "1", 'server.prot: unknown key (did you mean "port"?)'),
        ("TURNOUT_SERVR__PORT", "1", 'servr: unknown key (did you mean "server"?)'),
        ("TURNOUT_SERVER__", "1", "server.: unknown key (known here: host, port,"),
        ("TURNOUT_SERVER__PORT__X", "1", "server.port: a single value has nothing below it"),
        ("TURNOUT_SERVER__PORT", "abc", "server.port: expected a whole number (for example port: 8080)"),
        ("TURNOUT_SERVER__DRAIN", "", "server.drain: expected a duration such as"),
        ("TURNOUT_SERVER__CORS_ORIGINS", "https://a", "server.cors_origins: expected JSON (for example"),
        ("TURNOUT_SERVER__CORS_ORIGINS", '["x"]', "server.cors_origins[0]: expected an origin such as"),
        ("TURNOUT_SERVER__WORKERS", "0", "server.workers: expected a whole number of at least 1"),
        ("TURNOUT_STATE__REDIS", "http://x", "state.redis: expected a URL that begins with redis, rediss,"),
        ("TURNOUT_ENGINES__LLAMA_TRT__KIND", "x", "engines.Llama-TRT.kind: expected one of vllm, trtllm, triton"),
        (
            "TURNOUT_ENGINES__LLAMA_TRT__PARSER",
            "x",
            "engines.Llama-TRT.parser: expected none, or a name that an engine",
        ),
        ("TURNOUT_MODELS__QWEN2_5__ENGINE", "x", 'models."qwen2.5".engine: no engine has this name (engines: Llama'),
        ("TURNOUT_MODELS__QWEN2_5__ALIASES", '["qwen2.5"]', 'models."qwen2.5".aliases[0]: an alias equal to the model'),
        ("TURNOUT_ENGINES__X", '{"kind": "vllm", "urls": [], "a": 1}', "engines.x.urls: expected at least one entry"),
        ("TURNOUT_ENGINES__X", '{"kind": "vllm"}', "engines.x.urls: is required"),
    ],
)
def test_a_wrong_override_names_its_variable(variable: str, value: str, problem: str, wrong: Wrong) -> None:
    found = wrong(TEXT, {variable: value})
    assert found[0].startswith(f"{variable}: {problem}".replace("server.:", 'server."":'))
    assert all(line.startswith(f"{variable}: ") for line in found)


def test_an_override_below_something_that_is_no_mapping_leaves_the_files_mistake(wrong: Wrong) -> None:
    found = wrong(f"server: 7\n{TEXT.partition(chr(125))[2]}", {"TURNOUT_SERVER__PORT": "1"})
    assert found == ['turnout.yaml:1:9: server: expected a mapping of keys and values, not "7"']


def test_an_override_repairs_the_value_it_replaces(read: Read) -> None:
    assert read(TEXT.replace("8080", "soon"), {"TURNOUT_SERVER__PORT": "1"}).settings.server.port == 1
