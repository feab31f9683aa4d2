"""What `turnout engines command`, `compose` and `kubernetes` make of realistic set-ups, read by real readers."""

import json
import os
import shlex
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
from ruamel.yaml import YAML

from engines.launch.command import SecretFile, SettingsPath
from engines.launch.flags.table import read_flags
from engines.launch.kinds import FLAGS, AnyLaunch, command_of, kind_of
from gateway.cli import main
from gateway.settings import load
from tests.integration.launches.setups import GOLDEN, KINDS, NAMES, SETUPS, made
from tests.integration.test_compose import docker_compose

SETTINGS = load(SETUPS, {}).settings
CONTAINERS = 14


def launch_of(name: str) -> AnyLaunch:
    found = SETTINGS.engines[name].launch
    assert found is not None
    return found


def documents(name: str, kind: str) -> list[dict[str, Any]]:
    return list(YAML(typ="safe", pure=True).load_all((GOLDEN / f"{name}.{KINDS[kind]}").read_text()))


def plain(words: tuple[object, ...]) -> list[str]:
    """The words of a command; a secret is what the test's files hold, the settings file has its place in containers."""
    texts = {SecretFile: "secret", SettingsPath: "/etc/engine/settings.yaml"}
    return [word if isinstance(word, str) else texts[type(word)] for word in words]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", NAMES)
def test_a_set_up_makes_what_it_made(kind: str, name: str) -> None:
    expected = (GOLDEN / f"{name}.{KINDS[kind]}").read_text()

    assert made(kind, name) == expected, "if that is meant: python -m tests.integration.launches"


def test_there_is_nothing_else_among_what_is_made() -> None:
    assert {path.name for path in GOLDEN.iterdir()} == {f"{name}.{end}" for name in NAMES for end in KINDS.values()}


@pytest.mark.parametrize("name", NAMES)
def test_every_flag_is_one_that_the_engine_knows_and_takes_so(name: str) -> None:
    launch = launch_of(name)
    words = plain(command_of(launch, "0.0.0.0", 8000).words)

    faults = [given.fault for given in read_flags(FLAGS[kind_of(launch)], words[1:])]
    assert len(faults) >= 2
    assert not any(faults)


ECHO = """\
#!{python}
import json, os, sys
words = [open(word).read() if word.endswith(("settings.yaml", "trtllm.yaml")) else word for word in sys.argv]
print(json.dumps({{"words": words, "environ": dict(os.environ)}}))
"""
SMI = "#!/bin/sh\necho 0, GPU-aaaa\necho 1, GPU-bbbb\n"


@pytest.fixture
def programs(tmp_path: Path) -> Path:
    """A folder of programs that only say how they were started, and of a machine's two GPUs."""
    folder = tmp_path / "bin"
    folder.mkdir()
    for name in ("vllm", "trtllm-serve", "python3"):
        (folder / name).write_text(ECHO.format(python=sys.executable))
    (folder / "nvidia-smi").write_text(SMI)
    for path in folder.iterdir():
        path.chmod(0o755)
    return folder


def started(command: list[str], programs: Path) -> tuple[list[str], Mapping[str, str]]:
    """The words and the environment that a program was started with."""
    path = f"{programs}:/usr/bin:/bin"
    done = subprocess.run(command, check=False, capture_output=True, text=True, cwd=programs, env={"PATH": path})
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout)
    return said["words"], said["environ"]


def with_secrets_at(text: str, folder: Path) -> str:
    """The text with the files of secrets in a folder of the test's, which has them."""
    for name in ("qwen_key", "triton_admin", "qwen-key", "triton-admin"):
        (folder / name).write_text("secret\n")
    return text.replace("/run/secrets/", f"{folder}/")


@pytest.mark.parametrize("name", NAMES)
def test_a_shell_runs_the_printed_command(name: str, programs: Path, tmp_path: Path) -> None:
    """Every word and variable arrives, quotes and secrets included; the file of settings is written."""
    launch = launch_of(name)
    script = with_secrets_at((GOLDEN / f"{name}.sh").read_text(), tmp_path)

    words, environ = started(["/bin/sh", "-c", script], programs)

    host = words.index("--host")
    expected = command_of(launch, words[host + 1], int(words[host + 3]))
    given = plain(expected.words)
    if expected.settings is not None:
        written = words[words.index("--config") + 1]
        assert YAML(typ="safe", pure=True).load(written) == expected.settings
        given[given.index("--config") + 1] = written
    assert [Path(words[0]).name, *words[1:]] == given
    for variable, value in expected.environment.items():
        assert environ[variable] == (value if isinstance(value, str) else "secret")


