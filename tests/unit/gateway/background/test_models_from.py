"""Models out of what engines list."""

from structlog.testing import capture_logs

from gateway.background.discovery import models_from


def test_a_model_of_several_engines_is_served_by_all_of_them() -> None:
    found = models_from({"vllm": {"a": "chat", "b": "chat"}, "triton": {"b": "chat"}})

    assert [target.engine for target in found["b"].targets] == ["vllm", "triton"]
    assert [target.model for target in found["b"].targets] == ["b", "b"]
    assert list(found) == ["a", "b"]


def test_the_first_engine_decides_what_a_model_is_for() -> None:
    found = models_from({"one": {"m": "embedding"}, "two": {"m": "chat"}})

    assert found["m"].task == "embedding"
    assert [target.engine for target in found["m"].targets] == ["one"]


def test_a_name_that_no_client_could_send_is_passed_over_and_told() -> None:
    with capture_logs() as logs:
        found = models_from({"one": {"good": "chat", "bad\nname": "chat"}})

    assert list(found) == ["good"]
    assert [(line["log_level"], line["engine"]) for line in logs] == [("warning", "one")]


def test_nothing_listed_is_no_model() -> None:
    assert models_from({"one": {}}) == {}
