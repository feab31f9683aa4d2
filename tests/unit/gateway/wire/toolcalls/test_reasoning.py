"""Reasoning is split from content before calls are read."""

import pytest

from gateway.wire.toolcalls import UnknownFormatError, parse

from .renderers import FAMILIES, M3
from .strategies import TOOLS, read

CALL = [("get_time", {"i": 1})]
MADE = [("get_time", '{"i": 1}', True)]

FENCED = {
    "hermes": "<think>{}</think>",
    "qwen3_xml": "<think>{}</think>",
    "deepseek_v3": "<think>{}</think>",
    "deepseek_v31": "<think>{}</think>",
    "deepseek_v32": "<think>{}</think>",
    "glm45": "<think>{}</think>",
    "glm47": "<think>{}</think>",
    "kimi_k2": "<think>{}</think>",
    "minimax_m2": "<think>{}</think>",
    "hunyuan": "<think>{}</think>",
    "nemotron": "<think>{}</think>",
    "step3": "<think>{}</think>",
    "ernie45": "<think>{}</think>",
    "olmo3": "<think>{}</think>",
    "xlam": "<think>{}</think>",
    "llama3_json": "<think>{}</think>",
    "seed_oss": "<seed:think>{}</seed:think>",
    "mistral_v11": "[THINK]{}[/THINK]",
    "gemma4": "<|channel>thought\n{}<channel|>",
    "cohere": "<|START_THINKING|>{}<|END_THINKING|>",
    "kimi_k3": "<|open|>think<|sep|>{}<|close|>think<|sep|>",
    "minimax_m3": "<mm:think>{}</mm:think>",
    "harmony": "<|channel|>analysis<|message|>{}<|end|><|start|>assistant",
    "apertus": "<|inner_prefix|>{}<|inner_suffix|>",
}


@pytest.mark.parametrize("name", FENCED)
def test_reasoning_comes_apart_from_the_call(name: str) -> None:
    """Every family's fences; whitespace between them and the call is dropped."""
    thought = "\nI need the time, maybe <b>now</b>.\n"
    gap = "" if name == "harmony" else "\n\n"
    text = FENCED[name].format(thought) + gap + FAMILIES[name].render(CALL)
    assert read(text, name) == (None, thought, MADE, "tool_calls")
    assert read(list(text), name) == (None, thought, MADE, "tool_calls")


@pytest.mark.parametrize("name", FENCED)
def test_an_opener_in_the_prompt_leaves_only_the_closer(name: str) -> None:
    """The answer then starts inside reasoning, whether the opener is repeated or not."""
    fenced = FENCED[name].format("hm") + FAMILIES[name].render(CALL)
    opener = FENCED[name].split("{", maxsplit=1)[0]
    bare = fenced.removeprefix(opener)
    assert read(bare, name, starts_in_reasoning=True) == (None, "hm", MADE, "tool_calls")
    if name != "harmony":
        assert read(fenced, name, starts_in_reasoning=True) == (None, "hm", MADE, "tool_calls")


@pytest.mark.parametrize("name", [name for name in FENCED if name != "harmony"])
def test_reasoning_that_is_cut_has_no_content(name: str) -> None:
    """Everything belongs to it."""
    opener = FENCED[name].split("{", maxsplit=1)[0]
    assert read(opener + "hm, let", name, finish_reason="length") == (None, "hm, let", [], "length")


def test_the_newlines_of_reasoning_and_answer_stay() -> None:
    """As vLLM gives them (recording think_basic)."""
    text = "<think>\nTwo and two.\n</think>\n\n2+2 is 4."
    assert read(text, "hermes") == ("\n\n2+2 is 4.", "\nTwo and two.\n", [], "stop")


def test_an_empty_block_is_no_reasoning() -> None:
    """Thinking that was switched off."""
    assert read("<think>\n\n</think>\n\nHi", "hermes") == ("\n\nHi", None, [], "stop")
    assert read("</think>\n\nHi", "glm47")[:2] == ("\n\nHi", None)


def test_a_fence_in_prose_is_prose() -> None:
    """Only a leading block is reasoning where the fence is text."""
    text = "The <think> tag opens, </think> closes."
    assert read(text, "hermes") == (text, None, [], "stop")


