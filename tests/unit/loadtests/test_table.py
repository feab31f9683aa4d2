"""The table made from the bench harness's results."""

import tomllib
from pathlib import Path

import pytest

from gateway.settings import load
from loadtests.table import BEGIN, END, MEASURES, facts, failures, insert, table

BENCH = Path("loadtests/bench.toml")


def rows(**figures: float) -> list[dict[str, object]]:
    """One row of `saturate` per gateway."""
    return [
        {
            "t": 1_700_000_000.0,
            "gateway": name.replace("_", "-"),
            "repeat": 0,
            "scenario": "saturate",
            "us_per_request": value,
        }
        for name, value in figures.items()
    ]


def line(made: str) -> str:
    return made.splitlines()[2]


def test_ours_comes_first_and_the_direct_load_is_no_gateway() -> None:
    head = table(rows(nginx=13.0, direct=1.0, turnout=20.0, other=9.0)).splitlines()[0]

    assert head == "| | turnout | nginx | other | at most |"


def test_bounds_are_numbers_of_the_same_run() -> None:
    made = line(table(rows(turnout=20.0, nginx=13.0, envoy=44.0)))

    assert made.endswith("| 20.0 | 13.0 | 44.0 | 26.0 (2x nginx); 26.4 (0.6x envoy) |")


def test_a_bound_that_is_not_kept_is_named() -> None:
    assert "**missed**: 26.0 (2x nginx); 26.4" in line(table(rows(turnout=26.2, nginx=13.0, envoy=44.0)))


def test_a_carrier_of_its_own_bound_is_held_to_it_where_it_was_measured() -> None:
    made = line(table(rows(turnout=20.0, nginx=13.0, envoy=44.0, turnout_asgi=65.5)))

    assert made.endswith("26.4 (0.6x envoy); **missed**: turnout-asgi 65.0 |")


def test_a_bound_without_its_peer_is_not_measured() -> None:
    assert "2x nginx: not measured; **missed**: 18.0 (0.6x envoy)" in line(table(rows(turnout=20.0, envoy=30.0)))


def test_several_rounds_give_the_median_and_half_the_distance_of_the_extremes() -> None:
    many = [row for value in (10.0, 14.0, 11.0) for row in rows(turnout=value)]

    assert "| 11.0 ±2.0 |" in line(table(many))


def test_figures_of_a_busy_machine_say_so() -> None:
    busy = [row | {"other_busy": 0.6} for row in rows(turnout=20.0)]

    assert "Other programs used 60%" in facts(busy, "a machine", ["nginx 1"])
    assert "Other programs" not in facts([row | {"other_busy": 0.01} for row in busy], "a machine", [])


def test_facts_hold_the_day_the_machine_and_the_peers() -> None:
    made = facts(rows(turnout=20.0), "two cores", ["nginx 1.22.1", "envoy 1.40.0"])

    assert "2023-11-14 on two cores" in made
    assert "nginx 1.22.1, envoy 1.40.0" in made


def test_failures_are_not_hidden() -> None:
    (good, bad, worse) = rows(turnout=1.0, nginx=2.0, envoy=3.0)

    assert failures([good, bad | {"errors": 3}, worse | {"failed": "it died"}]) == (
        "- nginx, saturate: 3 errors\n- envoy, saturate: it died"
    )


def test_the_table_replaces_the_old_one() -> None:
    assert insert(f"a\n{BEGIN}\nold\n{END}\nb\n", r"new \1") == f"a\n{BEGIN}\nnew \\1\n{END}\nb\n"


def test_a_document_without_a_place_for_the_table_is_refused() -> None:
    with pytest.raises(ValueError, match="measured: begin"):
        insert("text", "new")


def test_the_document_has_a_place_for_the_table(root: Path) -> None:
    assert "new" in insert((root / "docs/performance.md").read_text(), "new")


def test_no_two_measures_have_one_label() -> None:
    assert len({measure.label for measure in MEASURES}) == len(MEASURES)


def test_the_benchs_configuration_is_one_that_the_gateway_takes(root: Path, tmp_path: Path) -> None:
    bench = tomllib.loads((root / BENCH).read_text())
    for name in ("turnout", "turnout-asgi"):
        (template,) = bench["gateways"][name]["files"].values()
        text = (root / BENCH).with_name(template).read_text()
        values = {"port": 18080, "upstream_port": 18000, "model": "mock", "embed_model": bench["bench"]["embed_model"]}
        for key, value in values.items():
            text = text.replace(f"{{{key}}}", str(value))
        path = tmp_path / "turnout.yaml"
        path.write_text(text)
        settings = load(path, {}).settings

        assert len(settings.engines["mock"].urls) == 4
        assert settings.models["mock-embedder"].task == "embedding"
