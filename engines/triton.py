"""The OpenAI frontend of Triton Inference Server (2.73): a schema of 2024 that answers 422 to every other field.

Evidence: `recordings/triton/openai_frontend` (the unmodified frontend) and its schema at 04d24616.
"""

import re
from dataclasses import replace

from engines.answers import Answers
from engines.faults import FAILURE, TOO_LONG, FaultKind, FaultRule
from engines.messages import for_triton
from engines.parameters import (
    BOOKKEEPING,
    CHOICE,
    EMBEDDING_EXTRAS,
    ENGINE_EXTRAS,
    GUIDED,
    OFFERED,
    PASS,
    PROMISES,
    TOOLS,
    TRANSFERS,
)
from engines.policy import Default, Drop, Emulate, Pass, Policy, Reject, Rename, Table, Translate
from engines.profile import EngineKind, HealthProbe, Operation, Profile
from engines.splitters import choices, inputs, text_prompts
from engines.tools import tool_choice_for_triton, tools_with_parameters
from engines.translators import echo, encoding_format

UNTIL_THE_END = b"131072"
"""`max_tokens` for a chat whose client sets no limit, instead of the frontend's 16.

OpenAI means "until the model stops or its context is full". The frontend hands the number on: vLLM's engine stops at
the end of the context by itself, and TensorRT-LLM's executor shortens a request that would not fit (both as read in
their sources, not recorded). So it only has to be more than an answer can be, and fit a 32-bit tensor. An engine that
reserves memory for the whole answer (TensorRT-LLM's scheduler policy `guaranteed_no_evict`) reserves to the end of its
context: clients do better to give `max_tokens` there.
"""

_EXTRAS: dict[str, Policy] = {**ENGINE_EXTRAS, **GUIDED, **TRANSFERS, "min_tokens": PASS, "ignore_eos": PASS}
_GENERATION: dict[str, Policy] = {
    **_EXTRAS,
    "frequency_penalty": PASS,
    "logit_bias": Reject("it takes none", neutral=(b"{}",)),
    "logprobs": Pass("only on its vLLM backend"),
    "n": Emulate(choices, "one request per choice; it gives one at a time", copies=True),
    "presence_penalty": PASS,
    "response_format": Reject(
        "it would not keep the answer to the format asked for", neutral=(b'{"type":"text"}', b"{}")
    ),
    "seed": PASS,
    "stop": PASS,
    "stream": PASS,
    "stream_options": Pass("keys it does not know are ignored"),
    "temperature": PASS,
    "top_p": PASS,
    "user": PASS,
    "max_tokens": PASS,
}


CHAT = Table(
    "Triton",
    {
        **BOOKKEEPING,
        **_GENERATION,
        **PROMISES,
        **TOOLS,
        "messages": Translate(for_triton, "'developer' becomes 'system', text parts one string, empty arguments {}"),
        "top_logprobs": PASS,
        "max_completion_tokens": Pass("wins over max_tokens"),
        "reasoning_effort": Drop("a hint that the model cannot be given"),
        "tool_choice": Translate(
            tool_choice_for_triton, f"{CHOICE}; 'required' among several is refused: it would call the first"
        ),
        "tools": Translate(tools_with_parameters, f"{OFFERED}; functions without a schema get an empty one"),
        "include_reasoning": Drop("no field of the answer holds reasoning", silent=(b"true",)),
        "best_of": Reject("it gives one choice per request", neutral=(b"1",)),
        "echo": Reject("it cannot begin the answer with the prompt", neutral=(b"false",)),
    },
    defaults=(
        Default("max_tokens", UNTIL_THE_END, "the frontend stops at 16 otherwise", unless=("max_completion_tokens",)),
        Default("temperature", b"1", "the frontend takes 0.7 otherwise"),
    ),
    remove_nulls=True,
)
COMPLETIONS = Table(
    "Triton",
    {
        **_GENERATION,
        "prompt": Emulate(text_prompts, "one request per prompt of a list; token ids are refused"),
        "best_of": Reject("its engines have no such search", neutral=(b"1",)),
        "echo": Translate(echo, "refused in streams, which would be cut"),
        "max_completion_tokens": Rename("max_tokens", "unknown there"),
        "suffix": Reject("it does not fill in text", neutral=(b'""',)),
    },
    defaults=(
        Default("max_tokens", b"16", "its own default can be set to something else", unless=("max_completion_tokens",)),
    ),
    remove_nulls=True,
)
EMBEDDINGS = Table(
    "Triton",
    {
        **EMBEDDING_EXTRAS,
        "input": Emulate(inputs, "one request per input of a list; it takes one text or one list of token ids"),
        "dimensions": PASS,
        "encoding_format": Translate(encoding_format, "'bytes' and 'bytes_only' are refused"),
        "user": PASS,
    },
    remove_nulls=True,
)

