"""Habits in how engines fail, and in what they are besides their answers."""

from engines.habits.habit import EVERY, STRICT, TRITON, TRTLLM, VLLM, Habit, passed_on, same

_FAULTS = "tests/unit/engines/test_faults.py::test_"
_ERRORS = "tests/integration/test_errors.py::test_"
_REFUSALS = "tests/integration/test_engine_refusals.py::test_"
_STREAMS = "tests/integration/test_streams.py::test_"
_PROFILE = "tests/unit/engines/test_profile.py::test_"
_HEADERS = "tests/integration/test_headers.py::test_"
_CONNECTIONS = "tests/integration/test_connections.py::test_"

FAILURES: tuple[Habit, ...] = (
    same(
        "Errors come in a dozen shapes: strings, lists, `detail`, flat objects, codes that are numbers",
        EVERY,
        "one shape with OpenAI's types and codes; 422 is 400",
        _FAULTS + "recorded_error",
        _ERRORS + "an_engines_error_becomes_the_contracts",
    ),
    same(
        "Messages show the inside: reprs, paths, dumps of validation",
        EVERY,
        "cleaned, or replaced where they speak of the inside",
        _FAULTS + "nothing_of_the_inside_shows",
        _FAULTS + "a_refusal_that_speaks_of_the_inside_is_replaced",
    ),
    same(
        "A prompt that is too long has no code of its own",
        EVERY,
        "`context_length_exceeded`",
        _FAULTS + "recorded_error",
        _FAULTS + "a_too_long_prompt_is_recognised_on_trtllm",
        _FAULTS + "a_too_long_prompt_is_recognised_on_triton",
        _REFUSALS + "prompts_that_are_too_long_take_no_engine_out",
    ),
    same(
        "Whatever the engine refuses is 500: long prompts, values out of range, broken earlier calls",
        TRITON,
        "400, and not counted against the engine, when its words are known; other words are taken for a failure",
        _FAULTS + "what_vllm_refuses_behind_triton_is_the_clients_mistake",
        _FAULTS + "other_failures_behind_triton_stay_failures",
        _REFUSALS + "prompts_that_are_too_long_take_no_engine_out",
    ),
    same(
        "A stream whose prompt is too long is cut like one that fails, before its first token",
        TRITON,
        "asked once more for a whole answer of one token, which says what is wrong: 400, and not counted against the "
        "engine; another replica when that shows no mistake of the client's",
        _REFUSALS + "tritons_streams_of_too_long_prompts_are_refused_in_words",
        _REFUSALS + "what_a_cut_stream_is_asked_again_for",
        _REFUSALS + "a_stream_that_a_failing_engine_cut_stays_its_failure",
    ),
    same(
        "Error texts name the model as the engine calls it",
        EVERY,
        "the name that the client asked for, wherever it stands in the text",
        _REFUSALS + "an_engine_s_own_name_for_a_model_stays_inside",
    ),
    same(
        "A model that is not served is 400 (Triton), or served all the same (trtllm-serve)",
        STRICT,
        "404 `model_not_found`",
        _FAULTS + "recorded_error",
        _ERRORS + "an_unknown_model",
    ),
    same(
        "A failure of the engine is 400",
        TRTLLM,
        "502, when its words are known; other words are taken for a refusal",
        _FAULTS + "a_failing_trtllm_engine_is_not_the_clients_mistake",
        _FAULTS + "a_clients_own_words_do_not_pass_for_the_engines",
    ),
    same(
        "Chat sent to an embedding model, and the reverse, looks like a wrong address",
        (*VLLM, *TRITON),
        "400 that says what the model is for",
        _ERRORS + "embeddings_of_a_chat_model",
        _ERRORS + "chat_with_an_embedding_model",
    ),
    same(
        "A full queue is 503 without `retry-after`",
        VLLM,
        "another replica, or 503 with `retry-after`",
        _ERRORS + "a_busy_engine_says_when_to_come_again",
    ),
    same(
        "An error in a stream is followed by `[DONE]`, once or twice",
        (*VLLM, *TRTLLM),
        "one error event, no `[DONE]`, and a cut",
        _STREAMS + "an_error_in_the_middle_ends_the_stream_without_done",
    ),
    same(
        "A stream that fails is cut without a word, even before its first token",
        STRICT,
        "another replica before the first token, one error event after it",
        _STREAMS + "a_stream_cut_in_the_middle_ends_with_an_error_and_no_done",
        _STREAMS + "another_replica_serves_when_one_fails_before_the_first_word",
    ),
    same(
        "A server that is told to stop falls silent in its streams for ever",
        VLLM,
        "the stream ends after `timeouts.idle` with an error",
        "tests/integration/test_timeouts.py::test_silence_in_the_middle_ends_the_stream",
    ),
    passed_on(
        "A server that is told to stop refuses with 500 while its health is still 200",
        VLLM,
        "its answers count: other replicas serve, and the circuit breaker opens",
    ),
    same(
        "Bytes that are no text, or no JSON, are errors in shapes of their own",
        EVERY,
        "refused here, in one shape",
        _ERRORS + "a_body_that_cannot_be_read",
    ),
    same(
        "A content type other than JSON is 400 (vLLM), 422 (Triton), or 500 in plain text (trtllm-serve)",
        EVERY,
        "refused here, in one shape; engines get `application/json` whatever the client says",
        _ERRORS + "a_body_says_that_it_is_json",
        _HEADERS + "engines_get_the_gateways_headers_only",
    ),
    same(
        "No messages (null) are errors in words of their own, or reach the chat template",
        EVERY,
        "400 that names `messages`",
        _REFUSALS + "no_messages_at_all",
    ),
    passed_on(
        "The refusal of a long prompt counts its tokens to one above the limit only (vLLM's Python frontend)",
        VLLM,
        "the engine knows no better number",
    ),
    same(
        "Errors of `/v1/messages` have Anthropic's shape, or OpenAI's where the request is malformed",
        VLLM,
        "Anthropic's shape and types",
        "tests/integration/test_messages.py::test_the_engines_errors_in_anthropics_shape",
    ),
)

