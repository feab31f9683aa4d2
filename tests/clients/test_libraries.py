"""What applications are written with, in front of each kind of engine: every library sees one OpenAI behaviour."""

import pytest

from engines.simulator.script import STORY
from tests.clients.conftest import EMBEDDING, LIBRARIES, MODELS, Report
from tests.support.json_type import Json

GREETING = "Hello! How can I help you today?"
PARIS = ("get_weather", {"city": "Paris"})
OSLO = ("get_weather", {"city": "Oslo"})
WITHOUT_FINISH = {"llama-index"}
"""Libraries that do not tell applications the finish reason."""
WITHOUT_FLOATS = {"pydantic-ai", "ai-sdk"}
"""Libraries that choose the encoding of embeddings themselves."""
NOT_FOUND = {
    "openai-python-3": "NotFoundError",
    "openai-python-2": "NotFoundError",
    "langchain": "ModelNotFoundError",
    "llama-index": "NotFoundError",
    "pydantic-ai": "ModelHTTPError",
    "openai-node": "NotFoundError",
    "ai-sdk": "AI_APICallError",
}
BAD_REQUEST = {
    "openai-python-3": "BadRequestError",
    "openai-python-2": "BadRequestError",
    "langchain": "ModelInvalidRequestError",
    "llama-index": "BadRequestError",
    "pydantic-ai": "ModelHTTPError",
    "openai-node": "BadRequestError",
    "ai-sdk": "AI_APICallError",
}

TOO_LONG = BAD_REQUEST | {"langchain": "ContextOverflowError"}
"""LangChain has a class of its own for it, which it chooses by words in the message."""

every_library = pytest.mark.parametrize("library", LIBRARIES)
every_model = pytest.mark.parametrize("model", MODELS)
both_modes = pytest.mark.parametrize("mode", ["", "_streamed"], ids=["whole", "streamed"])


def calls_of(answer: Json) -> list[tuple[str, Json]]:
    return [(call["name"], call["arguments"]) for call in answer["calls"]]


def finish_of(report: Report, answer: Json) -> Json:
    """The finish reason, or nothing where the library does not tell it."""
    if report.library in WITHOUT_FINISH:
        assert answer["finish"] is None
        return ()
    return (answer["finish"],)


@every_library
@every_model
@both_modes
def test_chat(report: Report, model: str, mode: str) -> None:
    answer = report.gave(f"chat{mode}", model)

    assert (answer["text"], answer["calls"]) == (GREETING, [])
    assert finish_of(report, answer) in [("stop",), ()]


@every_library
@every_model
@both_modes
def test_a_long_answer_is_whole(report: Report, model: str, mode: str) -> None:
    assert report.gave(f"story{mode}", model)["text"] == STORY


@every_library
@every_model
def test_usage_is_told_and_the_same_in_a_stream(report: Report, model: str) -> None:
    read, written = report.gave("story", model)["usage"]

    assert read > 0
    assert written > 50
    assert report.gave("story_streamed", model)["usage"] == [read, written]


@every_library
@every_model
@both_modes
def test_a_tool_call(report: Report, model: str, mode: str) -> None:
    answer = report.gave(f"call{mode}", model)

    assert calls_of(answer) == [PARIS]
    assert answer["calls"][0]["id"]
    assert not answer["text"]
    assert finish_of(report, answer) in [("tool_calls",), ()]


@every_library
@every_model
@both_modes
def test_two_tool_calls(report: Report, model: str, mode: str) -> None:
    answer = report.gave(f"two_calls{mode}", model)

    assert calls_of(answer) == [PARIS, OSLO]
    assert len({call["id"] for call in answer["calls"]}) == 2


@every_library
@every_model
@both_modes
def test_a_tool_that_is_not_needed(report: Report, model: str, mode: str) -> None:
    answer = report.gave(f"unused_tool{mode}", model)

    assert (answer["text"], answer["calls"]) == (GREETING, [])


@every_library
@every_model
@both_modes
def test_an_agent_calls_its_tool_and_answers(report: Report, model: str, mode: str) -> None:
    """The history is the one that the library makes of the first answer."""
    answer = report.gave(f"agent{mode}", model)

    assert (answer["text"], answer["calls"]) == ("It is 21 degrees in Paris.", [])


@every_library
@every_model
@both_modes
def test_a_model_that_is_not_there(report: Report, model: str, mode: str) -> None:
    outcome = report.outcome(f"unknown_model{mode}", model)

    assert NOT_FOUND[report.library] in outcome["raised"]
    assert (outcome["status"], outcome["code"]) == (404, "model_not_found")
    assert f"no-{model}" in outcome["text"]


@every_library
@every_model
@both_modes
def test_a_prompt_that_is_too_long(report: Report, model: str, mode: str) -> None:
    """OpenAI's code tells it, from Triton too, which itself cuts such streams without a word."""
    outcome = report.outcome(f"too_long{mode}", model)

    assert TOO_LONG[report.library] in outcome["raised"]
    assert (outcome["status"], outcome["code"]) == (400, "context_length_exceeded")


def check_person(report: Report, model: str, way: str) -> None:
    """A person that the library has checked against its schema, or a refusal: Triton keeps to no response format."""
    if not (model.startswith("triton") and way.startswith("person_by_schema")):
        assert report.gave(way, model).keys() == {"name", "age"}
        return
    outcome = report.outcome(way, model)
    assert BAD_REQUEST[report.library] in outcome["raised"]
    assert (outcome["status"], outcome["code"]) == (400, "unsupported_parameter")
    assert "response_format" in outcome["text"]


@every_library
@every_model
@pytest.mark.parametrize("way", ["person_by_schema", "person_by_tool"])
def test_an_object_instead_of_a_text(report: Report, model: str, way: str) -> None:
    check_person(report, model, way)


@every_model
@pytest.mark.parametrize(
    ("library", "way"),
    [
        ("openai-python-3", "person_by_schema_streamed"),
        ("openai-python-2", "person_by_schema_streamed"),
        ("openai-node", "person_by_schema_streamed"),
        ("pydantic-ai", "person_by_tool_streamed"),
    ],
)
def test_a_streamed_object(report: Report, model: str, way: str) -> None:
    check_person(report, model, way)


@every_library
def test_embeddings(report: Report) -> None:
    """In the encoding that the library asks for by itself."""
    vectors = report.gave("embeddings", EMBEDDING)

    assert [vector["dimensions"] for vector in vectors] == [384, 384]
    assert vectors[0]["first"] != vectors[1]["first"]


@pytest.mark.parametrize("library", [library for library in LIBRARIES if library not in WITHOUT_FLOATS])
def test_embeddings_as_floats(report: Report) -> None:
    """Base64 holds the same numbers, rounded to single precision."""
    floats = report.gave("embeddings_as_floats", EMBEDDING)

    for vector, default in zip(floats, report.gave("embeddings", EMBEDDING), strict=True):
        assert vector["dimensions"] == 384
        assert vector["first"] == pytest.approx(default["first"], abs=2e-5)


@pytest.mark.parametrize("library", ["langchain"])
def test_embeddings_of_token_ids_are_refused_with_what_to_do(report: Report) -> None:
    """LangChain would send OpenAI's token ids, which mean other words to the model: wrong vectors, silently."""
    outcome = report.outcome("embeddings_of_token_ids", EMBEDDING)

    assert "BadRequestError" in outcome["raised"]
    assert "check_embedding_ctx_length=False" in outcome["text"]