def merged() -> dict[str, Any]:
    """All services in one file: compose is slow to start."""
    whole: dict[str, Any] = {"services": {}, "volumes": {}, "secrets": {}}
    for name in NAMES:
        (document,) = documents(name, "compose")
        for part, entries in document.items():
            assert part != "services" or not set(entries) & set(whole["services"])
            whole[part] |= entries
    return whole


def read_by(command: list[str], file: Path) -> dict[str, Any]:
    environ = {name: value for name, value in os.environ.items() if not name.startswith("COMPOSE_")}
    done = subprocess.run(
        [*command, "-f", str(file), "config"], check=False, capture_output=True, text=True, env=environ, cwd=file.parent
    )
    assert done.returncode == 0, done.stderr
    tree = YAML(typ="safe", pure=True).load(done.stdout)
    assert isinstance(tree, dict)
    return tree


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("services") / "docker-compose.yml"
    with path.open("w") as stream:
        YAML(typ="safe", pure=True).dump(merged(), stream)
    return path


@pytest.fixture(scope="module")
def by_podman(file: Path) -> dict[str, Any]:
    """The services as podman-compose reads them; of podman itself it only wants to know the version."""
    podman = file.parent / "podman"
    podman.write_text("#!/bin/sh\necho podman version 5.0.0\n")
    podman.chmod(0o755)
    return read_by([sys.executable, "-m", "podman_compose", "--podman-path", str(podman)], file)


def test_docker_and_podman_read_the_services_alike(file: Path, by_podman: dict[str, Any]) -> None:
    theirs = read_by(docker_compose(), file)["services"]

    assert len(theirs) == CONTAINERS
    for name, service in by_podman["services"].items():
        other = theirs[name]
        assert [word.replace("$$", "$") for word in other["command"]] == service["command"]
        assert other["healthcheck"]["test"] == service["healthcheck"]["test"]
        assert {key: value.replace("$$", "$") for key, value in other["environment"].items()} == service["environment"]


def in_container(service: Mapping[str, Any]) -> list[str]:
    return [*service.get("entrypoint", []), *service["command"]]


@pytest.mark.parametrize("name", [name for name in NAMES if not command_of(launch_of(name), "", 1).secrets])
def test_a_service_starts_what_the_command_starts(name: str, by_podman: dict[str, Any]) -> None:
    """Listening everywhere instead of on loopback."""
    (document,) = documents(name, "compose")
    (service,) = document["services"]
    words = in_container(by_podman["services"][service])

    host, port = words[words.index("--host") + 1], words[words.index("--host") + 3]
    assert host == "0.0.0.0"
    assert words == plain(command_of(launch_of(name), host, int(port)).words)


@pytest.mark.parametrize("name", [name for name in NAMES if command_of(launch_of(name), "", 1).secrets])
def test_a_services_shell_reads_its_secrets(name: str, programs: Path, tmp_path: Path) -> None:
    (document,) = documents(name, "compose")
    (service,) = document["services"].values()
    assert service["secrets"] == list(document["secrets"])
    shell, option, line = in_container(service)
    line = with_secrets_at(line.replace("$$", "$"), tmp_path)

    words, environ = started([shell, option, line], programs)

    port = int(words[words.index("--host") + 3])
    assert words[1:] == plain(command_of(launch_of(name), "0.0.0.0", port).words)[1:]
    assert "secret" in {environ.get("VLLM_API_KEY"), words[-1]}


def test_ports_are_published_where_the_gateway_looks_on_its_own_machine(by_podman: dict[str, Any]) -> None:
    published = {name: service["ports"] for name, service in by_podman["services"].items() if "ports" in service}

    assert published.keys() == {"chat-small", "chat-cpu", "trt-small", "triton-trt"}
    assert published["chat-cpu"] == ["127.0.0.1:8010:8010"]


def test_health_that_asks_for_a_secret_is_told_by_the_open_port(by_podman: dict[str, Any]) -> None:
    *_, deployment, _service = documents("triton-guarded", "kubernetes")
    (container,) = deployment["spec"]["template"]["spec"]["containers"]
    check = by_podman["services"]["guarded"]["healthcheck"]["test"]

    assert [container[probe].get("httpGet") for probe in ("startupProbe", "readinessProbe", "livenessProbe")] == [
        None
    ] * 3
    assert check[-1] == "9000"
    assert "create_connection" in check[-2]


def test_a_dollar_is_a_dollar_in_a_container(by_podman: dict[str, Any]) -> None:
    note = by_podman["services"]["copies"]["environment"]["NOTE"]

    assert note.replace("$$", "$") == 'costs $5, it\'s "cheap"'