SERVICE: tuple[Habit, ...] = (
    same(
        "Health has other paths and other words: 400 is `not ready` on Triton, 503 elsewhere",
        EVERY,
        "each kind's own path and statuses",
        _PROFILE + "health_statuses",
    ),
    passed_on(
        "Health turns bad for seconds while any model is unloading",
        TRITON,
        "it takes several failed checks in a row to call an endpoint down",
    ),
    passed_on(
        "`/metrics` is JSON and gives each value once only",
        TRTLLM,
        "it is never read here; `/prometheus/metrics` is",
    ),
    same(
        "Idle connections are closed after 5 s",
        EVERY,
        "given up before; a request that is lost so is sent again",
        _CONNECTIONS + "a_connection_is_given_up_before_the_engine_would",
        _CONNECTIONS + "a_request_lost_on_a_stale_connection_is_sent_again",
    ),
    passed_on(
        "Work goes on when a client leaves (Triton), or for up to a second (trtllm-serve)",
        STRICT,
        "the connection is closed at once; more cannot be done from outside",
        "tests/integration/test_leaving.py::test_the_engine_sees_its_request_end",
    ),
    same(
        "A request whose sender closes its half of the connection is dropped without an answer",
        VLLM,
        "the gateway keeps its half open until the answer is whole",
        _CONNECTIONS + "a_connection_stays_open_both_ways_while_the_engine_works",
    ),
    same(
        "Streams of `/v1/responses` and `/v1/messages` have named events, and no `[DONE]`",
        VLLM,
        "passed on as they are; their own last event tells that they are whole",
        "tests/integration/test_responses.py::test_a_stream_keeps_its_event_names_and_has_no_done",
        "tests/integration/test_messages.py::test_a_stream_keeps_its_event_names_and_has_no_done",
    ),
    same(
        "Slashes at the end, HEAD, preflights and HTTP/1.0 are treated in as many ways as there are servers",
        EVERY,
        "clients speak HTTP with the gateway alone",
        _CONNECTIONS + "http_1_0",
        "tests/integration/test_control_plane.py::test_a_slash_at_the_end_makes_no_difference_to_the_list",
        "tests/integration/test_control_plane.py::test_head_is_answered_as_get_is",
        _HEADERS + "preflight_needs_no_key_and_follows_the_allow_list",
    ),
    same(
        "`/v1/responses` and `/v1/messages` exist on some: vLLM's Python frontend, newer trtllm-serve",
        EVERY,
        "400 that says so elsewhere; one that says 404 is not asked again for a while where another has it",
        "tests/integration/test_responses.py::test_an_engine_without_the_path_is_a_clear_refusal",
        "tests/integration/test_responses.py::test_an_older_engine_without_the_path",
        "tests/integration/test_responses.py::test_an_older_engine_beside_one_with_the_path_is_asked_once",
    ),
    passed_on(
        "A LoRA adapter is a model with a name of its own; Triton's is the model's with a separator",
        EVERY,
        "it is configured as a model: `model: base_lora_adapter`",
    ),
    same(
        "A disaggregated server lists no models, and its health is 500 until it is ready",
        TRTLLM,
        "models come from the configuration, and 500 is `not ready`",
        _PROFILE + "health_statuses",
        "tests/integration/test_control_plane.py::test_models_are_listed_while_engines_hang_fail_or_talk_nonsense",
    ),
    same(
        "`x-request-id` becomes the answer's id unchecked (vLLM), or is ignored",
        EVERY,
        "engines get the gateway's own id, clients get theirs back",
        _HEADERS + "a_clean_id_of_the_client_comes_back_and_the_engine_gets_another",
    ),
    same(
        "`GET /v1/models` lists other names, changing times and ids",
        EVERY,
        "the gateway's own list, which never fails because an engine is down",
        "tests/integration/test_control_plane.py::test_every_name_and_alias_is_a_model",
    ),
    same(
        "Keys guard some paths only (vLLM), another header (Triton), or do not exist (trtllm-serve)",
        EVERY,
        "only known paths are forwarded, with the engine's key (in the header that `api_key_header` names) and never "
        "with the client's",
        _HEADERS + "an_engine_gets_its_own_key_and_never_the_clients",
        _HEADERS + "a_restricted_triton_is_served_with_its_key",
    ),
    same(
        "vLLM's Rust frontend has other paths, types and limits",
        VLLM,
        "recognised by its version; see the variant above",
        "tests/unit/engines/test_variants.py::test_the_rust_frontend_has_fewer_paths",
        "tests/unit/engines/test_probes.py::test_the_rust_frontend_names_itself",
    ),
    passed_on(
        "One tokenizer, tool parser and chat template serve all models of a process",
        TRITON,
        "a matter of how the server is started",
    ),
    passed_on(
        "Models behind the TensorRT-LLM backend must have the tensors that the frontend sends, else 500",
        TRITON,
        "a matter of the model repository",
    ),
    passed_on(
        "Very long headers and bodies are refused (Rust frontend: 8 MiB and more), or read whatever they are",
        EVERY,
        "`server.max_body` is the gateway's limit; the engine's refusal is told as 400",
    ),
)
