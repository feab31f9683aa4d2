"""Sends the recorded requests to a server that runs, and says where its answers are not as recorded.

    python -m tests.contract.replay triton 127.0.0.1:9000 --server "--tool-call-parser llama3" --model vllm_chat=mine

Compared are statuses, the members of answers, and which sorts of events a stream has; not what the model says. With
simulated engines there is no difference (`test_simulators.py` compares more); with a real one, each is for a person to
judge: a newer version, another model, or a mistake in the recording. docs/recordings.md says how to start the servers.
"""

import argparse
import asyncio
import json
import sys
from collections.abc import AsyncIterator, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.contract.cases import OUT_OF_SCOPE
from tests.contract.client import Answer, send
from tests.contract.shapes import event_shape, shape

FOLDER = Path(__file__).parent / "recordings"
ANSWERED = ("/v1/chat/completions", "/v1/completions", "/v1/embeddings")
"""The paths that are replayed: what a client of the gateway asks for."""


@dataclass(frozen=True, slots=True)
class Difference:
    """One answer that is not as recorded."""

    case: str
    what: str


def recorded(engine: str, server: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """The cases and their exchanges that were recorded of a server with such flags."""
    for line in (FOLDER / f"{engine}.jsonl").read_text().splitlines():
        case = json.loads(line)
        if server in case.get("server", "") and case.get("case") not in OUT_OF_SCOPE[engine]:
            for exchange in case.get("exchanges", ()):
                if exchange["path"] in ANSWERED:
                    yield case["case"], exchange


def renamed(exchange: Mapping[str, Any], names: Mapping[str, str]) -> Mapping[str, Any]:
    """The exchange with the model as the running server calls it."""
    body = exchange["body"]
    if not isinstance(body, dict) or body.get("model") not in names:
        return exchange
    return {**exchange, "body": {**body, "model": names[body["model"]]}}


async def differences(
    engine: str, server: str, host: str, port: int, names: Mapping[str, str]
) -> AsyncIterator[Difference]:
    """What the running server answers otherwise."""
    for case, exchange in recorded(engine, server):
        answer = await send(port, renamed(exchange, names), host)
        what = difference(exchange, answer)
        if what is not None:
            yield Difference(case, what)


def difference(exchange: Mapping[str, Any], answer: Answer) -> str | None:
    """What is different in the answer, in a line; None if nothing is."""
    if answer.status != exchange["status"]:
        return f"status {answer.status} instead of {exchange['status']}: {answer.body[:200]!r}"
    if "events" in exchange:
        expected, found = sorts(exchange["events"]), sorts(answer.chunks)
        counts = f"sorts of events: {len(found - expected)} new, {len(expected - found)} gone"
        return None if expected == found else counts
    if "json" not in exchange:
        return None
    before, now = set(shape(exchange["json"])), set(shape(json.loads(answer.body)))
    changed = sorted([f"+ {line}" for line in now - before] + [f"- {line}" for line in before - now])
    return "; ".join(changed) or None


def sorts(events: list[str]) -> set[str]:
    """The sorts of events in a stream, however often each comes."""
    return {repr(event_shape(event)) for event in events}


async def main() -> int:
    """Prints a line per difference; how many there were is the end of it."""
    parser = argparse.ArgumentParser(description="Compare a running engine with what was recorded of its kind.")
    parser.add_argument("engine", choices=sorted(OUT_OF_SCOPE))
    parser.add_argument("address", help="HOST:PORT")
    parser.add_argument("--server", default="", help="part of the recorded server's flags")
    parser.add_argument("--model", action="append", default=[], help="RECORDED=THEIRS, once for each model")
    asked = parser.parse_args()
    host, _, port = asked.address.rpartition(":")
    names = dict(pair.split("=", 1) for pair in asked.model)
    count = 0
    async for found in differences(asked.engine, asked.server, host, int(port), names):
        count += 1
        print(f"{found.case}: {found.what}")
    print(f"{count} of {len(list(recorded(asked.engine, asked.server)))} answers are not as recorded.")
    return 1 if count else 0


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
