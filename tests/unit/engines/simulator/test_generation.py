"""What a simulated model generates."""

import json
from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engines.simulator import Answer, Call, Thought, Turn, parse_model, tiny_script, tokens
from engines.simulator.generation import Limits, generate
from engines.simulator.markup import Markup, write
from engines.simulator.models import Task
from engines.simulator.script import FALLBACK, STORY, example

WEATHER: Mapping[str, Mapping[str, object]] = {"get_weather": {"type": "object"}}


@given(st.text(max_size=200))
def test_tokens_are_the_text_again(text: str) -> None:
    """Nothing is lost, and the same text always has the same tokens."""
    assert "".join(tokens.pieces(text)) == text
    assert tokens.pieces(text) == tokens.pieces(text)


@given(st.text(max_size=200), st.text(max_size=200))
def test_a_longer_prompt_never_has_fewer_tokens(one: str, other: str) -> None:
    """Counting grows with the text; only the empty text has no tokens."""
    assert tokens.count(one + other) >= max(tokens.count(one), tokens.count(other))
    assert (tokens.count(one) == 0) == (one == "")


@given(st.integers(1, 60))
def test_a_limit_cuts_and_says_length(limit: int) -> None:
    """At the limit the answer ends with `length`; below it the answer is whole and says `stop`."""
    made = generate(Answer((STORY,)), Markup.HERMES, Limits(tokens=limit))
    assert (made.tokens, made.finish) == (limit, "length")
    assert STORY.startswith(made.text)
    whole = generate(Answer((STORY,)), Markup.HERMES, Limits(tokens=10_000))
    assert (whole.text, whole.finish) == (STORY, "stop")


@given(st.sampled_from(["robot", "sea", ".", " hill above", "The end"]), st.booleans(), st.booleans())
def test_a_stop_string_ends_the_answer(stop: str, keep: bool, hold_back: bool) -> None:
    """The text ends at the first stop string, with or without it, however the pieces are cut."""
    made = generate(Answer((STORY,)), Markup.HERMES, Limits(stops=(stop,), keep_stop=keep, hold_back=hold_back))
    until = STORY.index(stop) + (len(stop) if keep else 0)
    assert (made.text, made.finish, made.stop_reason) == (STORY[:until], "stop", stop)
    assert len(made.pieces) == made.tokens


def test_ignoring_the_end_runs_to_the_limit() -> None:
    """The answer is repeated."""
    made = generate(Answer(("Hello",)), Markup.HERMES, Limits(tokens=50, ignore_end=True))
    assert (made.tokens, made.finish) == (50, "length")


@pytest.mark.parametrize(
    ("markup", "text"),
    [
        (Markup.HERMES, '<tool_call>\n{"name": "f", "arguments": {"a": 1}}\n</tool_call>'),
        (Markup.LLAMA3, '{"name": "f", "parameters": {"a": 1}}'),
        (Markup.MISTRAL, '[TOOL_CALLS] [{"name": "f", "arguments": {"a": 1}}]'),
    ],
)
def test_each_family_writes_calls_its_own_way(markup: Markup, text: str) -> None:
    """The markup behind reasoning and prose."""
    assert write((Call("f", '{"a": 1}'),), markup) == text
    assert write((Thought("hm"), "So: ", Call("f", '{"a": 1}')), markup) == f"<think>\nhm\n</think>\n\nSo: {text}"


def test_the_script_repeats_the_tiny_models_dialogues() -> None:
    """Greeting, weather with and without a tool, two cities, a tool's result, anything else."""
    assert tiny_script(Turn("Hello")).segments == ("Hello! How can I help you today?",)
    assert tiny_script(Turn("What is the weather in Oslo?")).segments == ("I cannot check the weather.",)
    asked = "What is the weather in Oslo and Lima?"
    assert tiny_script(Turn(asked, WEATHER)).segments == (
        Call("get_weather", '{"city": "Oslo"}'),
        Call("get_weather", '{"city": "Lima"}'),
    )
    after = Turn("What is the weather in Oslo?", WEATHER, "21 degrees", "What is the weather in Oslo?")
    assert tiny_script(after).segments == ("It is 21 degrees in Oslo.",)
    assert tiny_script(Turn("apple river")).segments == (FALLBACK,)


def test_a_forced_tool_is_called_with_arguments_that_fit() -> None:
    """What the model would have said where it fits, else values made up from the schema."""
    schema = {"type": "object", "properties": {"n": {"type": "integer"}, "x": {}}, "required": ["n"]}
    forced = tiny_script(Turn("apple", {"count": schema}, forced="count")).segments
    assert forced == (Call("count", json.dumps({"n": 1})),)
    wanted = tiny_script(Turn("What is the weather in Oslo?", WEATHER, forced="get_weather")).segments
    assert wanted == (Call("get_weather", '{"city": "Oslo"}'),)


def test_examples_fit_their_schema() -> None:
    """Constants, choices, nested objects, lists; endless schemas end."""
    endless: dict[str, object] = {"type": "object", "properties": {}}
    endless["properties"] = {"inner": endless}
    assert example({"enum": ["b", "a"]}) == "b"
    assert example({"const": 7}) == 7
    assert example({"type": ["number", "null"]}) == 1.5
    assert example({"type": "array", "minItems": 1, "items": {"type": "boolean"}}) == [True]
    assert json.dumps(example(endless))


@pytest.mark.parametrize(
    ("text", "name", "task", "parser"),
    [
        ("qwen", "qwen", Task.CHAT, True),
        ("llama3:8b", "llama3:8b", Task.CHAT, True),
        ("minilm:embedding", "minilm", Task.EMBEDDING, True),
        ("org/m:chat:noparser", "org/m", Task.CHAT, False),
    ],
)
def test_models_are_named_in_one_word(text: str, name: str, task: Task, parser: bool) -> None:
    """Options follow the name; other colons belong to it."""
    model = parse_model(text)
    assert (model.name, model.task, model.parser) == (name, task, parser)


@pytest.mark.parametrize("text", ["", ":embedding", "m:embedding:odd"])
def test_model_texts_that_make_no_sense_are_refused(text: str) -> None:
    """With a readable reason."""
    with pytest.raises(ValueError, match=r"name|option"):
        parse_model(text)
