# ruff: noqa: RUF001 - the markers of some formats hold full-width bars
"""Knowing a model's format."""

import pytest

from gateway.wire.toolcalls import FORMATS, UnknownFormatError, format_named
from gateway.wire.toolcalls.aliases import ALIASES
from gateway.wire.toolcalls.detect import NOTHING, Sniffer, from_name, from_template, from_text, resolve

from .renderers import FAMILIES
from .strategies import AFTER, SAID

CALLS = [("get_weather", {"city": "Paris", "days": 2}), ("get_time", {})]
UNMARKED = {"llama3_json", "pythonic", "xlam", "guided", "phi4_mini", "minicpm5"}
"""Nothing in these says what they are."""
SAME = {
    "granite4": "hermes",
    "ernie45": "hermes",
    "hunyuan": "jamba",
    "mistral_v11": "mistral_v11",
    "deepseek_v3": "deepseek_v3",
}
"""These share their markup with another format."""


@pytest.mark.parametrize("name", [name for name in FAMILIES if name not in UNMARKED])
def test_leaked_markup_names_its_format(name: str) -> None:
    """Also when it arrives in pieces."""
    text = "Ok. " + FAMILIES[name].render(CALLS)
    assert from_text(text).format == SAME.get(name, name)
    sniffer = Sniffer()
    assert any(sniffer.feed(char) for char in text)
    found = format_named(sniffer.finding.format)
    assert sniffer.finding.evidence in found.openers or found.name == "harmony"


@pytest.mark.parametrize("text", [*SAID, *AFTER, "<b>", "import functools", "[1]", "</s>", "a < b", "<tool", "[TOOL"])
def test_prose_has_no_format(text: str) -> None:
    """And the sniffer remembers at most a marker's beginning."""
    sniffer = Sniffer()
    assert not any(sniffer.feed(char) for char in text * 3)
    assert from_text(text) == NOTHING


@pytest.mark.parametrize(
    ("template", "wanted"),
    [
        ('<tool_call>\n{"name": <function-name>, "arguments": <args-json-object>}\n</tool_call>', "hermes"),
        ("<tool_call>\n<function=example_function_name>\n<parameter=example_parameter_1>", "qwen3_xml"),
        ("{{- '<tool_call>' + tc.name }}\n<arg_key>{{ k }}</arg_key>\n<arg_value>", "glm45"),
        ("{{- '<tool_call>' + tc.name -}}<arg_key>{{ k }}</arg_key><arg_value>", "glm47"),
        ("<arg_key> <tool_sep>", "hy_v3"),
        ("<｜tool▁calls▁begin｜> '\\n' + '```json' + '\\n'", "deepseek_v3"),
        ("<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>", "deepseek_v31"),
        ("<｜DSML｜function_calls>", "deepseek_v32"),
        ("<｜DSML｜tool_calls>", "deepseek_v4"),
        ("<｜DSML｜ calls>", "deepseek_v41"),
        ("<|tool_calls_section_begin|>", "kimi_k2"),
        ("<|start|>assistant<|channel|>analysis<|message|>", "harmony"),
        ("[TOOL_CALLS] [ARGS]", "mistral_v11"),
        ("[TOOL_CALLS] [", "mistral_v3"),
        ("<|python_tag|>", "llama3_json"),
        ("<|python_start|> <|python_tag|>", "llama4_pythonic"),
        ("<seed:tool_call><function=", "seed_oss"),
        ("<minimax:tool_call><invoke name=", "minimax_m2"),
        ("<|tool_call>call:", "gemma4"),
        ("<|tool_call|>", "granite"),
        ("nothing of the kind", ""),
    ],
)
def test_a_template_shows_what_it_teaches(template: str, wanted: str) -> None:
    """First match wins."""
    assert from_template(template).format == wanted


@pytest.mark.parametrize(
    ("model", "wanted"),
    [
        ("Qwen/Qwen3-Coder-30B-A3B-Instruct", "qwen3_xml"),
        ("Qwen/Qwen2.5-1.5B-Instruct", "hermes"),
        ("Qwen/Qwen3-8B", "hermes"),
        ("Qwen/Qwen3-4B", "hermes"),
        ("Qwen-7B-Chat", "hermes"),
        ("Qwen3.5-72B", "qwen3_xml"),
        ("meta-llama/Llama-3.1-8B-Instruct", "llama3_json"),
        ("meta-llama/Llama-3.2-1B-Instruct", "pythonic"),
        ("mistralai/Mistral-7B-Instruct-v0.3", "mistral_v3"),
        ("mistralai/Mistral-Small-3.2-24B", "mistral_v11"),
        ("deepseek-ai/DeepSeek-R1-Distill-Qwen-7B", "hermes"),
        ("deepseek-ai/DeepSeek-R1", "deepseek_v3"),
        ("deepseek-ai/DeepSeek-V3.2-Exp", "deepseek_v31"),
        ("deepseek-ai/DeepSeek-V3.2", "deepseek_v32"),
        ("zai-org/GLM-4.5-Air", "glm45"),
        ("zai-org/GLM-4.7", "glm47"),
        ("openai/gpt-oss-20b", "harmony"),
        ("/models/moonshotai/Kimi-K2-Instruct/", "kimi_k2"),
        ("nvidia/NVIDIA-Nemotron-Nano-9B-v2", "nemotron"),
        ("nvidia/NVIDIA-Nemotron-3-Nano-30B", "qwen3_xml"),
        ("tencent/Hunyuan-A13B-Instruct", "hunyuan"),
        ("gpt2", ""),
    ],
)
def test_a_name_is_the_last_resort(model: str, wanted: str) -> None:
    """The architecture is not asked: two formats may share it."""
    assert from_name(model).format == wanted


def test_better_evidence_wins() -> None:
    """Configuration over template over name."""
    template = "[TOOL_CALLS] [ARGS]"
    assert resolve(configured="qwen3_coder", template=template, model="gpt-oss").format == "qwen3_xml"
    assert resolve(configured="auto", template=template, model="gpt-oss").format == "mistral_v11"
    assert resolve(template="x", model="gpt-oss").source == "name"
    assert resolve() == NOTHING
    with pytest.raises(UnknownFormatError, match="hermes"):
        resolve(configured="hermez")


def test_every_engines_name_is_understood() -> None:
    """And ours win where an engine uses the word for something else."""
    own = {form.name for form in FORMATS}
    assert set(ALIASES) == own
    for name, columns in ALIASES.items():
        for alias in " ".join(columns).split():
            found = format_named(alias).name
            assert found == name or alias in own or alias in " ".join(ALIASES[found]).split()
    assert format_named("Qwen3-Coder").name == "qwen3_xml"
    assert format_named("deepseekv3.1").name == "deepseek_v31"
    assert format_named("minimax-m2").name == "minimax_m2"


def test_every_family_here_is_a_format_and_the_other_way_round() -> None:
    """No format without its renderer, so none escapes the properties."""
    assert set(FAMILIES) == {form.name for form in FORMATS}
