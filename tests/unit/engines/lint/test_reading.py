"""The readers below the rules: Triton's configuration, shell words, and texts of any kind."""

import shlex
from contextlib import suppress

import pytest
from google.protobuf import text_format
from google.protobuf.descriptor_pb2 import FileDescriptorProto
from hypothesis import given
from hypothesis import strategies as st

from engines.launch.flags import former
from engines.launch.flags.vllm import FLAGS
from engines.lint.finding import Finding
from engines.lint.places import fields_of
from engines.lint.repository import lint_repository
from engines.lint.sources import COMMAND, Source, Unreadable, lint_text, what_is
from engines.lint.triton_config import ConfigFault, description, message_class, read_config
from engines.lint.words import UnclosedError, split_lines
from tests.unit.engines.lint.composed import GOOD

CONFIG = """\
# a comment with { and "
name: "qwen"  backend: 'vllm'
instance_group [
  { count: 2, kind: KIND_GPU, gpus: [0, 1] },
  { kind: KIND_CPU }
]
dynamic_batching { priority_queue_policy { key: 1 value { max_queue_size: 3 } } }
parameters: { key: "a" value: { string_value: "b" } }
version_policy: { specific { versions: 3 versions: 4 } }
"""


def test_a_configuration_is_read_as_protobuf_reads_it() -> None:
    config = read_config(CONFIG)

    assert (config.name, config.backend) == ("qwen", "vllm")
    assert [(group.kind, group.count, group.gpus) for group in config.instance_group] == [
        ("KIND_GPU", 2, (0, 1)),
        ("KIND_CPU", 0, ()),
    ]
    assert config.dynamic_batching is not None
    assert config.dynamic_batching.priority_queue_policy[1].max_queue_size == 3
    assert config.parameters["a"].string_value == "b"
    assert config.version_policy is not None
    assert config.version_policy.specific is not None
    assert config.version_policy.specific.versions == (3, 4)


def test_the_lines_of_fields_are_known() -> None:
    lines = fields_of(CONFIG)

    assert lines["backend",] == 2
    assert lines["instance_group", "kind"] == 4
    assert lines["dynamic_batching", "priority_queue_policy", "value", "max_queue_size"] == 7
    assert lines["version_policy", "specific", "versions"] == 9


def test_the_description_is_that_of_triton() -> None:
    """Compared with tritonclient's, where that is installed."""
    theirs = pytest.importorskip("tritonclient.grpc.model_config_pb2")
    other = FileDescriptorProto()
    theirs.DESCRIPTOR.CopyToProto(other)

    def rows(file: FileDescriptorProto) -> set[str]:
        return set(filter(None, (line.strip() for line in text_format.MessageToString(file).splitlines())))

    assert rows(description()) - {'name: "turnout_model_config.proto"'} == {
        row for row in rows(other) if not row.startswith(('name: "model_config', "json_name"))
    }


@given(st.sampled_from([field.name for field in message_class().DESCRIPTOR.fields]), st.text(max_size=30))
def test_a_configuration_is_read_or_refused_with_a_line(field: str, rest: str) -> None:
    text = f"{field}: {rest}"
    fault = fault_of(text)

    assert fault is None or (1 <= fault.line <= max(1, len(text.splitlines())) and fault.message)


def fault_of(text: str) -> ConfigFault | None:
    try:
        read_config(text)
    except ConfigFault as fault:
        return fault
    return None


@given(st.lists(st.text(min_size=1).filter(lambda word: "\0" not in word and "\n" not in word), min_size=1))
def test_words_are_split_as_a_shell_does(words: list[str]) -> None:
    lines = list(split_lines(shlex.join(words)))

    assert [[word.text for word in line.words] for line in lines] == [words]


def test_a_script_has_lines_commands_and_here_documents() -> None:
    text = (
        "#!/bin/sh\ncat >x <<'EOF'\nvllm serve no\nEOF\nA=1 vllm serve a \\\n  --port 1 & # b\nvllm serve 'b c'; true\n"
    )

    found = [([word.text for word in line.words], line.words[-1].line, line.behind) for line in split_lines(text)]

    assert found[1:] == [
        (["A=1", "vllm", "serve", "a", "--port", "1"], 6, True),
        (["vllm", "serve", "b c"], 7, False),
        (["true"], 7, False),
    ]


def test_an_open_quote_is_told_with_its_line() -> None:
    with pytest.raises(UnclosedError, match="line 2"):
        list(split_lines("vllm serve a\nvllm serve 'b"))


@given(st.text())
def test_any_text_is_looked_into_or_refused(text: str) -> None:
    for kind in (Source.SCRIPT, Source.COMPOSE):
        with suppress(Unreadable):
            assert all(isinstance(finding, Finding) for finding in lint_text(text, kind, "x"))
    with suppress(Unreadable):
        what_is("x.yaml", text)


@given(st.integers(0, len(GOOD)), st.integers(1, 60), st.sampled_from(["", "[", "{}", ": ", "$", "-", "null", "'"]))
def test_a_damaged_compose_file_is_looked_into_or_refused(start: int, length: int, instead: str) -> None:
    with suppress(Unreadable):
        list(lint_text(GOOD[:start] + instead + GOOD[start + length :], Source.COMPOSE, "x"))


PATHS = st.sampled_from(
    ["config.pbtxt", "1/model.json", "1/multi_lora.json", "1/model.yaml", "1/model.py", "v1/", "2/x", "1/0.engine"]
)
TEXTS = st.sampled_from(
    [
        'backend: "vllm"',
        'backend: "python"',
        "{}",
        '{"model": 1, "enable_lora": true}',
        "a: [",
        "max_batch_size: 4",
        "x",
    ]
)


@given(st.dictionaries(PATHS, TEXTS.map(str.encode) | st.binary(max_size=40)))
def test_any_files_are_looked_into(files: dict[str, bytes]) -> None:
    list(lint_repository({f"m/{path}": content for path, content in files.items()} | {"README.md": b""}))


def test_flags_that_are_gone_are_gone_and_what_takes_their_place_is_there() -> None:
    for old, new in former.VLLM.items():
        assert FLAGS.find(old) is None, old
        for word in new.replace(",", " ").replace(":", " ").split():
            assert not word.startswith("--") or FLAGS.find(word) is not None, (old, word)


def test_arguments_of_the_server_are_flags() -> None:
    assert all(FLAGS.find(f"--{name.replace('_', '-')}") for name in former.NOT_ENGINE_ARGUMENTS)


@pytest.mark.parametrize(
    "text",
    [
        "vllm serve a",
        "/usr/bin/env HF_HOME=/x vllm serve a",
        "sudo -E docker run -d --rm -e A=1 vllm/vllm-openai:v0.32.0 --model a --ipc-is-not-a-flag",
        "bash -lc 'cd /x && exec vllm serve a'",
        "mpirun -n 2 trtllm-llmapi-launch trtllm-serve a",
        "uv run vllm serve a",
        "trtllm-serve serve a",
        "python3.12 /opt/openai_frontend/main.py --model-repository m",
    ],
)
def test_an_engine_is_recognised_whatever_stands_before_it(text: str) -> None:
    list(lint_text(text, Source.SCRIPT, COMMAND))


@pytest.mark.parametrize("text", ["", "ls -l", "vllm bench", "docker ps", "docker run", "python3 x.py", "vllm"])
def test_what_starts_no_engine_is_refused(text: str) -> None:
    with pytest.raises(Unreadable, match="no command"):
        list(lint_text(text, Source.SCRIPT, COMMAND))