def test_gpus_are_handed_in_from_outside(by_podman: dict[str, Any]) -> None:
    def devices(service: str) -> dict[str, Any]:
        (found,) = by_podman["services"][service]["deploy"]["resources"]["reservations"]["devices"]
        assert isinstance(found, dict)
        return found

    assert devices("qwen")["device_ids"] == ["0"]
    assert devices("llama-70b")["device_ids"] == [str(number) for number in range(8)]
    assert devices("copies")["count"] == 4
    assert "deploy" not in by_podman["services"]["chat-cpu"]
    assert not [one for one in by_podman["services"].values() if "CUDA_VISIBLE_DEVICES" in one["environment"]]


@pytest.mark.parametrize("name", NAMES)
def test_kubernetes_own_schemas_take_every_object(name: str) -> None:
    objects = documents(name, "kubernetes")

    assert [one["kind"] for one in objects][-2:] == ["Deployment", "Service"]
    for one in objects:
        kubernetes_validate.validate(one, kubernetes_validate.latest_version(), strict=True)


@pytest.mark.parametrize("name", NAMES)
def test_a_pod_starts_what_the_command_starts_and_has_what_it_names(name: str) -> None:
    *further, deployment, service = documents(name, "kubernetes")
    pod = deployment["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    launch = launch_of(name)
    port = service["spec"]["ports"][0]["port"]

    words = [*container.get("command", []), *container["args"]]
    variables = {f"$({one['name']})" for one in container["env"]}
    expected = plain(command_of(launch, "0.0.0.0", port).words)
    assert ["secret" if word in variables else word for word in words] == expected
    assert container["ports"][0]["containerPort"] == port
    assert service["spec"]["selector"] == deployment["spec"]["template"]["metadata"]["labels"]
    assert container.get("resources", {}).get("limits", {}).get("nvidia.com/gpu", 0) == launch.gpus
    assert {mount["name"] for mount in container["volumeMounts"]} == {volume["name"] for volume in pod["volumes"]}
    maps = {one["metadata"]["name"] for one in further if one["kind"] == "ConfigMap"}
    assert {volume["configMap"]["name"] for volume in pod["volumes"] if "configMap" in volume} == maps


def config(tmp_path: Path, launch: str, kind: str = "vllm", url: str = "http://127.0.0.1:1") -> Path:
    file = tmp_path / "turnout.yaml"
    engine = f"{{kind: {kind}, urls: [{url}], launch: {launch}}}"
    file.write_text(
        f"engines: {{q: {engine}, bare: {{kind: vllm, urls: [http://h:1]}}}}\nmodels: {{m: {{engine: q}}}}\n"
    )
    return file


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["command", "p"], 'no engine "p" (engines: q, bare)'),
        (["compose", "bare"], "engines.bare has no launch settings (add launch: {model: Qwen/Qwen3-8B})"),
        (["command", "q", "--settings"], "q needs no file of further settings"),
        (["kubernetes", "q"], "engines.q.launch.chat_template: ./t.jinja is no path in a pod; mount a claim"),
        (["compose", "q", "--into", "turnout.yaml"], "turnout.yaml: no marks for the service q"),
    ],
)
def test_what_cannot_be_made_is_told(
    arguments: list[str], told: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = config(tmp_path, "{model: a/b, chat_template: ./t.jinja}")
    arguments = [str(file) if argument == "turnout.yaml" else argument for argument in arguments]

    assert main(["engines", *arguments, "--config", str(file)]) == 1
    said = capsys.readouterr()
    assert told in said.err
    assert said.out == ""


def test_a_path_beside_the_compose_file_is_mounted(tmp_path: Path) -> None:
    file = config(tmp_path, "{model: ./weights/mine, loras: {a: ./loras/a}}")
    service = YAML(typ="safe", pure=True).load(made("compose", "q", file))["services"]["q"]

    assert service["volumes"][1:] == ["./weights/mine:/mnt/model:ro", "./loras/a:/mnt/loras/a:ro"]
    assert service["command"][0] == "/mnt/model"
    assert service["command"][-1] == "a=/mnt/loras/a"


def test_a_variable_of_the_file_stands_in_a_pod_once_in_the_place_of_the_usual_one(tmp_path: Path) -> None:
    file = config(tmp_path, "{model: a/b, environment: {HF_TOKEN: mine, HF_HOME: /elsewhere}}")
    _, deployment, _ = YAML(typ="safe", pure=True).load_all(made("kubernetes", "q", file))
    (container,) = deployment["spec"]["template"]["spec"]["containers"]

    given = [one for one in container["env"] if one["name"].startswith("HF_")]
    assert sorted(given, key=lambda one: one["name"]) == [
        {"name": "HF_HOME", "value": "/elsewhere"},
        {"name": "HF_TOKEN", "value": "mine"},
    ]


def test_odd_flags_and_paths_are_noted_beside_what_is_printed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    launch = "{model: /m/a, max_num_seqs: 8, extra_args: [--max-modle-len, 3, --max-num-seqs, 4]}"
    assert main(["engines", "compose", "q", "--config", str(config(tmp_path, launch))]) == 0

    noted = capsys.readouterr().err.splitlines()
    assert noted[0].endswith("has no flag --max-modle-len (did you mean --max-model-len?)")
    assert "--max-num-seqs is also what the key max_num_seqs says" in noted[1]
    assert "launch.model: /m/a must be in the image: nothing is mounted there" in noted[2]


Ended = subprocess.CompletedProcess[str]
Run = Callable[..., Ended]


@pytest.fixture
def run(programs: Path) -> Run:
    """`turnout engines run` on a machine with these programs and GPUs, or without some of them."""

    def run(file: Path, *options: str, without: tuple[str, ...] = (), **variables: str) -> Ended:
        for name in without:
            (programs / name).unlink()
        environ = {"PATH": str(programs), "PYTHONPATH": os.environ.get("PYTHONPATH", ""), **variables}
        command = [sys.executable, "-m", "gateway", "engines", "run", "q", "--config", str(file), *options]
        return subprocess.run(command, check=False, capture_output=True, text=True, env=environ)

    return run


def test_run_becomes_the_engine(run: Run, tmp_path: Path) -> None:
    (tmp_path / "key").write_text("sk-marked\n")
    launch = f"{{model: a/b, devices: [1], api_key_file: {tmp_path}/key, extra_args: [--seed, 7]}}"
    done = run(config(tmp_path, launch, url="http://127.0.0.1:12001"))

    said = json.loads(done.stdout)
    assert said["words"][1:] == shlex.split("serve a/b --host 127.0.0.1 --port 12001 --seed 7")
    assert said["environ"]["CUDA_VISIBLE_DEVICES"] == "1"
    assert said["environ"]["VLLM_API_KEY"] == "sk-marked"
    assert "sk-marked" not in done.stderr


def test_run_writes_the_file_of_further_settings(run: Run, tmp_path: Path) -> None:
    launch = "{model: a/b, guided_decoding_backend: xgrammar}"
    done = run(config(tmp_path, launch, kind="trtllm", url="http://127.0.0.1:12001"), TMPDIR=str(tmp_path))

    assert json.loads(done.stdout)["words"][-1] == "guided_decoding_backend: xgrammar\n"


@pytest.mark.parametrize(
    ("launch", "without", "reason"),
    [
        ("{model: a/b}", ("vllm",), "no program vllm on PATH (install it into an environment that is on PATH"),
        ("{model: a/b}", ("nvidia-smi",), "no NVIDIA GPU here"),
        ("{model: a/b, devices: [2]}", (), "launch.devices: no GPU 2 here (there are 0, 1)"),
        ("{model: a/b, tensor_parallel_size: 4}", (), "needs 4 GPUs, and 2 can be used here"),
        ("{model: a/b, tensor_parallel_size: 2, devices: [0]}", (), "needs 2 GPUs, and 1 can be used here"),
        ("{model: ./absent}", (), "launch.model: no such file or folder: ./absent"),
        ("{model: a/b, api_key_file: /absent}", (), "launch: no such file: /absent"),
        ("{model: a/b, host: 192.0.2.1}", (), "cannot listen at 192.0.2.1:12001"),
    ],
)
def test_run_refuses_what_cannot_work_here(
    launch: str, without: tuple[str, ...], reason: str, run: Run, tmp_path: Path
) -> None:
    done = run(config(tmp_path, launch, url="http://127.0.0.1:12001"), without=without)

    assert done.returncode == 1
    assert done.stdout == ""
    (told,) = done.stderr.splitlines()
    assert told.startswith(f"turnout: engines.q: {reason}")


def test_run_refuses_triton_outside_of_its_container(run: Run, tmp_path: Path) -> None:
    done = run(config(tmp_path, f"{{repository: {tmp_path}}}", kind="triton", url="http://127.0.0.1:12001"))

    assert done.returncode == 1
    assert "main.py is not here (it comes with Triton's container: `turnout engines compose`)" in done.stderr


def test_run_can_be_asked_only_whether_it_would_work(run: Run, tmp_path: Path) -> None:
    launch = "{model: a/b, device: cpu}"
    done = run(config(tmp_path, launch, url="http://127.0.0.1:12001"), "--check", without=("nvidia-smi",))

    assert done.stdout == "q can be started here: vllm serve a/b --host 127.0.0.1 --port 12001\n"
