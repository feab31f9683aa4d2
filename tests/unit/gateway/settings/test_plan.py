"""What would become of the models: which lose their last healthy target, and where one has to look."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.settings.changes.plan import Look, Place, as_tree, make_plan, to_look_at
from gateway.settings.redacted import redacted_tree, settings_of
from gateway.settings.tree import Settings
from tests.support.json_type import Json
from tests.support.settings_edits import trees


def settings(engines: dict[str, Json], models: dict[str, Json]) -> Settings:
    made = {
        name: engine if isinstance(engine, dict) else {"kind": "vllm", "urls": engine}
        for name, engine in engines.items()
    }
    return Settings.model_validate({"engines": made, "models": models})


OLD = settings({"q": ["http://a", "http://b"], "l": ["http://l"]}, {"m": {"engine": "q"}, "n": {"engine": "l"}})


def lost(new: Settings, standing: dict[Place, bool], *looks: Look) -> dict[str, str]:
    plan = make_plan("", OLD, new, (), standing, {(look.engine, look.url): look for look in looks})
    assert plan.safe == (not plan.losses and not plan.unreached)
    return {loss.model: loss.why for loss in plan.losses}


def test_a_replica_that_goes_is_no_loss_while_another_serves() -> None:
    fewer = settings({"q": ["http://b"], "l": ["http://l"]}, {"m": {"engine": "q"}, "n": {"engine": "l"}})
    assert lost(fewer, {}) == {}
    assert lost(fewer, {("q", "http://b"): False}) == {"m": "q at http://b: does not serve now"}
    # Nobody serves it as it is: then nothing is lost by the change.
    assert lost(fewer, {("q", "http://a"): False, ("q", "http://b"): False}) == {}


def test_a_model_that_moves_is_lost_where_the_new_engine_will_not_do() -> None:
    moved = settings({"q": ["http://a"], "l": ["http://l"]}, {"m": {"engine": "l"}, "n": {"engine": "l"}})
    assert to_look_at(OLD, moved) == (("l", "http://l"),)
    assert lost(moved, {}, Look("l", "http://l", models=("m", "n"))) == {}
    assert lost(moved, {}, Look("l", "http://l", models=("n",))) == {"m": 'l at http://l: does not list "m"'}
    assert lost(moved, {}, Look("l", "http://l")) == {}
    both = lost(moved, {}, Look("l", "http://l", "nobody listens at its address"))
    assert both == dict.fromkeys("mn", "l at http://l: nobody listens at its address")


def test_a_model_that_is_taken_away_is_not_lost_but_gone() -> None:
    assert lost(settings({"q": ["http://a"]}, {"m": {"engine": "q"}}), {}) == {}


def test_a_name_that_stands_for_another_model_is_lost_with_it() -> None:
    renamed = settings({"l": ["http://l"]}, {"n": {"engine": "l", "aliases": ["m"]}})
    assert lost(renamed, {("l", "http://l"): False}) == {"n": "l at http://l: does not serve now"}


@pytest.mark.parametrize(
    ("engine", "places"),
    [
        (["http://a", "http://b"], []),
        (["http://a", "http://c"], ["http://c"]),
        ({"kind": "triton", "urls": ["http://a"]}, ["http://a"]),
        ({"kind": "vllm", "urls": ["http://a"], "api_key": "sk-1"}, ["http://a"]),
        ({"kind": "vllm", "urls": ["http://a"], "health": {"path": "/h"}}, ["http://a"]),
        ({"kind": "vllm", "urls": ["http://a"], "max_in_flight": 3}, []),
    ],
)
def test_only_what_is_new_is_looked_at(engine: Json, places: list[str]) -> None:
    new = settings({"q": engine, "l": ["http://l"]}, {"m": {"engine": "q"}, "n": {"engine": "l"}})
    assert [url for _, url in to_look_at(OLD, new)] == places


def test_a_hidden_key_is_not_taken_for_another_one() -> None:
    new = settings({"q": {"kind": "vllm", "urls": ["http://a"], "api_key": "sk-1"}}, {"m": {"engine": "q"}})
    assert to_look_at(settings_of(redacted_tree(new)), new) == ()


def test_a_new_engine_is_unreached_when_none_of_its_replicas_will_do() -> None:
    new = settings({"q": ["http://a", "http://c"], "x": ["http://x", "http://y"]}, {"m": {"engine": "q"}})
    dead = [Look("q", "http://c", "dead"), Look("x", "http://x", "dead"), Look("x", "http://y", "dead")]

    def unreached(*looks: Look) -> tuple[str, ...]:
        return make_plan("", OLD, new, (), {}, {(look.engine, look.url): look for look in looks}).unreached

    assert unreached(*dead) == ("x",)
    assert unreached(dead[0], dead[1], Look("x", "http://y")) == ()


def test_a_model_that_nobody_lists_is_told() -> None:
    new = settings({"q": ["http://a", "http://b"]}, {"m": {"engine": "q"}, "big": {"engine": "q", "model": "org/big"}})
    looks = {("q", url): Look("q", url, models=("m",)) for url in ("http://a", "http://b")}
    assert make_plan("", OLD, new, (), {}, looks).unlisted == (("q", "org/big"),)


@given(trees(), st.data())
def test_what_does_not_change_is_safe_whatever_its_state(same: Settings, data: st.DataObject) -> None:
    places = [(name, url) for name, engine in same.engines.items() for url in engine.urls]
    standing = {place: data.draw(st.booleans()) for place in places}
    assert to_look_at(same, same) == ()
    assert make_plan("", same, same, (), standing, {}).safe


@given(trees(), trees(), st.data())
def test_only_what_was_served_can_be_lost_and_only_with_all_its_places(
    old: Settings, new: Settings, data: st.DataObject
) -> None:
    looks = {
        (name, url): Look(name, url, data.draw(st.sampled_from(["", "dead"]))) for name, url in to_look_at(old, new)
    }
    before = [(name, url) for name, engine in old.engines.items() for url in engine.urls]
    standing = {place: data.draw(st.booleans()) for place in before}
    for loss in make_plan("", old, new, (), standing, looks).losses:
        model = new.models[loss.model]
        for target in model.targets_of(loss.model):
            for url in new.engines[target.engine].urls:
                place = (target.engine, url)
                assert looks[place].fault if place in looks else not standing[place]


def test_secrets_that_are_only_stars_are_named_as_not_compared() -> None:
    """Only those that both sides have, and none against a file, which has them."""
    engine: Json = {"kind": "vllm", "urls": ["http://a:1"]}
    secret: Json = {
        **engine,
        "api_key": "sk-1",
        "launch": {"model": "m", "environment": {"HF_TOKEN": "hf-1", "TZ": "UTC"}},
    }
    old = Settings.model_validate({"engines": {"q": secret, "p": engine}, "admin": {"token": "sk-2"}})
    new = Settings.model_validate({"engines": {"q": secret, "p": engine | {"api_key": "sk-3"}}})
    plan = make_plan("", settings_of(redacted_tree(old)), new, (), {}, {})

    assert plan.uncompared == ("engines.q.api_key", "engines.q.launch.environment.HF_TOKEN")
    assert as_tree(plan)["notes"] == [f"secrets are not compared with a running gateway: {', '.join(plan.uncompared)}"]
    assert "sk-" not in repr(plan)
    assert make_plan("", old, new, (), {}, {}).notes == ()
