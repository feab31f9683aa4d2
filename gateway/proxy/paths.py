"""The forwarded paths: one row each."""

from collections.abc import Mapping
from typing import Final

from engines.profile import Operation

FORWARDED: Final[Mapping[str, Operation]] = {
    "/v1/chat/completions": Operation.CHAT,
    "/v1/completions": Operation.COMPLETIONS,
    "/v1/embeddings": Operation.EMBEDDINGS,
}
