"""Rows that several parameter tables share.

The rule behind them: a member may be dropped when the client gets the same answer without it (it is a hint, a label or
bookkeeping); it is refused when leaving it out would give something else than was asked for.
"""

from collections.abc import Mapping

from engines.policy import Drop, Pass, Policy, Reject, Translate
from engines.tools import parallel_tool_calls, tool_choice

PASS = Pass()

BOOKKEEPING: Mapping[str, Policy] = {
    "metadata": Drop("labels for a store that the engine does not have"),
    "prompt_cache_key": Drop("a hint for OpenAI's cache; engines find shared prefixes by themselves"),
    "prompt_cache_options": Drop("a hint for OpenAI's cache"),
    "prompt_cache_retention": Drop("a hint for OpenAI's cache"),
    "prediction": Drop("only makes answers faster, never different"),
    "safety_identifier": Drop("names an end user to OpenAI"),
    "service_tier": Drop("engines have no tiers", silent=(b'"auto"', b'"default"')),
    "store": Drop("engines keep nothing", silent=(b"false",)),
    "verbosity": Drop("a hint that the model cannot be given", silent=(b'"medium"',)),
}
"""OpenAI's members that say nothing about the answer, for engines that refuse unknown fields."""

PROMISES: Mapping[str, Policy] = {
    "audio": Reject("it gives no audio"),
    "modalities": Reject("it gives only text", neutral=(b'["text"]',)),
    "moderation": Reject("it does not moderate"),
    "web_search_options": Reject("it does not search the web"),
    "functions": Reject("use 'tools' instead", neutral=(b"[]",)),
    "function_call": Reject("use 'tool_choice' instead", neutral=(b'"none"', b'"auto"')),
}
"""Members that promise something no engine does. vLLM and Triton would take them without a word and do nothing."""

GUIDED: Mapping[str, Policy] = {
    name: Reject("it has no such constraint on the output; see 'response_format'")
    for name in ("guided_json", "guided_regex", "guided_choice", "guided_grammar", "structured_outputs")
} | {
    "guided_decoding_backend": Drop("the engine chooses how it keeps to a constraint"),
    "guided_whitespace_pattern": Reject("it has no such constraint on the output"),
}
"""vLLM's constraints on the output, for engines that have none of the sort."""

TRANSFERS: Mapping[str, Policy] = {
    name: Reject("it is for engines that hand a request on to one another", neutral=(b"{}",))
    for name in ("disaggregated_params", "ec_transfer_params", "kv_transfer_params", "vllm_xargs")
}
"""Engines' own members for prefill and decoding on different servers, and vLLM's place for plug-ins."""

_NO_SAMPLING = "it has no such sampling parameter"
_NO_TEMPLATE = "its chat template cannot be told so"
_NO_TOKENS = "its answers cannot carry that"

