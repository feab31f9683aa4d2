"""trtllm-serve of TensorRT-LLM."""

from engines.profile import EngineKind, HealthProbe, Operation, Profile
from engines.policy import Pass, Table

_PASS = Pass()
CHAT = Table("trtllm-serve", {"messages": _PASS, "stream": _PASS})
COMPLETIONS = Table("trtllm-serve", {"prompt": _PASS, "stream": _PASS})

PROFILE = Profile(
    kind=EngineKind.TRTLLM,
    title="trtllm-serve",
    paths={
        Operation.CHAT: b"/v1/chat/completions",
        Operation.COMPLETIONS: b"/v1/completions",
    },
    tables={Operation.CHAT: CHAT, Operation.COMPLETIONS: COMPLETIONS},
    health=HealthProbe("/health"),
    metrics_path="/prometheus/metrics",
)
