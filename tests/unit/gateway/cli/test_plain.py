"""A plain `turnout serve` is read without typer, and means the same."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer import Typer
from typer.main import get_command

from gateway.cli.plain import ServeOrder, plain_serve
from gateway.cli.serve import serve

VALUES = {
    "--config": st.sampled_from(["turnout.yaml", "/etc/turnout.yaml", "", "-"]),
    "--host": st.sampled_from(["0.0.0.0", "::1", "a=b", ""]),
    "--port": st.sampled_from(["0", "8080", "65535", "65536", "-1", "x", "٣", "1_0", ""]),
    "--workers": st.sampled_from(["0", "1", "4", "4.0", ""]),
    "--engine": st.sampled_from(["vllm=http://127.0.0.1:8000", "triton=x", "=", "vllm", ""]),
    "--carrier": st.sampled_from(["protocol", "asgi", "ASGI", "x", ""]),
}


@st.composite
def words(draw: st.DrawFn) -> list[str]:
    """Arguments that are mostly right."""
    said: list[str] = []
    for option in draw(st.lists(st.sampled_from([*VALUES, "--take-over", "--help", "-h", "--prot", "more", "--"]))):
        if option not in VALUES:
            said.append(option)
            continue
        value = draw(VALUES[option])
        said += [f"{option}={value}"] if draw(st.booleans()) else [option, value]
    return said[: draw(st.integers(len(said) - 1, len(said)))] if said else said


def by_typer(arguments: list[str]) -> ServeOrder:
    app = Typer(add_completion=False)
    app.command("serve")(serve)
    given_ = get_command(app).make_context("serve", list(arguments)).params
    engines = tuple(given_.pop("engine") or ())
    carrier = given_.pop("carrier")
    return ServeOrder(engines=engines, carrier=carrier.value, **given_)


@given(words())
def test_whatever_is_read_without_typer_is_what_typer_reads(arguments: list[str]) -> None:
    order = plain_serve(["serve", *arguments])

    assert order is None or order == by_typer(arguments)


@pytest.mark.parametrize(
    ("line", "order"),
    [
        ("serve", ServeOrder()),
        ("serve --config /etc/turnout.yaml", ServeOrder(config=Path("/etc/turnout.yaml"))),
        ("serve --config=t.yaml --host 0.0.0.0 --port 80", ServeOrder(Path("t.yaml"), "0.0.0.0", 80)),
        ("serve --workers 4 --take-over --carrier asgi", ServeOrder(workers=4, take_over=True, carrier="asgi")),
        (
            "serve --engine vllm=http://a --engine trtllm=http://b",
            ServeOrder(engines=("vllm=http://a", "trtllm=http://b")),
        ),
    ],
)
def test_the_usual_ways_to_write_it_are_plain(line: str, order: ServeOrder) -> None:
    assert plain_serve(line.split()) == order


@pytest.mark.parametrize(
    "line",
    [
        "",
        "check",
        "serve --help",
        "serve -h",
        "serve --config",
        "serve --config --port",
        "serve --port 65536",
        "serve --port 80x",
        "serve --workers 0",
        "serve --carrier pigeon",
        "serve --engine vllm",
        "serve --engine vllm=http://a --config t.yaml",
        "serve turnout.yaml",
        "serve --conf t.yaml",
    ],
)
def test_the_rest_is_left_to_typer(line: str) -> None:
    assert plain_serve(line.split()) is None
