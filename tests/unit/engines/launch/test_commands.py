"""Commands made of any launch settings are ones that the engine takes and a shell reads back."""

import shlex
from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engines.launch.command import Command, SecretFile
from engines.launch.common import Launch
from engines.launch.flags.table import read_flags
from engines.launch.flags.vllm import FLAGS
from engines.launch.place import Place, place_of
from engines.launch.shell import exporting, here_document, shell_line
from engines.launch.values import bytes_text
from engines.launch.vllm import VllmLaunch, command
from engines.profile import EngineKind

WORDS = st.text(st.characters(blacklist_categories=("Cs", "Cc")), min_size=1, max_size=12)
SIZES = st.integers(1, 2**20)
LAUNCHES = st.fixed_dictionaries(
    {"model": st.just("org/model")},
    optional={
        "max_model_len": SIZES | st.just("auto"),
        "max_num_seqs": SIZES,
        "max_num_batched_tokens": SIZES,
        "kv_cache_memory_bytes": SIZES,
        "gpu_memory_utilization": st.floats(0.01, 1),
        "tensor_parallel_size": st.integers(1, 8),
        "enforce_eager": st.booleans(),
        "enable_prefix_caching": st.booleans(),
        "dtype": st.sampled_from(["auto", "bfloat16"]),
        "tool_parser": st.sampled_from(["hermes", "llama3_json"]),
        "served_names": st.lists(st.from_regex(r"[a-z][a-z0-9-]{0,8}", fullmatch=True), max_size=3),
        "loras": st.dictionaries(st.from_regex(r"[a-z]{1,8}", fullmatch=True), st.just("/loras/one"), max_size=2),
        "chat_template_kwargs": st.dictionaries(st.just("key"), st.booleans() | st.integers(), max_size=1),
        "shutdown_timeout": st.integers(0, 100),
        "environment": st.dictionaries(st.from_regex(r"[A-Z]{1,5}_X", fullmatch=True), WORDS, max_size=3),
    },
)


@given(LAUNCHES)
def test_every_command_has_only_flags_that_vllm_takes_so(settings: dict[str, object]) -> None:
    launch = VllmLaunch.model_validate(settings)
    words = [str(word) for word in command(launch, "0.0.0.0", 8000).words]

    given_flags = list(read_flags(FLAGS, words))
    assert [one.fault for one in given_flags if one.fault] == []
    assert len({one.flag for one in given_flags}) == len(given_flags)


@given(LAUNCHES)
def test_a_shell_reads_every_word_and_variable_back(settings: dict[str, object]) -> None:
    made = command(VllmLaunch.model_validate(settings), "0.0.0.0", 8000)

    variables = [f"{name}={value}" for name, value in sorted(made.environment.items())]
    assert shlex.split(shell_line(made)) == [*variables, *made.words]


@given(WORDS, WORDS)
def test_secrets_stay_in_their_files(word: str, path: str) -> None:
    """A shell is told where they are, and quotes what it reads."""
    made = Command((word, SecretFile(f"/{path}")), {"KEY": SecretFile(f"/{path}")})
    reads = f'"$(cat {shlex.quote(f"/{path}")})"'

    assert shell_line(made) == f"KEY={reads} {shlex.quote(word)} {reads}"
    assert exporting(made) == f"export KEY={reads}; exec {shlex.quote(word)} {reads}"


@given(st.lists(st.sampled_from(["EOF", "EOF_", "a", ""]), min_size=1))
def test_a_here_document_ends_where_the_text_does(lines: list[str]) -> None:
    first, *body = here_document("./f", "\n".join(lines)).splitlines()
    end = first.rpartition("<<")[2].strip("'")

    assert body[-1] == end
    assert end not in body[:-1]


@pytest.mark.parametrize(
    ("urls", "launch", "place"),
    [
        (["http://127.0.0.1:8000"], {}, Place("My_Engine", "my-engine", "127.0.0.1", 8000, local=True)),
        (["http://localhost:8000"], {"host": "0.0.0.0"}, Place("My_Engine", "my-engine", "0.0.0.0", 8000, local=True)),
        (["http://qwen:8000"], {}, Place("My_Engine", "qwen", "0.0.0.0", 8000)),
        (["dns+http://qwen.models.svc:8000"], {"port": 9000}, Place("My_Engine", "qwen", "0.0.0.0", 9000)),
        (["http://10.0.0.1:8000", "http://127.0.0.1:8000"], {}, Place("My_Engine", "my-engine", "0.0.0.0", 8000)),
        (["https://qwen.example.org"], {}, Place("My_Engine", "qwen", "0.0.0.0", 443)),
        (["http://qwen"], {}, Place("My_Engine", "qwen", "0.0.0.0", 80)),
    ],
)
def test_where_an_engine_runs_follows_from_its_urls(
    urls: list[str], launch: Mapping[str, object], place: Place
) -> None:
    assert place_of("My_Engine", EngineKind.VLLM, urls, Launch.model_validate(launch)) == place


def test_sizes_are_shown_in_the_largest_unit_that_leaves_a_whole_number() -> None:
    assert [bytes_text(size) for size in (4 * 2**30, 3 * 2**20, 1000)] == ["4GiB", "3MiB", "1000"]
