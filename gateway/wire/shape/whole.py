"""An answer that is not streamed, as the client gets it."""

from collections.abc import Callable

import msgspec

from gateway.wire.answer import AnswerNames, respell_answer
from gateway.wire.shape.chain import Chain
from gateway.wire.shape.envelope import WHOLE, complete, has_envelope
from gateway.wire.shape.event import Event, read_event


def shape_answer(body: bytes, names: AnswerNames, own_id: bytes, chain: Chain, clock: Callable[[], float]) -> bytes:
    """A whole chat or completions answer put right: by the chain, and its `id`, `model`, `object` and `created`.

    The same object when nothing had to change. ``own_id`` as for `respell_answer`; ``clock`` gives Unix seconds.

    Raises ValueError when the body is not a JSON object.
    """
    shaped = chain.whole(body)
    if shaped is None:
        if has_envelope(body, names.operation) or (shaped := _completed(body, names, clock)) is None:
            return respell_answer(body, names, own_id)
    else:
        complete(shaped, WHOLE[names.operation], int(clock()))
    return msgspec.json.encode(names.apply(shaped, own_id))


def _completed(body: bytes, names: AnswerNames, clock: Callable[[], float]) -> Event | None:
    try:
        answer = read_event(body)
    except (msgspec.DecodeError, RecursionError):
        return None
    return answer if complete(answer, WHOLE[names.operation], int(clock())) else None
