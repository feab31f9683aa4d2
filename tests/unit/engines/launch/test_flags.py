"""Command lines are read with the tables of flags as the programs read them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engines.launch.flags import triton, trtllm, vllm
from engines.launch.flags.table import FlagTable, read_flags

TABLES = (vllm.FLAGS, trtllm.FLAGS, triton.FLAGS)


def read(table: FlagTable, line: str) -> list[tuple[str | None, tuple[str, ...], str]]:
    found = read_flags(table, line.split())
    return [(given.flag.name if given.flag else None, given.values, given.fault) for given in found]


@pytest.mark.parametrize("table", TABLES, ids=lambda table: table.program)
def test_no_name_stands_for_two_flags(table: FlagTable) -> None:
    names = [name for flag in table.flags for name in flag.names]

    assert len(names) == len(set(names))
    assert all(name.startswith("-") for name in names)


@pytest.mark.parametrize(
    ("line", "flag", "values"),
    [
        ("--max-model-len 8k", "--max-model-len", ("8k",)),
        ("--max_model_len=8192", "--max-model-len", ("8192",)),
        ("--max-model-len -1", "--max-model-len", ("-1",)),
        ("-tp 4", "--tensor-parallel-size", ("4",)),
        ("--tensor-parallel 4", "--tensor-parallel-size", ("4",)),
        ("--served-model-name a b", "--served-model-name", ("a", "b")),
        ("--no-enable-prefix-caching", "--enable-prefix-caching", ()),
        ("--compilation-config.mode 3", "--compilation-config", ("3",)),
        ('--default-chat-template-kwargs {"a":1}', "--default-chat-template-kwargs", ('{"a":1}',)),
        ("-O3", "--optimization-level", ("3",)),
    ],
)
def test_vllm_takes_its_flags_in_every_spelling(line: str, flag: str, values: tuple[str, ...]) -> None:
    assert read(vllm.FLAGS, f"Qwen/Qwen3-8B {line} --enforce-eager") == [
        (flag, values, ""),
        ("--enforce-eager", (), ""),
    ]


@pytest.mark.parametrize(
    ("line", "fault", "fix"),
    [
        ("--max-modle-len 8k", "vllm serve 0.32 has no flag --max-modle-len", "did you mean --max-model-len?"),
        ("--dtype int4", '--dtype does not take "int4"', "one of auto, bfloat16, float, float16, float32, half"),
        ("--max-num-seqs many", '--max-num-seqs does not take "many"', "--max-num-seqs 8"),
        ("--max-num-seqs", "--max-num-seqs needs a value", "--max-num-seqs 8"),
        ("--enforce-eager=yes", "--enforce-eager takes no value", "write --enforce-eager alone"),
    ],
)
def test_what_vllm_would_refuse_is_said_with_the_way_out(line: str, fault: str, fix: str) -> None:
    (found,) = read_flags(vllm.FLAGS, line.split())

    assert (found.fault, found.fix) == (fault, fix)


def test_triton_takes_three_values_for_a_restriction() -> None:
    line = "--openai-restricted-api inference,metrics key secret --tokenizer t"

    assert read(triton.FLAGS, line) == [
        ("--openai-restricted-api", ("inference,metrics", "key", "secret"), ""),
        ("--tokenizer", ("t",), ""),
    ]


def test_trtllm_serve_has_underscores_only_and_no_short_forms() -> None:
    faults = [fault for _, _, fault in read(trtllm.FLAGS, "--max-seq-len 8 --max_seq 8 --max_seq_len 8")]

    assert [bool(fault) for fault in faults] == [True, True, False]


@given(st.lists(st.text(alphabet="-abc=. 1", max_size=8)), st.sampled_from(TABLES))
def test_any_words_are_read_to_the_end(words: list[str], table: FlagTable) -> None:
    """Each finding is at a word that begins a flag, in order, and none is read twice."""
    places = [given.at for given in read_flags(table, words)]

    assert places == sorted(set(places))
    assert all(words[place].startswith("-") for place in places)
