"""Whole answers change in their names only, and their usage is found without reading the rest."""

import json

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from engines.profile import Operation
from gateway.wire.answer import AnswerNames, Usage, find_usage, respell_answer
from tests.support.json_type import Json
from tests.support.openai_bytes import compact, completion
from tests.unit.gateway.wire.strategies import spelled, texts, values

OWN = b"0" * 24
NAMES = AnswerNames(Operation.CHAT, "m")
GOOD_ID = "chatcmpl-" + "a" * 32

answers = st.builds(
    lambda head, more: head | more,
    st.fixed_dictionaries(
        {
            "id": st.sampled_from([GOOD_ID, "chatcmpl-3", "7", "", None, 5]) | texts,
            "object": st.just("chat.completion"),
        },
        optional={"model": st.sampled_from(["m", "org/m", None, 5]) | texts, "choices": values},
    ),
    st.dictionaries(texts.filter(lambda name: name not in ("id", "model", "object")), values, max_size=3),
)


@given(answers, st.booleans())
def test_only_the_names_change(answer: Json, spaced: bool) -> None:
    found = json.loads(respell_answer(spelled(answer, spaced=spaced), NAMES, OWN))

    assert found.pop("model") == "m"
    new_id = found.pop("id")
    assert new_id.startswith("chatcmpl-")
    assert len(new_id) >= 25
    if isinstance(answer["id"], str) and answer["id"].startswith("chatcmpl-") and len(answer["id"]) >= 25:
        assert new_id == answer["id"]
    answer.pop("id")
    answer.pop("model", None)
    assert found == answer


def test_a_clean_answer_is_the_same_object() -> None:
    body = compact(completion(model="m"))

    assert respell_answer(body, NAMES, OWN) is body


@pytest.mark.parametrize("operation", list(Operation))
def test_each_operation_has_its_form_of_id(operation: Operation) -> None:
    body = b'{"id":"7","model":"x"}'
    found = json.loads(respell_answer(body, AnswerNames(operation, "m"), OWN))

    prefix = {Operation.CHAT: "chatcmpl-", Operation.COMPLETIONS: "cmpl-"}.get(operation)
    assert found == {"id": "7" if prefix is None else prefix + OWN.decode(), "model": "m"}


@given(st.binary(max_size=40))
def test_no_bytes_make_it_crash(body: bytes) -> None:
    try:
        found = respell_answer(body, NAMES, OWN)
    except ValueError:
        return
    assert json.loads(found)["model"] == "m"


@pytest.mark.parametrize("body", [b"", b"null", b"[]", b"5", b'"m"', b"{", b"[" * 100_000, b'{"a":' + b"[" * 100_000])
def test_what_is_no_object_is_refused(body: bytes) -> None:
    with pytest.raises(ValueError, match="not a JSON object"):
        respell_answer(body, NAMES, OWN)


@pytest.mark.parametrize("asked", ["m", "北", 'a"b\\', "a\nb", "", "x" * 500])
def test_any_name_is_spelled_right(asked: str) -> None:
    found = respell_answer(compact(completion()), AnswerNames(Operation.CHAT, asked), OWN)

    assert json.loads(found) == completion(model=asked)


usages = st.fixed_dictionaries(
    {"prompt_tokens": st.integers(0, 2**40), "completion_tokens": st.integers(0, 2**40)},
    optional={
        "total_tokens": st.integers(0, 99),
        "prompt_tokens_details": st.none() | st.fixed_dictionaries({"cached_tokens": st.integers(0, 9)}),
        "completion_tokens_details": st.fixed_dictionaries({"a": st.fixed_dictionaries({"b": st.integers(0, 9)})}),
    },
)


@example("usage", {"prompt_tokens": 1, "completion_tokens": 2}, False)
@example('{"usage":{', {"prompt_tokens": 1, "completion_tokens": 2}, False)
@given(texts, usages, st.booleans())
def test_usage_is_what_a_whole_reading_finds(content: str, usage: Json, spaced: bool) -> None:
    document = completion(content) | {"usage": usage}
    document |= {"service_tier": content}

    assert find_usage(spelled(document, spaced=spaced)) == Usage(usage["prompt_tokens"], usage["completion_tokens"])


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{}",
        b'{"usage":null}',
        b'{"usage": null }',
        b'{"usage":5}',
        b'{"usage":{}',
        b'{"usage":{"prompt_tokens":"x"}}',
        b'{"usage":{"prompt_tokens":1',
        b'{"content":"\\"usage\\":{\\"prompt_tokens\\":1}"}',
    ],
)
def test_no_usage(body: bytes) -> None:
    assert find_usage(body) in (None, Usage())


@given(st.binary(max_size=60))
def test_no_bytes_make_the_search_for_usage_crash(body: bytes) -> None:
    find_usage(b'"usage":{' + body)
