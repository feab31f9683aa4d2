"""Habits in how engines that parse tool calls themselves write them."""

from engines.habits.habit import EVERY, STRICT, TRITON, TRTLLM, VLLM, Habit, passed_on, refused, same

_CALLS = "tests/unit/gateway/wire/toolcalls/test_normalise.py::test_"
_TRAPS = "tests/unit/gateway/wire/toolcalls/test_traps.py::test_"
_NONE = "tests/integration/test_tools_none.py::test_"
_PREPARE = "tests/unit/engines/test_prepare.py::test_"

TOOL_CALLS: tuple[Habit, ...] = (
    same(
        "Tools without a parser: 400 (vLLM, Triton), or markup in `content` and nothing said (trtllm-serve)",
        EVERY,
        "the gateway's own parser reads the calls where the model's format is known",
        _CALLS + "content_is_read_where_the_engine_does_not",
        _CALLS + "a_raw_message_is_read",
    ),
    same(
        "The first delta of a call lacks `arguments` (vLLM, Triton), or has no id and no type (Triton, forced)",
        EVERY,
        "index, id, type, name and empty arguments, then arguments alone",
        _CALLS + "vllm_leaves_out_the_empty_arguments",
        _CALLS + "triton_repeats_the_name_without_id_or_type",
    ),
    same(
        "Later deltas repeat the type (trtllm-serve) or the name (Triton, forced)",
        STRICT,
        "said once",
        _CALLS + "trtllm_says_nothing_for_every_token_and_its_type_every_time",
        _CALLS + "triton_repeats_the_name_without_id_or_type",
    ),
    same(
        "Ids are the answer's own, or the same for several calls",
        EVERY,
        "kept when unique and clean, else made",
        _CALLS + "calls_that_share_an_index_are_told_apart",
        _CALLS + "whatever_an_engine_sends_a_client_can_follow_it",
    ),
    same(
        "A call without arguments is streamed with none at all",
        STRICT,
        "`{}`",
        _CALLS + "odd_arguments",
    ),
    passed_on(
        "Arguments are spelled with or without `\\u` escapes, in streams other than in whole answers",
        EVERY,
        "the same JSON; the model's bytes stay",
    ),
    same(
        "Calls end with `stop` (a named tool, and Triton's `required`) or `tool_calls`",
        EVERY,
        "`tool_calls` for auto and required, `stop` for a named tool, `length` before both",
        _CALLS + "the_finish_reason_is_recomputed",
    ),
    same(
        '`content` beside calls is null, "", or blanks',
        EVERY,
        "null when there is no text",
        "tests/unit/gateway/wire/shape/test_stages.py::test_an_empty_content_beside_calls_is_null",
    ),
    same(
        "A call that the limit cuts is closed for the model (Triton), shown as raw text, or lost (trtllm-serve)",
        EVERY,
        "as far as it came, with `length`; what the engine has lost stays lost",
        _CALLS + "a_cut_call_is_not_closed",
        _TRAPS + "a_call_cut_by_the_limit_is_open_and_says_length",
    ),
    same(
        "Text before a call hides it (Triton's llama3), or is lost (its mistral)",
        TRITON,
        "markup that leaks into `content` is read",
        _CALLS + "leaked_markup_joins_the_engines_own_calls",
    ),
    passed_on(
        "A model that writes a call all the same under `none`: its markup stays in the text (vLLM, Triton, "
        "trtllm-serve without a parser), or is taken away, which may leave nothing (trtllm-serve with one)",
        EVERY,
        "there is never a call, and the reason is `stop`; the text is what the engine says",
        _NONE + "under_none_there_is_never_a_call",
        _NONE + "trtllm_with_a_parser_takes_the_markup_away",
        _TRAPS + "without_tools_calls_dissolve_into_text",
    ),
    refused(
        "`required` calls the first tool only (Triton), or does not exist (trtllm-serve)",
        STRICT,
        "Triton: one tool that stands for all, else 400; trtllm-serve: guided decoding where configured, else 400",
        _PREPARE + "triton_cannot_require_one_of_several_tools",
    ),
    passed_on(
        "`required` and a named tool are 500 on the Rust frontend without a reasoning parser",
        VLLM,
        "a fault of one version; clients get 502",
    ),
    passed_on(
        "A call of a tool that was not offered is dropped",
        TRTLLM,
        "what the engine has lost cannot be had back; with the gateway's parser it is returned",
        _TRAPS + "unknown_tools_are_returned_where_there_is_markup",
    ),
    passed_on(
        "A call that arrives whole in one delta loses its arguments (trtllm-serve), or all (Triton)",
        STRICT,
        "what the engine has lost cannot be had back; the gateway's parser does not lose it",
        _CALLS + "content_is_read_where_the_engine_does_not",
    ),
    same(
        "llama3, stream, characters beyond ASCII: the whole arguments follow their own beginning",
        TRITON,
        "held until they are whole",
        _CALLS + "triton_appends_the_whole_object_to_its_beginning",
    ),
    passed_on(
        'llama3, stream: a JSON answer that is no call (`{"answer": 42}`) is swallowed, with `tool_calls`',
        TRITON,
        "what the engine has swallowed cannot be had back; the finish reason is put right",
        _CALLS + "the_finish_reason_is_recomputed",
    ),
    passed_on(
        "mistral, stream: any `[` in prose swallows the rest of the answer",
        TRITON,
        "what the engine has swallowed cannot be had back; the gateway's parser does not need the engine's",
        _TRAPS + "a_marker_in_prose_is_prose",
    ),
    same(
        "mistral's newer form (`[TOOL_CALLS]name{…}`) is raw text in whole answers; a stream loses it",
        TRITON,
        "read from the text of whole answers; what a stream has lost stays lost",
        _CALLS + "leaked_markup_joins_the_engines_own_calls",
    ),
    same(
        "llama3, whole answers: a call counts only if the text begins with it",
        TRITON,
        "read from the text",
        _CALLS + "leaked_markup_joins_the_engines_own_calls",
    ),
    same(
        "Broken JSON of the model is raw text in a whole answer and a broken call in a stream",
        VLLM,
        "the call as it was written, its arguments open",
        _TRAPS + "a_broken_call_stays_open_and_the_rest_is_text",
    ),
    same(
        "minimax_m2: arguments, text and the whole call are sent again and again",
        TRTLLM,
        "one call",
        _CALLS + "trtllm_resends_arguments_content_and_the_call",
    ),
    same(
        "`parallel_tool_calls: false` is kept to by vLLM, and unknown to the others",
        STRICT,
        "only the first call is given",
        _CALLS + "only_the_first_call_where_calls_may_not_be_parallel",
        "tests/integration/test_parameters.py::test_one_call_at_most",
    ),
    passed_on(
        "`strict` constrains a call on vLLM, on trtllm-serve with some parsers, nowhere else", EVERY, "see above"
    ),
)
