"""Habits in what engines answer."""

from engines.habits.habit import EVERY, STRICT, TRITON, TRTLLM, VLLM, Habit, passed_on, same

_PASS = "tests/integration/test_pass_through.py::test_"
_SHAPE = "tests/integration/test_shape.py::test_"
_STAGES = "tests/unit/gateway/wire/shape/test_stages.py::test_"
_RELAY = "tests/unit/gateway/wire/test_stream.py::test_"
_STREAMS = "tests/integration/test_streams.py::test_"

ANSWERS: tuple[Habit, ...] = (
    same(
        "Ids are small numbers in streams (trtllm-serve), or `cmpl-…` for chat (Triton)",
        STRICT,
        "unique, and of OpenAI's form",
        _PASS + "ids_have_openai_form_and_are_unique",
        _PASS + "completions_have_ids_of_their_own_form",
    ),
    same(
        "`model` is the first served name (vLLM), or whatever was sent (trtllm-serve)",
        EVERY,
        "the name that the client asked for, in every chunk",
        _PASS + "a_whole_answer_names_the_model_that_was_asked_for",
        _PASS + "every_chunk_names_the_model_that_was_asked_for",
    ),
    same(
        "`finish_reason` is never `length`",
        TRITON,
        "found out by comparing usage with the limit",
        _SHAPE + "an_answer_that_the_limit_ends_says_length_in_both_modes",
        _SHAPE + "completions_say_length_in_both_modes",
    ),
    passed_on(
        "Some models give no usage at all, so that `length` cannot be found out",
        TRITON,
        "nothing else tells the two apart",
        _SHAPE + "a_triton_without_usage_says_its_reason_at_the_end",
    ),
    same(
        "The role comes with content, without, in every chunk as null, or not at all",
        EVERY,
        "once for each choice, first",
        _STAGES + "the_role_is_said_once_for_each_choice_and_first",
    ),
    same(
        "Deltas carry members that say nothing: null roles and calls, empty `content` beside `reasoning_content`",
        STRICT,
        "left out",
        _STAGES + "members_that_say_nothing_leave_the_deltas_of_engines_that_fill_them",
    ),
    same(
        "There is a chunk for every token even if there is nothing in it",
        TRTLLM,
        "not sent",
        _STAGES + "an_event_that_carries_nothing_is_not_sent",
        _SHAPE + "no_event_is_empty",
    ),
    passed_on(
        "Answers have members that OpenAI's do not have, many of them null",
        EVERY,
        "they are the engine's answer; a model's `extras: strip` takes them away",
        _SHAPE + "answers_without_extras_have_openai_s_members_only",
    ),
    same(
        "Usage comes unasked, or is null in every chunk",
        STRICT,
        "sent when it was asked for",
        _STAGES + "usage_that_nobody_asked_for_is_not_sent",
    ),
    passed_on(
        "Usage in every event (`continuous_usage_stats`) exists on vLLM and trtllm-serve; its details differ",
        EVERY,
        "an engine's own option, and numbers that only it has",
        _STAGES + "usage_that_was_asked_for_stays_as_it_is_in_every_event",
    ),
    same(
        "`object` or `created` are missing or wrong",
        EVERY,
        "always there",
        _STAGES + "object_and_created_are_always_there",
        _STAGES + "a_wrong_object_is_put_right",
    ),
    passed_on(
        "`system_fingerprint` is absent, null, or on the last chunk only",
        EVERY,
        "it means nothing across engines, and OpenAI's clients may not rely on it",
    ),
    passed_on(
        "`finish_reason` and `logprobs` are absent instead of null until the end (trtllm-serve, Rust frontend)",
        (*VLLM, *TRTLLM),
        "clients read both alike, and adding nulls to every chunk would touch every byte",
    ),
    passed_on(
        "The chunk with the finish reason may carry text, and text may come in pieces other than tokens",
        EVERY,
        "so it may with OpenAI",
        _RELAY + "the_client_gets_what_the_engine_said_but_for_the_names",
    ),
    passed_on(
        "Log probabilities of characters split over tokens differ, and numbers are spelled differently in streams",
        EVERY,
        "log probabilities are never touched",
        _STAGES + "log_probabilities_stay_byte_for_byte",
    ),
    same(
        "Reasoning is `reasoning` (vLLM) or `reasoning_content` (trtllm-serve)",
        (*VLLM, *TRTLLM),
        "where `reasoning.field` says; in a history both are taken",
        _SHAPE + "reasoning_is_where_the_model_s_settings_say",
        _SHAPE + "reasoning_in_the_history_is_taken_in_both_spellings",
    ),
    same(
        "Without a reasoning parser the thoughts stand in `content`, in their tags",
        EVERY,
        "taken apart, unless the model says `reasoning.format: off`",
        "tests/unit/gateway/wire/toolcalls/test_reasoning.py::test_reasoning_comes_apart_from_the_call",
        "tests/unit/gateway/wire/toolcalls/test_reasoning.py::test_off_leaves_the_fences_in_the_content",
    ),
    passed_on(
        "With the parser `qwen3`, an answer without thoughts is all in `reasoning`, and `content` is null",
        VLLM,
        "only the engine knows; `chat_template_kwargs: {enable_thinking: false}` says it",
    ),
    same(
        "Events end in a blank before the line end (`data: {…} `), with comments or `id:` lines between them",
        EVERY,
        "one spelling",
        _STREAMS + "clients_see_one_spelling",
    ),
    same(
        "`[DONE]` is missing, comes twice, or after an error",
        EVERY,
        "once, last, and never after an error",
        _RELAY + "done_comes_once_and_last",
        _RELAY + "missing_done_is_added_when_every_choice_has_finished",
        _STREAMS + "an_error_in_the_middle_ends_the_stream_without_done",
    ),
    same(
        "A stream may end, or be cut, without a finish reason",
        EVERY,
        "an error, so that nobody takes a part for the whole",
        _STREAMS + "a_clean_end_without_finish_reason_is_an_interruption",
    ),
    passed_on(
        "A reasoning parser takes the answer for thoughts from its beginning (deepseek-r1), or drops what comes before "
        "`<think>` (qwen3)",
        TRTLLM,
        "what the engine has lost cannot be had back",
    ),
    passed_on(
        "Usage of embeddings has `completion_tokens: 0`",
        VLLM,
        "it is true, and clients pass over it",
    ),
    passed_on(
        "Text is trimmed by some frontends and not by others",
        VLLM,
        "what the engine says is what the client gets",
    ),
)
