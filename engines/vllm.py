"""vLLM 0.32, both frontends: nearly everything passes.

What it does not know it ignores without a word (`chat_unknown_fields`, `chat_functions_legacy`,
`chat_guided_choice_legacy`), so members that promise something are refused here, and labels go on untouched.
The Rust frontend is another server in front of the same engine: a variant with what it serves one at a time.
"""

import re

from engines.faults import FaultKind, FaultRule
from engines.messages import with_sound_arguments
from engines.parameters import BOOKKEEPING, CHOICE, EMBEDDING_EXTRAS, ENGINE_EXTRAS, OFFERED, PASS, PROMISES, TRANSFERS
from engines.policy import Drop, Emulate, Pass, Policy, Reject, Rename, Table, Translate
from engines.profile import EngineKind, HealthProbe, Operation, Profile, Variant
from engines.splitters import choices, prompts
from engines.tools import offered_tools, parallel_or_absent, tool_choice
from engines.translators import GUIDED_FIELDS, encoding_format, leave_out, structured_outputs

_IGNORED = Pass("ignored by the engine, and nothing in the answer depends on it")
_UNKNOWN_EXTRAS = frozenset(
    {
        "early_stopping",
        "top_p_min",
        "thinking",
        "prompt_ignore_length",
        "lora_request",
        "detokenize",
        "return_context_logits",
    }
)
"""TensorRT-LLM's, which vLLM would ignore."""

_EXTRAS: dict[str, Policy] = {
    name: policy if name in _UNKNOWN_EXTRAS else PASS for name, policy in ENGINE_EXTRAS.items()
}
_GUIDED: dict[str, Policy] = {
    "structured_outputs": PASS,
    "guided_decoding_backend": Drop("the engine chooses how it keeps to a constraint"),
    **{name: Translate(structured_outputs, "becomes 'structured_outputs'") for name in GUIDED_FIELDS},
}
_GENERATION: dict[str, Policy] = {
    **_EXTRAS,
    **_GUIDED,
    "frequency_penalty": PASS,
    "logit_bias": PASS,
    "n": Pass("more than 1 needs a temperature above 0"),
    "presence_penalty": PASS,
    "response_format": PASS,
    "seed": PASS,
    "stop": PASS,
    "stream": PASS,
    "stream_options": PASS,
    "temperature": PASS,
    "top_p": PASS,
    "user": _IGNORED,
    **TRANSFERS,
    "ec_transfer_params": PASS,
    "kv_transfer_params": PASS,
    "vllm_xargs": PASS,
}

CHAT = Table(
    "vLLM",
    {
        **dict.fromkeys(BOOKKEEPING, _IGNORED),
        **_GENERATION,
        **PROMISES,
        "modalities": Reject("it gives only text", neutral=(b'["text"]',), keep_neutral=True),
        "messages": Pass("any role is taken; text parts are joined with a newline"),
        "logprobs": PASS,
        "top_logprobs": PASS,
        "max_completion_tokens": Pass("wins over max_tokens; both are cut to what fits the context"),
        "max_tokens": PASS,
        "parallel_tool_calls": Translate(parallel_or_absent, "a null, which would mean false, is left out"),
        "reasoning_effort": PASS,
        "tools": Translate(offered_tools, OFFERED),
        "tool_choice": Translate(tool_choice, CHOICE),
        "best_of": Reject("use 'n'", neutral=(b"1",)),
        "echo": PASS,
    },
)
COMPLETIONS = Table(
    "vLLM",
    {
        **_GENERATION,
        "prompt": PASS,
        "best_of": Reject("it has been removed from the engine", neutral=(b"1",)),
        "echo": PASS,
        "logprobs": PASS,
        "max_tokens": Pass("16 when left out, as with OpenAI"),
        "max_completion_tokens": Rename("max_tokens", "ignored otherwise"),
        "suffix": Translate(leave_out(b'""', b"null"), "an empty suffix is left out; others only for infilling models"),
    },
)
EMBEDDINGS = Table(
    "vLLM",
    {
        **dict.fromkeys(EMBEDDING_EXTRAS, PASS),
        "input": Pass("a text, a list of texts, token ids, or lists of token ids"),
        "dimensions": Pass("only for Matryoshka models"),
        "encoding_format": Translate(encoding_format, "'bytes' and 'bytes_only', which are no JSON, are refused"),
        "user": _IGNORED,
    },
)

RUST = Variant(
    "the Rust frontend",
    rust_frontend=True,
    lacks=frozenset({Operation.RESPONSES, Operation.MESSAGES, Operation.COUNT_TOKENS}),
    tables={
        Operation.CHAT: Table(
            "vLLM",
            {
                **CHAT.policies,
                "chat_template": Reject("this frontend would run any client's template"),
                "messages": Translate(
                    with_sound_arguments, "empty arguments of earlier calls become {}, broken ones are refused"
                ),
                "n": Emulate(choices, "one request per choice; it takes only 1", copies=True),
            },
        ),
        Operation.COMPLETIONS: Table(
            "vLLM",
            {
                **COMPLETIONS.policies,
                "n": Emulate(choices, "one request per choice; it takes only 1", copies=True),
                "prompt": Emulate(prompts, "one request per prompt of a list; it takes one"),
            },
        ),
    },
)

FAULT_RULES = (
    FaultRule(
        re.compile(r"^Response with id '"), FaultKind.INVALID_REQUEST, None, "previous_response_id", statuses=(404,)
    ),
    FaultRule(
        re.compile(r"chat template error: assistant tool call .* has invalid JSON arguments"),
        FaultKind.INVALID_REQUEST,
        "The arguments of an earlier tool call are not valid JSON.",
        "messages",
        statuses=(500,),
    ),
    FaultRule(
        re.compile(r"^'NoneType' object is not iterable$"),
        FaultKind.INVALID_REQUEST,
        "Invalid value for 'messages': it must be a list, not null.",
        "messages",
        statuses=(400,),
    ),
    FaultRule(
        re.compile(r"^TextEncodeInput must be Union"),
        FaultKind.INVALID_REQUEST,
        "The text has characters that are no characters (halves of surrogate pairs).",
        statuses=(400,),
    ),
    FaultRule(re.compile(r"^Cannot apply chat template to an empty"), FaultKind.INVALID_REQUEST, None, "messages"),
    FaultRule(
        re.compile(r"^\S+ is not a multimodal model"),
        FaultKind.INVALID_REQUEST,
        "This model takes only text.",
        "messages",
    ),
    FaultRule(
        re.compile(r"length limit exceeded"), FaultKind.INVALID_REQUEST, "The request is too large for the engine."
    ),
)

PROFILE = Profile(
    kind=EngineKind.VLLM,
    title="vLLM",
    paths={
        Operation.CHAT: b"/v1/chat/completions",
        Operation.COMPLETIONS: b"/v1/completions",
        Operation.EMBEDDINGS: b"/v1/embeddings",
        # The Rust frontend has only the last two of these; it answers 404 to the others.
        Operation.RESPONSES: b"/v1/responses",
        Operation.MESSAGES: b"/v1/messages",
        Operation.COUNT_TOKENS: b"/v1/messages/count_tokens",
        Operation.RERANK: b"/v1/rerank",
        Operation.SCORE: b"/v1/score",
        Operation.TOKENIZE: b"/tokenize",
        Operation.DETOKENIZE: b"/detokenize",
    },
    tables={Operation.CHAT: CHAT, Operation.COMPLETIONS: COMPLETIONS, Operation.EMBEDDINGS: EMBEDDINGS},
    health=HealthProbe("/health"),
    fault_rules=FAULT_RULES,
    variants=(RUST,),
)
