"""trtllm-serve of TensorRT-LLM: every unknown field is 400, so each member needs a row.

Evidence: `recordings/trtllm` (transcribed and executed, not a real server) and the protocol models at 0076e939.
A failure of its engine comes back as 400 `BadRequestError` when not streaming (`chat_engine_error_nonstream`): only its
words can tell it from a client's mistake, so a failure in words not listed here is taken for a refusal.
"""

import re
from dataclasses import replace

from engines.answers import Answers
from engines.faults import FAILURE, FaultKind, FaultRule
from engines.parameters import BOOKKEEPING, ENGINE_EXTRAS, GUIDED, OFFERED, PASS, PROMISES, TOOLS, TRANSFERS
from engines.policy import Default, Pass, Policy, Reject, Rename, Table, Translate
from engines.profile import EngineKind, HealthProbe, Operation, Profile, Variant
from engines.tools import offered_tools
from engines.translators import CONSTRAINTS, constraint_for_trtllm, leave_out, reasoning_effort, stream_options

_KNOWN_EXTRAS = frozenset(
    {
        "add_special_tokens",
        "early_stopping",
        "ignore_eos",
        "include_stop_str_in_output",
        "length_penalty",
        "lora_request",
        "min_p",
        "min_tokens",
        "prompt_ignore_length",
        "repetition_penalty",
        "skip_special_tokens",
        "spaces_between_special_tokens",
        "stop_token_ids",
        "thinking_token_budget",
        "top_p_min",
        "truncate_prompt_tokens",
        "use_beam_search",
    }
)
_KNOWN_CHAT_EXTRAS = frozenset(
    {
        "add_generation_prompt",
        "cache_salt",
        "chat_template",
        "chat_template_kwargs",
        "documents",
        "media_io_kwargs",
        "mm_processor_kwargs",
        "thinking",
    }
)
_EXTRAS: dict[str, Policy] = {
    **{name: PASS if name in _KNOWN_EXTRAS else policy for name, policy in ENGINE_EXTRAS.items()},
    "top_k": Translate(leave_out(b"-1"), "-1 (vLLM's word for all) is left out; here 0 says so"),
}
_GENERATION: dict[str, Policy] = {
    **_EXTRAS,
    **GUIDED,
    **{name: Translate(constraint_for_trtllm, "becomes a 'response_format' that it knows") for name in CONSTRAINTS},
    **TRANSFERS,
    "best_of": PASS,
    "frequency_penalty": PASS,
    "logit_bias": PASS,
    "n": Pass("older PyTorch engines take only 1"),
    "presence_penalty": PASS,
    "response_format": Pass("kept to only if the server was started with a guided decoding backend"),
    "seed": PASS,
    "stop": PASS,
    "stream": PASS,
    "stream_options": Translate(stream_options, "usage only when asked for (on by default there)"),
    "temperature": Pass("no upper limit"),
    "top_p": PASS,
    "user": PASS,
    "max_tokens": PASS,
    "max_completion_tokens": Rename("max_tokens", "both together are 400; max_tokens is the name every version takes"),
    "disaggregated_params": PASS,
}

CHAT = Table(
    "trtllm-serve",
    {
        **BOOKKEEPING,
        **_GENERATION,
        **dict.fromkeys(_KNOWN_CHAT_EXTRAS, PASS),
        **PROMISES,
        **TOOLS,
        "messages": Pass("any role is taken"),
        "logprobs": PASS,
        "top_logprobs": PASS,
        "reasoning_effort": Translate(reasoning_effort, "the nearest of low, medium and high; 'none' is refused"),
        "tools": Translate(offered_tools, OFFERED),
        "echo": PASS,
    },
    remove_nulls=True,
)
COMPLETIONS = Table(
    "trtllm-serve",
    {
        **_GENERATION,
        "prompt": PASS,
        "echo": PASS,
        "logprobs": PASS,
        "suffix": Reject("it does not fill in text", neutral=(b'""',)),
    },
    defaults=(
        Default("max_tokens", b"16", "the engine's own limit applies otherwise", unless=("max_completion_tokens",)),
    ),
    remove_nulls=True,
)

_UNGUIDED = Reject("it was started without guided decoding, and would not keep the answer to it")
UNGUIDED = Variant(
    "said to have no guided decoding (`guided_decoding: false`)",
    unguided=True,
    tables={
        operation: Table(
            table.engine,
            {
                **table.policies,
                **dict.fromkeys(CONSTRAINTS, _UNGUIDED),
                "response_format": replace(_UNGUIDED, neutral=(b'{"type":"text"}', b"{}")),
            },
            defaults=table.defaults,
            remove_nulls=table.remove_nulls,
        )
        for operation, table in ((Operation.CHAT, CHAT), (Operation.COMPLETIONS, COMPLETIONS))
    },
)

# First those that quote the client, whose words must not pass for a failure.
FAULT_RULES = (
    FaultRule(
        re.compile(r"^tool_choice with a named function requires .* guided decoding backend"),
        FaultKind.INVALID_REQUEST,
        "'tool_choice' cannot force a call: this model's engine was started without guided decoding.",
        "tool_choice",
    ),
    FaultRule(
        re.compile(r"^tool_choice(?:=| requested function\b)|^When using `tool_choice`"),
        FaultKind.INVALID_REQUEST,
        None,
        "tool_choice",
    ),
    FaultRule(re.compile(r"^stream_options can only"), FaultKind.INVALID_REQUEST, None, "stream_options"),
    FaultRule(re.compile(r"^'prompt' must"), FaultKind.INVALID_REQUEST, None, "prompt"),
    FAILURE,
    FaultRule(re.compile(r"queue (?:is )?full|too many requests", re.IGNORECASE), FaultKind.OVERLOADED),
)

PROFILE = Profile(
    kind=EngineKind.TRTLLM,
    title="trtllm-serve",
    paths={
        Operation.CHAT: b"/v1/chat/completions",
        Operation.COMPLETIONS: b"/v1/completions",
        # In versions of 2026 (read in the source, not recorded); older ones answer 404.
        Operation.RESPONSES: b"/v1/responses",
        Operation.MESSAGES: b"/v1/messages",
        Operation.COUNT_TOKENS: b"/v1/messages/count_tokens",
    },
    tables={Operation.CHAT: CHAT, Operation.COMPLETIONS: COMPLETIONS},
    health=HealthProbe("/health", not_ready=frozenset({500, 503})),
    fault_rules=FAULT_RULES,
    answers=Answers(hollow_deltas=True),
    # `/metrics` is JSON and gives each value once only; this path exists when `return_perf_metrics` is set.
    metrics_path="/prometheus/metrics",
    variants=(UNGUIDED,),
)
