"""The simulated KServe answers what a real Triton 2.51 was asked, in the order in which it was asked."""

import json
from collections.abc import Iterator
from pathlib import Path

import httpx2

from engines.simulator.kserve.over_http import http_kserve
from engines.simulator.kserve.repository import SimulatedRepository
from tests.contract.shapes import shape

CASES = [json.loads(line) for line in (Path(__file__).parent / "recordings" / "kserve.jsonl").read_text().splitlines()]
IN_PART = ("server_metadata", "model_metadata", "model_stats", "all_stats", "stats_after")
"""Answers that the simulator gives with fewer members."""


def strange(simulated: object, recorded: object) -> Iterator[str]:
    """What the simulated answer has and the recorded one has not, types included."""
    known = {line.partition(" ")[0] + " " + line.split()[-1][:2] for line in shape(recorded)}
    for line in shape(simulated):
        if line.partition(" ")[0] + " " + line.split()[-1][:2] not in known:
            yield line


async def test_a_session_with_the_repository_goes_as_recorded() -> None:
    repository = SimulatedRepository(("embed", "trt_py", "vllm_chat"), states={"trt_py": "READY"})
    async with http_kserve(repository) as url, httpx2.AsyncClient(base_url=url, trust_env=False) as client:
        for case in CASES:
            asked = case["request"]
            answer = await client.request(asked["method"], asked["path"], json=asked["body"])

            assert answer.status_code == case["status"], case["case"]
            found = answer.json() if answer.content else None
            if case["case"] in IN_PART:
                assert list(strange(found, case["json"])) == [], case["case"]
            else:
                assert found == case["json"], case["case"]
    assert len(CASES) >= 19
