"""The forwarded paths: one row each."""

from collections.abc import Mapping
from typing import Final

from engines.profile import Operation

FORWARDED: Final[Mapping[str, Operation]] = {
    "/v1/chat/completions": Operation.CHAT,
    "/v1/completions": Operation.COMPLETIONS,
    "/v1/embeddings": Operation.EMBEDDINGS,
    "/v1/responses": Operation.RESPONSES,
    "/v1/messages": Operation.MESSAGES,
    "/v1/messages/count_tokens": Operation.COUNT_TOKENS,
    "/v1/rerank": Operation.RERANK,
    "/v1/score": Operation.SCORE,
    "/tokenize": Operation.TOKENIZE,
    "/detokenize": Operation.DETOKENIZE,
}
PATHS: Final[Mapping[Operation, str]] = {operation: path for path, operation in FORWARDED.items()}