def test_off_leaves_the_fences_in_the_content() -> None:
    """And a name chooses a family that is not the format's."""
    text = "<think>a</think>b"
    assert read(text, "hermes", reasoning="off") == (text, None, [], "stop")
    assert read("[THINK]a[/THINK]b", "hermes", reasoning="mistral") == ("b", "a", [], "stop")
    assert read("<think>a</think>b", "hermes", reasoning="deepseek_r1") == ("b", "a", [], "stop")
    with pytest.raises(UnknownFormatError, match="deepseek_r1"):
        parse("x", format="hermes", reasoning="deepseek_r")


@pytest.mark.parametrize("name", ["hermes", "glm45", "minimax_m2", "deepseek_v32"])
def test_calls_inside_reasoning_are_reasoning(name: str) -> None:
    """A draft is no call."""
    draft = "maybe " + FAMILIES[name].render(CALL)
    text = f"<think>{draft}</think>"
    assert read(text, name) == (None, draft, [], "stop")
    assert read(text + FAMILIES[name].render(CALL), name) == (None, draft, MADE, "tool_calls")
    assert read(f"<think>{draft}", name) == (None, draft, [], "stop")


def test_kimi_ends_its_reasoning_with_a_call() -> None:
    """Its markers are special tokens, so it is one at once."""
    text = "<think>I need it" + FAMILIES["kimi_k2"].render(CALL)
    assert read(text, "kimi_k2") == (None, "I need it", MADE, "tool_calls")
    assert read(text.removeprefix("<think>"), "kimi_k2", starts_in_reasoning=True)[1:3] == ("I need it", MADE)


def test_qwen_may_end_its_reasoning_with_a_call() -> None:
    """If it never closes it and nothing follows; otherwise it was a draft."""
    call = FAMILIES["qwen3_xml"].render(CALL)
    assert read(f"<think>I need it {call}<|im_end|>", "qwen3_xml") == (None, "I need it ", MADE, "tool_calls")
    assert read(f"<think>I need it {call}\n{call}", "qwen3_xml")[2] == MADE * 2
    draft = f"<think>say {call} or so</think>Hi"
    assert read(draft, "qwen3_xml") == ("Hi", f"say {call} or so", [], "stop")
    assert read(f"<think>say {call} or so", "qwen3_xml") == (None, f"say {call} or so", [], "stop")
    assert read(f"<think>say <tool_call> or so</think>{call}", "qwen3_xml")[1:3] == ("say <tool_call> or so", MADE)


def test_markup_around_the_answer_goes() -> None:
    """ERNIE's response tags, Hunyuan's answer tags, Cohere's and K3's response markers."""
    ernie = "<think>\na\n</think>\n\n<response>\nHi\n</response>\n" + FAMILIES["ernie45"].render(CALL)
    assert read(ernie, "ernie45") == ("Hi\n", "\na\n", MADE, "tool_calls")
    assert read("<think>a</think>\n<answer>\nHi\n</answer>", "hunyuan")[:2] == ("Hi\n", "a")
    assert read("<|START_RESPONSE|>Hi<|END_RESPONSE|><|END_OF_TURN_TOKEN|>", "cohere")[0] == "Hi"
    assert read("<|open|>response<|sep|>Hi<|close|>response<|sep|><|close|>message<|sep|>", "kimi_k3")[0] == "Hi"


def test_harmony_routes_its_channels() -> None:
    """Analysis is reasoning; commentary without a recipient and final are content."""
    text = (
        "<|channel|>analysis<|message|>a<|end|><|start|>assistant<|channel|>commentary<|message|>One moment. <|end|>"
        "<|start|>assistant<|channel|>analysis<|message|>b<|end|><|start|>assistant<|channel|>final<|message|>Hi<|return|>"
    )
    assert read(text, "harmony") == ("One moment. Hi", "ab", [], "stop")


def test_harmony_without_its_special_tokens() -> None:
    """What a detokeniser that skips them leaves."""
    text = 'analysisThe user asks.assistantcommentary to=functions.get_time json{"i": 1}'
    assert read(text, "harmony") == (None, "The user asks.", MADE, "tool_calls")
    assert read("analysisThink.assistantfinalHello", "harmony") == ("Hello", "Think.", [], "stop")
    for prose in ("analysis of data", "analysis", "to be or not", "final answer: 4"):
        assert read(prose, "harmony") == (prose, None, [], "stop")


def test_a_namespace_mark_in_prose_is_prose() -> None:
    """MiniMax M3's mark overlaps itself."""
    text = f"The mark {M3} and {M3}<b> and ]<]mini"
    assert read(text, "minimax_m3", tools=TOOLS) == (text, None, [], "stop")
