"""vLLM's models list and tokenizer path."""

import time
import uuid
from collections.abc import Sequence

from engines.simulator import tokens
from engines.simulator.models import SimulatedModel
from engines.simulator.prompt import prompt_tokens
from engines.simulator.schema import Body
from engines.simulator.wire import Reply, reply


def models(served: Sequence[SimulatedModel]) -> Reply:
    """One row for each name, alias and LoRA."""
    rows = []
    for model in served:
        rows += [_row(name, model.name, None, model.max_length) for name in (model.name, *model.aliases)]
        rows += [_row(name, name, model.name, None) for name in model.adapters]
    return reply(200, {"object": "list", "data": rows})


def _row(name: str, root: str, parent: str | None, length: int | None) -> dict[str, object]:
    now = int(time.time())
    permission = {
        "id": f"modelperm-{uuid.uuid4().hex[:16]}",
        "object": "model_permission",
        "created": now,
        "allow_create_engine": False,
        "allow_sampling": True,
        "allow_logprobs": True,
        "allow_search_indices": False,
        "allow_view": True,
        "allow_fine_tuning": False,
        "organization": "*",
        "group": None,
        "is_blocking": False,
    }
    return {
        "id": name,
        "object": "model",
        "created": now,
        "owned_by": "vllm",
        "root": root,
        "parent": parent,
        "max_model_len": length,
        "permission": [permission],
    }


def tokenize(body: Body, model: SimulatedModel) -> Reply:
    """`/tokenize`, with stand-in ids."""
    messages = body.get("messages")
    if isinstance(messages, list):
        count = prompt_tokens([each for each in messages if isinstance(each, dict)], body.get("tools"))
        ids = [tokens.token_id(str(number)) for number in range(count)]
    else:
        ids = [tokens.token_id(piece) for piece in tokens.pieces(str(body.get("prompt", "")))]
    strings = [str(each) for each in ids] if body.get("return_token_strs") else None
    return reply(200, {"count": len(ids), "max_model_len": model.max_length, "tokens": ids, "token_strs": strings})


def detokenize(body: Body) -> Reply:
    """`/detokenize`: stand-in ids have no text, so each is written as a number; ids of no token are nothing."""
    ids = body.get("tokens")
    known = [
        each for each in (ids if isinstance(ids, list) else ()) if isinstance(each, int) and each < tokens.VOCABULARY
    ]
    return reply(200, {"prompt": "".join(f"<{each}>" for each in known)})
