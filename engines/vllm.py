"""vLLM, both frontends (Python and Rust): nearly everything passes."""

from engines.profile import EngineKind, HealthProbe, Operation, Profile
from engines.policy import Pass, Table

_PASS = Pass()
CHAT = Table("vLLM", {"messages": _PASS, "stream": _PASS})
COMPLETIONS = Table("vLLM", {"prompt": _PASS, "stream": _PASS})
EMBEDDINGS = Table("vLLM", {"input": _PASS})

PROFILE = Profile(
    kind=EngineKind.VLLM,
    title="vLLM",
    paths={
        Operation.CHAT: b"/v1/chat/completions",
        Operation.COMPLETIONS: b"/v1/completions",
        Operation.EMBEDDINGS: b"/v1/embeddings",
    },
    tables={Operation.CHAT: CHAT, Operation.COMPLETIONS: COMPLETIONS, Operation.EMBEDDINGS: EMBEDDINGS},
    health=HealthProbe("/health"),
)