_WRONG_SORT = "This model does not serve this operation."
_SAMPLING = (
    r"(?:temperature|(?:max|min)_tokens|top_[pk]|min_p|n|seed|stop|stop_token_ids|bad_words|(?:prompt_)?logprobs|"
    r"(?:presence|frequency|repetition)_penalty)"
)
"""What vLLM's sampling parameters complain about, each in words that begin with its name (its source, 0.32)."""
# The frontend answers 500 to whatever its engine raises: what the client has to mend is told by words alone.
_CLIENTS_500 = (
    replace(FAILURE, statuses=(500,)),
    FaultRule(re.compile(TOO_LONG, re.IGNORECASE), FaultKind.CONTEXT_LENGTH, statuses=(500,)),
    FaultRule(
        re.compile(r"^The (?:decoder )?prompt cannot be empty"),
        FaultKind.INVALID_REQUEST,
        "The prompt must not be empty.",
        statuses=(500,),
    ),
    FaultRule(
        re.compile(rf"^{_SAMPLING} (?:must be|must contain|cannot contain)\b"),
        FaultKind.INVALID_REQUEST,
        statuses=(500,),
    ),
    FaultRule(
        re.compile(r"^Requested (?:sample )?logprobs of "), FaultKind.INVALID_REQUEST, None, "logprobs", statuses=(500,)
    ),
    FaultRule(
        re.compile(r": line \d+ column \d+ \(char \d+\)$"),
        FaultKind.INVALID_REQUEST,
        "The arguments of an earlier tool call are not valid JSON.",
        "messages",
        statuses=(500,),
    ),
    FaultRule(
        re.compile(r"^'NoneType' object has no attribute 'model_dump_json'$"),
        FaultKind.INVALID_REQUEST,
        "A function without 'parameters' cannot be called by name.",
        "tools",
        statuses=(500,),
    ),
)
FAULT_RULES = (
    *_CLIENTS_500,
    FaultRule(re.compile(r"^Unknown (?:model|LoRA)\b"), FaultKind.MODEL_NOT_FOUND),
    FaultRule(
        re.compile(r"does not support '(?:generate|embed)' request|do(?:es)? not support embedding requests"),
        FaultKind.INVALID_REQUEST,
        _WRONG_SORT,
        "model",
    ),
    FaultRule(
        re.compile(r"^only single string input is supported$"),
        FaultKind.INVALID_REQUEST,
        "Triton completes one text prompt per request: send a single string.",
        "prompt",
    ),
    FaultRule(re.compile(r"^logit bias is not"), FaultKind.INVALID_REQUEST, None, "logit_bias"),
    FaultRule(re.compile(r"^Received n="), FaultKind.INVALID_REQUEST, None, "n"),
    FaultRule(re.compile(r"best_of"), FaultKind.INVALID_REQUEST, None, "best_of"),
    FaultRule(re.compile(r"^suffix is not"), FaultKind.INVALID_REQUEST, None, "suffix"),
    FaultRule(re.compile(r"^prompt must be"), FaultKind.INVALID_REQUEST, None, "prompt"),
    FaultRule(re.compile(r"^`stream_options`"), FaultKind.INVALID_REQUEST, None, "stream_options"),
    FaultRule(re.compile(r"^(?:`top_logprobs`|logprobs are)"), FaultKind.INVALID_REQUEST, None, "logprobs"),
    FaultRule(
        re.compile(r"^only text message is supported"),
        FaultKind.INVALID_REQUEST,
        "Triton takes only text in messages.",
        "messages",
    ),
    FaultRule(
        re.compile(r"tool choice requires CreateChatCompletionRequest\.tools"),
        FaultKind.INVALID_REQUEST,
        "'tool_choice' is only allowed when 'tools' are given.",
        "tool_choice",
    ),
    FaultRule(
        re.compile(r"tool choice requires --tool-call-parser|^having tools in the request requires"),
        FaultKind.INVALID_REQUEST,
        "This model's engine was started without a tool-call parser.",
        "tools",
    ),
    FaultRule(re.compile(r"^Tool '.*' has not been passed in"), FaultKind.INVALID_REQUEST, None, "tool_choice"),
    FaultRule(re.compile(r"not ready for inference"), FaultKind.OVERLOADED),
)

PROFILE = Profile(
    kind=EngineKind.TRITON,
    title="Triton",
    paths={
        Operation.CHAT: b"/v1/chat/completions",
        Operation.COMPLETIONS: b"/v1/completions",
        Operation.EMBEDDINGS: b"/v1/embeddings",
    },
    tables={Operation.CHAT: CHAT, Operation.COMPLETIONS: COMPLETIONS, Operation.EMBEDDINGS: EMBEDDINGS},
    health=HealthProbe("/health/ready", not_ready=frozenset({400})),
    fault_rules=FAULT_RULES,
    answers=Answers(hollow_deltas=True, hides_length=True, cuts_refusals=True),
    version_path=None,
)