ENGINE_EXTRAS: Mapping[str, Policy] = {
    # sampling
    "top_k": Reject(_NO_SAMPLING, neutral=(b"-1", b"0")),
    "min_p": Reject(_NO_SAMPLING, neutral=(b"0", b"0.0")),
    "repetition_penalty": Reject(_NO_SAMPLING, neutral=(b"1", b"1.0")),
    "length_penalty": Reject(_NO_SAMPLING, neutral=(b"1", b"1.0")),
    "early_stopping": Reject(_NO_SAMPLING, neutral=(b"false",)),
    "use_beam_search": Reject(_NO_SAMPLING, neutral=(b"false",)),
    "top_p_min": Reject(_NO_SAMPLING, neutral=(b"0", b"0.0")),
    "stop_token_ids": Reject(_NO_SAMPLING, neutral=(b"[]",)),
    "bad_words": Reject(_NO_SAMPLING, neutral=(b"[]",)),
    "allowed_token_ids": Reject(_NO_SAMPLING, neutral=(b"[]",)),
    "min_tokens": Reject(_NO_SAMPLING, neutral=(b"0",)),
    "ignore_eos": Reject(_NO_SAMPLING, neutral=(b"false",)),
    "repetition_detection": Reject(_NO_SAMPLING),
    "watermarking": Reject(_NO_SAMPLING, neutral=(b"false",)),
    "thinking_token_budget": Reject(_NO_SAMPLING, neutral=(b"-1",)),
    "thinking": Reject(_NO_TEMPLATE),
    # the prompt
    "add_generation_prompt": Reject(_NO_TEMPLATE, neutral=(b"true",)),
    "add_special_tokens": Reject(_NO_TEMPLATE),
    "chat_template": Reject(_NO_TEMPLATE),
    "chat_template_kwargs": Reject(_NO_TEMPLATE, neutral=(b"{}",)),
    "continue_final_message": Reject(_NO_TEMPLATE, neutral=(b"false",)),
    "documents": Reject(_NO_TEMPLATE, neutral=(b"[]",)),
    "media_io_kwargs": Reject(_NO_TEMPLATE, neutral=(b"{}",)),
    "mm_processor_kwargs": Reject(_NO_TEMPLATE, neutral=(b"{}",)),
    "prompt_embeds": Reject("it takes no embeddings as prompts"),
    "prompt_ignore_length": Reject(_NO_SAMPLING, neutral=(b"0",)),
    "truncate_prompt_tokens": Reject("it does not cut prompts"),
    "truncation_side": Drop("says nothing without 'truncate_prompt_tokens'"),
    "cache_salt": Reject("it cannot keep prompts apart in its prefix cache"),
    "lora_request": Reject("a LoRA adapter has a model name of its own"),
    # the answer
    "include_reasoning": Reject("it cannot leave reasoning out", neutral=(b"true",)),
    "include_stop_str_in_output": Reject(_NO_SAMPLING, neutral=(b"false",)),
    "skip_special_tokens": Reject(_NO_SAMPLING, neutral=(b"true",)),
    "spaces_between_special_tokens": Drop("only shows when special tokens do", silent=(b"true",)),
    "detokenize": Reject(_NO_TOKENS, neutral=(b"true",)),
    "logprob_token_ids": Reject(_NO_TOKENS),
    "prompt_logprobs": Reject(_NO_TOKENS),
    "return_context_logits": Reject(_NO_TOKENS, neutral=(b"false",)),
    "return_prompt_text": Reject(_NO_TOKENS, neutral=(b"false",)),
    "return_token_ids": Reject(_NO_TOKENS, neutral=(b"false",)),
    "return_tokens_as_token_ids": Reject(_NO_TOKENS, neutral=(b"false",)),
    "stream_interval": Drop("only says how many tokens share an event"),
    # bookkeeping
    "priority": Drop("it has no priorities for requests", silent=(b"0",)),
    "request_id": Drop("the gateway gives requests their ids"),
    "session_id": Drop("only a label"),
}
"""What engines have beyond OpenAI, as an engine sees it that has none of it; a table passes those its engine knows.

Neutral values ask for what happens anyway. Names: vLLM's protocol at 002032ee, TensorRT-LLM's at 0076e939.
"""

EMBEDDING_EXTRAS: Mapping[str, Policy] = {
    "add_special_tokens": Reject(_NO_TEMPLATE, neutral=(b"true",)),
    "cache_salt": Reject("it cannot keep inputs apart in its prefix cache"),
    "chat_template": Reject(_NO_TEMPLATE),
    "chat_template_kwargs": Reject(_NO_TEMPLATE, neutral=(b"{}",)),
    "embed_dtype": Reject("it gives float32 only", neutral=(b'"float32"',)),
    "endianness": Reject("it gives little-endian numbers only", neutral=(b'"little"', b'"native"')),
    "messages": Reject("it embeds text; use 'input'"),
    "mm_processor_kwargs": Reject(_NO_TEMPLATE, neutral=(b"{}",)),
    "normalize": Reject("whether vectors are normalised is the model's affair"),
    "priority": Drop("it has no priorities for requests", silent=(b"0",)),
    "request_id": Drop("the gateway gives requests their ids"),
    "truncate_prompt_tokens": Reject("it does not cut inputs"),
    "truncation_side": Drop("says nothing without 'truncate_prompt_tokens'"),
    "use_activation": Reject("whether vectors are normalised is the model's affair"),
}
"""vLLM's members for embeddings beyond OpenAI's, as an engine sees them that has none of them."""

CHOICE = "left out without tools if 'auto' or 'none', otherwise refused; 'allowed_tools' becomes its mode"
OFFERED = "an empty list is left out, and so are tools that 'allowed_tools' does not allow"

TOOLS: Mapping[str, Policy] = {
    "parallel_tool_calls": Translate(parallel_tool_calls, "left out when true or without tools; otherwise refused"),
    "tool_choice": Translate(tool_choice, CHOICE),
}
"""For engines that do not know `parallel_tool_calls`."""
