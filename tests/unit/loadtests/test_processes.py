"""The processes of a load test."""

import io
import os
from dataclasses import replace
from pathlib import Path

import psutil
import pytest
from rich.console import Console

from gateway.settings import Settings
from loadtests.catalogue import AGENTS, CHAT_MIX, FLEET, MODELS, SCENARIOS
from loadtests.load import Load, sides
from loadtests.processes import DidNotStart, Machinery, engine_arguments, settings
from loadtests.run import chosen, needed, print_results, run
from loadtests.sample import OK
from loadtests.scenario import Bursts
from loadtests.usage import Watch


def test_an_engines_pace_becomes_options() -> None:
    arguments = engine_arguments(FLEET[1])

    assert arguments[:4] == ["simulate", "vllm", "--port", "0"]
    assert arguments[arguments.index("--max-requests") + 1] == "12"
    assert "--kv-capacity" not in arguments


def test_what_is_not_limited_gets_no_option() -> None:
    assert "--max-requests" not in engine_arguments(FLEET[0])


def test_the_gateways_configuration_is_one_that_it_takes() -> None:
    engines = {replicas.name: [("127.0.0.1", 8000)] for replicas in FLEET}
    made = Settings.model_validate(settings(FLEET, MODELS, engines))

    assert set(made.engines) == {"small", "tight", "tools"}
    assert made.models["vectors"].task == "embedding"


def children() -> set[int]:
    return {child.pid for child in psutil.Process(os.getpid()).children(recursive=True)}


async def test_the_load_reaches_the_engines_both_ways_and_nothing_is_left_running() -> None:
    before = children()
    fleet = (replace(FLEET[0], count=1),)
    models = tuple(model for model in MODELS if model.replicas == "small")
    scenario = replace(CHAT_MIX, arrivals=Bursts(6, 10.0), seconds=0.1, grace=30.0)
    async with Machinery(fleet, models, "protocol") as machinery:
        watch = Watch(machinery.gateway.pid)
        watch.look()
        for side in sides(models, machinery.engines, machinery.gateway_address):
            loaded = await Load(scenario, side, lambda _: None).run()
            assert [sample.outcome for sample in loaded.samples] == [OK] * 6, side.name
        watch.look()
        assert len(children() - before) >= 2

    assert watch.looks[0].memory > 1_000_000
    assert watch.looks[1].cpu > 0
    assert children() <= before


async def test_a_process_that_cannot_start_says_why_and_nothing_is_left_running() -> None:
    before = children()
    broken = replace(FLEET[0], count=1, models=("",))

    with pytest.raises(DidNotStart, match="a model needs a name"):
        async with Machinery((broken,), (), "protocol"):
            raise AssertionError("it started")

    assert children() <= before


async def test_a_run_measures_both_sides_and_what_the_gateway_used() -> None:
    before = children()
    text = io.StringIO()
    console = Console(file=text)
    (result,) = results = await run([replace(AGENTS, seconds=1.0, grace=30.0)], "asgi", console)
    print_results(console, results, Path("report.html"))

    assert result.unexpected == {}
    assert result.direct.summary.ok == result.gateway.summary.ok == result.gateway.summary.requests > 0
    assert result.gateway.looks[-1].cpu > 0
    assert result.direct.looks == ()
    assert "agents" in text.getvalue()
    assert children() <= before


def test_only_the_engines_that_are_asked_are_started() -> None:
    fleet, models = needed([AGENTS])

    assert [replicas.name for replicas in fleet] == ["tools"]
    assert [model.name for model in models] == ["agent"]
    assert len(needed(SCENARIOS)[0]) == len(FLEET)


def test_scenarios_are_chosen_by_name_and_may_be_shortened() -> None:
    assert [scenario.name for scenario in chosen(["bursts"], 2.0)] == ["bursts"]
    assert {scenario.seconds for scenario in chosen([], 2.0)} == {2.0}
    with pytest.raises(KeyError, match="nothing"):
        chosen(["nothing"], None)
