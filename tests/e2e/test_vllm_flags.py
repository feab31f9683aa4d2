"""The tables of vLLM's flags and parsers are those of the installed one, and it takes the commands that are made."""

import json
import os
import shlex
import subprocess
from pathlib import Path
from typing import Any

import pytest

from engines.launch.flags.table import Flag
from engines.launch.flags.vllm import FLAGS
from engines.launch.flags.vllm_parsers import REASONING_PARSERS, TOOL_PARSERS
from engines.launch.kinds import command_of
from engines.launch.vllm import VllmLaunch
from engines.lint.vllm_model import ARGUMENTS
from gateway.settings import load
from tests.e2e import install_vllm, serve_vllm
from tests.e2e.conftest import Engine
from tests.integration.launches.setups import SETUPS
from tests.unit.engines.lint import commands


def serve_words(text: str) -> list[str]:
    """The words after `vllm serve`, of a command line that is nothing else; none of any other."""
    words = shlex.split(text)
    plain = words[:2] == ["vllm", "serve"] and not set("$&;@") & set(text)
    return words[2:] if plain else []


pytestmark = pytest.mark.e2e

LAUNCHES = {
    name: engine.launch
    for name, engine in load(SETUPS, {}).settings.engines.items()
    if isinstance(engine.launch, VllmLaunch)
}
TEMPLATE = str(Path(__file__).parent / "tiny-chat" / "chat_template.jinja")
"""A template that is there: vLLM looks for the one it is given."""
COMMANDS = [
    [TEMPLATE if word == launch.chat_template else str(word) for word in command_of(launch, "0.0.0.0", 8000).words[2:]]
    for launch in LAUNCHES.values()
]
PLANTED = [
    (words, faulty)
    for planted in commands.PLANTED
    for text, faulty in ((planted.command, True), (planted.mended, False))
    if (words := serve_words(text)) and planted.rule in {"unknown-flag", "removed-flag", "flag-value", "no-parser"}
] + [(words, False) for text in commands.GOOD if (words := serve_words(text))]
"""What lint says of command lines, to be held against vLLM's own parser: the words, and whether they are refused."""
WRONG = ["Qwen/Qwen3-8B", "--max-modle-len", "8k"]


@pytest.fixture(scope="module")
def known(engine: Engine) -> dict[str, Any]:
    """What the installed vLLM says about itself and about the commands."""
    script = Path(__file__).with_name("vllm_flags.py")
    done = subprocess.run(
        [str(install_vllm.bin_path("python")), str(script)],
        input="\n".join(map(json.dumps, [*COMMANDS, WRONG, *(words for words, _ in PLANTED)])),
        check=False,
        capture_output=True,
        text=True,
        env={**os.environ, **serve_vllm.ENV},
    )
    assert done.returncode == 0, done.stderr[-4000:]
    found = json.loads(done.stdout.splitlines()[-1])
    assert isinstance(found, dict)
    return found


def row(flag: Flag) -> dict[str, object]:
    return {
        "names": sorted(flag.names),
        "kind": flag.kind,
        "several": flag.most > 1,
        "optional": flag.least == 0 and flag.most == 1,
        "negatable": flag.negatable,
        "choices": list(flag.choices),
    }


def test_the_table_has_drifted_nowhere(known: dict[str, Any]) -> None:
    """Names what the installed vLLM has that the table has not, what is gone, and what has changed."""
    installed = {max(one["names"], key=len): one for one in known["flags"]}
    table = {max(flag.names, key=len): row(flag) for flag in FLAGS.flags}

    drift = {
        "new": sorted(installed.keys() - table.keys()),
        "gone": sorted(table.keys() - installed.keys()),
        "changed": [name for name in sorted(table.keys() & installed.keys()) if table[name] != installed[name]],
    }
    assert drift == {"new": [], "gone": [], "changed": []}, "renew engines/launch/flags/vllm.py"


def test_the_parsers_have_drifted_nowhere(known: dict[str, Any]) -> None:
    assert set(known["tool_parsers"]) == set(TOOL_PARSERS)
    assert set(known["reasoning_parsers"]) == set(REASONING_PARSERS)


def test_it_refuses_what_it_does_not_know(known: dict[str, Any]) -> None:
    assert "--max-modle-len" in known["read"][len(COMMANDS)]["error"]


@pytest.mark.parametrize("index", range(len(PLANTED)), ids=lambda index: " ".join(PLANTED[index][0]))
def test_it_refuses_what_lint_calls_a_wrong_flag_and_takes_what_lint_finds_nothing_in(
    index: int, known: dict[str, Any]
) -> None:
    _, faulty = PLANTED[index]
    said = known["read"][len(COMMANDS) + 1 + index]

    assert ("error" in said) == faulty, said.get("error")


def test_the_arguments_of_its_engine_have_drifted_nowhere(known: dict[str, Any]) -> None:
    """Those that model.json of Triton's vLLM backend may have."""
    assert {name for name in known["engine_arguments"] if not name.startswith("_")} == ARGUMENTS


@pytest.mark.parametrize("name", LAUNCHES)
def test_it_reads_each_command_as_the_launch_settings_mean_it(name: str, known: dict[str, Any]) -> None:
    launch, said = LAUNCHES[name], known["read"][list(LAUNCHES).index(name)]

    assert "error" not in said, said["error"]
    assert (said["model_tag"], said["host"], said["port"]) == (launch.model, "0.0.0.0", 8000)
    assert said["max_model_len"] == launch.max_model_len
    assert said["tool_call_parser"] == launch.tool_parser
    assert said["enable_auto_tool_choice"] == str(launch.tool_parser is not None)
    assert said["tensor_parallel_size"] == (launch.tensor_parallel_size or 1)
    assert said["gpu_memory_utilization"] == (launch.gpu_memory_utilization or 0.92)
    assert said["kv_cache_memory_bytes"] == launch.kv_cache_memory_bytes
    assert (said["served_model_name"] or []) == list(launch.served_names)
    assert said["max_num_seqs"] == launch.max_num_seqs
    assert len(said["lora_modules"] or []) == len(launch.loras)
