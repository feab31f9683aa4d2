"""The OpenAI frontend of Triton Inference Server."""

from engines.profile import EngineKind, HealthProbe, Operation, Profile
from engines.policy import Pass, Table

_PASS = Pass()
CHAT = Table("Triton", {"messages": _PASS, "stream": _PASS})
COMPLETIONS = Table("Triton", {"prompt": _PASS, "stream": _PASS})
EMBEDDINGS = Table("Triton", {"input": _PASS})

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
    version_path=None,
)
