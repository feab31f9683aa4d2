"""What a whole answer must become before a client gets it, where it is not plain."""

from collections.abc import Callable

from engines.profile import Operation
from gateway.wire.answer import AnswerNames, Usage, find_usage, respell_answer
from gateway.wire.embeddings import spell_vectors
from gateway.wire.openai import Call
from gateway.wire.passed import PASSED, pass_answer
from gateway.wire.shape import Chain
from gateway.wire.shape.whole import shape_answer


def put_right(
    body: bytes,
    call: Call,
    names: AnswerNames,
    own_id: bytes,
    chain: Callable[[], Chain | None],
    clock: Callable[[], float],
) -> tuple[bytes, Usage | None]:
    """The answer as its client expects it, and what it has used.

    ``own_id`` is the unique part of the id that is used when the engine's may not stay; ``chain`` makes what else is
    done to it; ``clock`` gives Unix seconds. Raises ValueError for an answer that makes no sense.
    """
    if call.operation in PASSED:
        answer, usage = pass_answer(body, names)
    else:
        stages = chain()
        if stages is None:
            answer = respell_answer(body, names, own_id)
        else:
            answer = shape_answer(body, names, own_id, stages, clock)
        usage = find_usage(answer)
    if call.operation is Operation.EMBEDDINGS:
        answer = spell_vectors(answer, call.members.get("encoding_format"))
    return answer, usage
