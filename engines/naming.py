"""What the name of a model says about what it is for. A hint: only an answer proves it."""

import re

_RERANKS = re.compile(r"rerank|cross[-_]?encoder|ms[-_]marco")
_EMBEDS = re.compile(
    r"embed|sentence[-_]transformers|(?:^|[-_/.])(?:bge|e5|gte|minilm|mpnet|labse|uae|stella|instructor|ember|gtr)(?:[-_.]|$)"
)


def task_of_name(model: str) -> str | None:
    """`embedding` or `rerank` where the name of a model, or its repository id, says so; None where it says neither."""
    name = model.lower()
    if _RERANKS.search(name):
        return "rerank"
    return "embedding" if _EMBEDS.search(name) else None
