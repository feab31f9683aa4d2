"""Habits in what engines take."""

from engines.habits.habit import EVERY, STRICT, TRITON, TRTLLM, VLLM, Habit, passed_on, refused, same

_PREPARE = "tests/unit/engines/test_prepare.py::test_"
_MESSAGES = "tests/unit/engines/test_messages.py::test_"
_SPLIT = "tests/unit/engines/test_split.py::test_"
_WIRE = "tests/integration/test_parameters.py::test_"
_FAN_OUT = "tests/integration/test_fanout.py::test_"
_VECTORS = "tests/integration/test_embeddings.py::test_"
_ERRORS = "tests/integration/test_errors.py::test_"

REQUESTS: tuple[Habit, ...] = (
    same(
        "Unknown members are ignored (vLLM), 400 (trtllm-serve) or 422 (Triton)",
        EVERY,
        "by the tables above; members that no table names follow the model's `unknown_parameters`",
        _WIRE + "no_parameter_surprises_the_engine",
        _WIRE + "what_was_done_is_told",
        _WIRE + "a_strict_model_refuses_what_nobody_knows",
    ),
    same(
        "A null is refused, or read as something else than absent (`tool_choice`, `parallel_tool_calls`)",
        EVERY,
        "left out where it matters",
        _WIRE + "no_null_surprises_the_engine",
    ),
    same(
        "`max_tokens` and `max_completion_tokens` together are 400",
        TRTLLM,
        "one of them is sent; `max_completion_tokens` wins",
        _PREPARE + "one_limit_reaches_trtllm",
    ),
    same(
        "Without a limit a chat stops after 16 tokens, and the temperature is 0.7",
        TRITON,
        "OpenAI's defaults are sent",
        _PREPARE + "chat_member",
        _PREPARE + "completions_stop_after_sixteen_tokens_as_openai_does",
    ),
    same(
        "Completions without a limit go on to the engine's own",
        TRTLLM,
        "OpenAI's 16 is sent",
        _PREPARE + "completions_stop_after_sixteen_tokens_as_openai_does",
    ),
    passed_on(
        "Sampling values that a request leaves out come from the model's `generation_config.json`, not from OpenAI; "
        "trtllm-serve's `reasoning_effort` is low",
        (*VLLM, *TRTLLM),
        "what a model's makers recommend is the better default; vLLM's `--generation-config vllm` turns it off",
    ),
    passed_on(
        "Unknown keys inside messages, tools and `stream_options` are dropped (Triton), or refused (trtllm-serve, but "
        "for messages)",
        STRICT,
        "OpenAI's own keys are dealt with above; what nobody knows is the engine's to judge",
    ),
    refused(
        "Log probabilities exist on Triton's vLLM backend only",
        TRITON,
        "the engine's 400, in the name of the parameter",
        "tests/unit/engines/test_faults.py::test_recorded_error",
    ),
    passed_on(
        "Under `tool_choice: none` the tools are in the prompt (vLLM, Triton), or not (vLLM's Rust frontend)",
        (*VLLM, *TRITON),
        "the client asked for no call, and gets none; the prompt is the engine's",
    ),
    same("The role `developer` is 422", TRITON, "becomes `system`", _MESSAGES + "a_developer_is_a_system_message"),
    same(
        "Lists of text parts are taken from users only",
        TRITON,
        "become one string elsewhere",
        _MESSAGES + "text_parts_become_one_string",
    ),
    refused(
        "Images and other content that is no text are not taken, or only from users",
        TRITON,
        "400 that names the message",
        _MESSAGES + "an_image_outside_a_users_message_is_refused",
    ),
    same(
        "Fields that SDKs echo in the history: `refusal`, `annotations`, `audio`, `function_call`, `reasoning_content`",
        EVERY,
        "every engine takes or ignores them; they stay",
        _WIRE + "a_history_of_whole_messages",
    ),
    same(
        "Empty `arguments` of an earlier call are 500 (Triton, vLLM's Rust frontend)",
        (*VLLM, *TRITON),
        "become `{}`",
        _MESSAGES + "empty_arguments_become_an_empty_object",
        "tests/unit/engines/test_variants.py::test_arguments_of_earlier_calls_are_sound_on_the_rust_frontend",
    ),
    refused(
        "Broken `arguments` of an earlier call are 500 (Triton, vLLM's Rust frontend)",
        (*VLLM, *TRITON),
        "400 that names the call",
        _WIRE + "broken_arguments_in_the_history",
    ),
    passed_on(
        "A system message that is not the first, or a second one, may be refused by a chat template",
        EVERY,
        "whether it is, and what should be made of it, only the model's template knows; messages are never merged",
        _WIRE + "system_messages_stay_where_they_are",
    ),
    passed_on(
        "Messages of the role `function`, without a `tool_call_id`, or with arguments as an object are 400 on some",
        EVERY,
        "OpenAI refuses them too, or has given them up",
    ),
    same("`tools: []` is 400", VLLM, "left out", _PREPARE + "chat_member"),
    same(
        "`tool_choice` without tools is 400",
        EVERY,
        "`auto` and `none` are left out; other choices are refused in the same words for every engine",
        _PREPARE + "a_choice_of_tools_needs_tools",
    ),
    same(
        "`tool_choice` of the type `allowed_tools` is refused",
        EVERY,
        "the tools that are not allowed are left out, and the choice becomes its mode",
        _PREPARE + "allowed_tools_become_the_only_tools",
        _WIRE + "allowed_tools",
    ),
    same(
        "`parallel_tool_calls` is an unknown field",
        STRICT,
        "the gateway gives the first call only; with `tools.parse: off`, `false` beside tools is 400",
        _WIRE + "one_call_at_most",
        _WIRE + "calls_that_are_left_to_the_engine",
    ),
    same(
        "Legacy `functions` and `function_call` are ignored without a word, or unknown fields",
        EVERY,
        "become tools, and the answer comes back in the old form; with `tools.parse: off` they are 400",
        _WIRE + "functions_of_old",
        _WIRE + "calls_that_are_left_to_the_engine",
    ),
    same(
        "A function without `parameters` is 500 when it is chosen",
        TRITON,
        "gets the empty schema that OpenAI means",
        _PREPARE + "triton_functions_get_a_schema",
    ),
    refused(
        "`tool_choice: required` only ever calls the first tool",
        TRITON,
        "one tool that stands for all is forced; what has no such form, or with `tools.parse: off`, is 400",
        _PREPARE + "triton_cannot_require_one_of_several_tools",
    ),
    passed_on(
        "`tool_choice: required` is 400, and a named choice needs a tool parser and a guided decoding backend",
        TRTLLM,
        "calls are forced through a `response_format` where guided decoding is configured; else 400",
    ),
    passed_on(
        "`strict` in a function is ignored (Triton), or 500 on vLLM's Rust frontend without a reasoning parser",
        (*VLLM, *TRITON),
        "SDKs send it unasked, and refusing it would keep them from calling tools at all",
    ),
    same(
        "`n` above 1 is 400 (Triton, vLLM's Rust frontend)",
        (*VLLM, *TRITON),
        "one request per choice, a few at a time; with a `seed`, each gets the next number",
        _SPLIT + "choices_become_requests",
        _FAN_OUT + "several_choices",
        _FAN_OUT + "several_choices_streamed",
        _FAN_OUT + "the_rust_frontend_of_vllm_is_known_when_it_has_been_asked",
    ),
    passed_on(
        "`n` above 1 with temperature 0 is 400",
        VLLM,
        "the choices would all be the same; the engine says so clearly",
    ),
    passed_on("`n` above 1 is refused by older PyTorch engines", TRTLLM, "the engine's refusal says so"),
    same(
        "Completions take one prompt (Triton, vLLM's Rust frontend)",
        (*VLLM, *TRITON),
        "one request per prompt, choices numbered over all",
        _SPLIT + "prompts_become_requests_each_with_its_choices",
        _FAN_OUT + "several_prompts",
    ),
    refused(
        "Prompts given as token ids are not taken",
        TRITON,
        "400 that names the prompt",
        _PREPARE + "triton_takes_one_prompt",
    ),
    refused(
        "`echo` in a stream cuts the connection; `suffix` and `best_of` do not exist",
        TRITON,
        "400 that names the parameter",
        _PREPARE + "triton_refuses_what_breaks_completions",
    ),
    same(
        "`stream_options: {}` turns usage on; unknown keys in it are 400",
        TRTLLM,
        "says what OpenAI means",
        _PREPARE + "usage_comes_only_when_asked_for",
    ),
    same(
        "`reasoning_effort` knows low, medium and high only",
        TRTLLM,
        "the nearest of them; `none` is refused",
        _PREPARE + "chat_member",
        _PREPARE + "what_an_engine_cannot_give_is_refused",
    ),
    refused(
        "`response_format` is accepted and ignored, or 422",
        TRITON,
        "400: a tool's schema forced by name would change the prompt, and exclude the client's own tools",
        _PREPARE + "what_an_engine_cannot_give_is_refused",
    ),
    passed_on(
        "`response_format` is kept to only if the server was started with a guided decoding backend",
        TRTLLM,
        "nothing the server says shows whether it was; with `guided_decoding: false` in the configuration it is 400",
        "tests/integration/test_parameters.py::test_a_trtllm_without_guided_decoding_promises_no_format",
    ),
    same(
        "vLLM's old `guided_*` members do nothing",
        VLLM,
        "become `structured_outputs`",
        _PREPARE + "old_and_new_structured_output_do_not_mix",
    ),
    same(
        "vLLM's constraints on the output are unknown fields",
        TRTLLM,
        "become the `response_format` that says the same (`json`, `regex`, `ebnf`); else refused",
        _PREPARE + "chat_member",
        _PREPARE + "what_an_engine_cannot_give_is_refused",
    ),
    same(
        "An empty `model` is the first one that is served (vLLM); any name is taken and echoed (trtllm-serve)",
        (*VLLM, *TRTLLM),
        "models are known here, and only their names are taken",
        _ERRORS + "no_model_at_all",
        _ERRORS + "an_unknown_model",
    ),
    passed_on(
        'Numbers and flags in quotes (`"5"`, `"yes"`) and duplicate keys are taken by some, 400 on others',
        EVERY,
        "what OpenAI takes, every engine takes; `stream` itself must be a boolean",
    ),
    passed_on(
        "Limits of values differ: a temperature above 2, `logit_bias` beyond 100, `max_tokens` beyond the context",
        EVERY,
        "what OpenAI takes, every engine takes; what is too much is refused by the engine, or cut to what fits",
    ),
    refused(
        "A chat template in a request is used even though the server does not trust clients' (Rust frontend)",
        VLLM,
        "400, as the Python frontend answers by default",
        "tests/unit/engines/test_variants.py::test_the_rust_frontend_runs_no_clients_template",
    ),
    same(
        "Embeddings take one input",
        TRITON,
        "one request per input, a few at a time, in order, usage added up; an error names its input",
        _FAN_OUT + "many_inputs",
        _FAN_OUT + "one_input_that_fails_is_named",
    ),
    same(
        "One input that is too long fails the batch, and is not named",
        VLLM,
        "named when only one can be too long; else the longest is mentioned",
        _VECTORS + "the_input_that_is_too_long_is_named",
    ),
    same(
        "`encoding_format` may be ignored, and has values that are no JSON",
        (*VLLM, *TRITON),
        "vectors are turned into the form that was asked for; `bytes` is refused",
        _VECTORS + "the_wire_carries_what_was_asked_for",
        _PREPARE + "vectors_come_as_json",
    ),
    refused(
        "Token ids of a foreign tokenizer give wrong vectors without a word",
        (*VLLM, *TRITON),
        "400 unless the model says `token_inputs: pass`",
        _VECTORS + "token_ids_are_refused",
    ),
    passed_on("`dimensions` is 400 for models that are not made for it", VLLM, "so it is with OpenAI"),
    refused(
        "Embeddings exist on vLLM, and on Triton's vLLM backend, only",
        STRICT,
        "400 that says so, unless a Triton engine is declared to serve them",
        _ERRORS + "embeddings_are_served_by_vllm_only",
        _ERRORS + "triton_may_be_declared_to_serve_embeddings",
    ),
)
