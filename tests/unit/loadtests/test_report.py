"""The report."""

import json
from pathlib import Path

import pytest

from loadtests.plots import TITLES, event_moments, figure, rate
from loadtests.report import as_json, cpu_per_request, row, write
from loadtests.usage import Look, shares, since
from tests.unit.loadtests.making import result, streamed


def test_the_page_holds_every_plot_and_needs_no_network(tmp_path: Path) -> None:
    page = write([result()], tmp_path, "protocol").read_text()

    assert all(title in page for title in TITLES)
    assert '<script src="http' not in page
    assert "A &lt;load&gt;." in page


def test_the_numbers_are_there_as_json(tmp_path: Path) -> None:
    write([result()], tmp_path, "asgi")
    document = json.loads((tmp_path / "results.json").read_text())
    (scenario,) = document["scenarios"]

    assert document["environment"]["carrier"] == "asgi"
    assert scenario["gateway"]["errors"] == {"503": 1}
    assert scenario["added_ms"]["first"] == pytest.approx({"p50": 100, "p90": 100, "p99": 100})
    assert scenario["gateway_use"]["memory_mb_most"] == 60.0


def test_errors_that_do_not_belong_to_the_scenario_stand_out() -> None:
    assert 'class="bad"' in row(result())
    assert as_json(result())["unexpected_errors"] == {"503": 1}


def test_cpu_time_is_shared_among_the_requests() -> None:
    assert cpu_per_request(result().gateway) == pytest.approx(1000 * 0.2 / 3)


def test_a_figure_has_both_sides_in_every_comparison() -> None:
    names = [trace.name for trace in figure(result()).data if trace.name is not None]

    assert names.count("direct") == 4
    assert names.count("gateway") == 6


def test_the_moments_of_events_follow_from_the_gaps() -> None:
    assert event_moments(streamed(0.0, 1.0, 0.5, 0.25)) == [1.0, 1.5, 1.75]


def test_a_rate_counts_per_second() -> None:
    assert rate([0.1, 0.2, 0.6]) == [(0.25, 4.0), (0.75, 2.0)]


def test_use_is_counted_from_the_beginning_of_the_load() -> None:
    looks = [Look(9.0, 1.0, 10), Look(10.5, 1.2, 20), Look(11.0, 1.3, 30)]

    counted = since(looks, 10.0)

    assert [(look.at, look.memory) for look in counted] == [(0.5, 20), (1.0, 30)]
    assert [look.cpu for look in counted] == pytest.approx([0.2, 0.3])


def test_a_share_is_that_of_one_core() -> None:
    assert shares([Look(0.0, 0.0, 1), Look(0.5, 0.25, 1)]) == [(0.5, 50.0)]
