"""The file that `init` writes, for whatever engines say."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engines.profile import EngineKind
from gateway.background.survey import FoundEngine, FoundModel
from gateway.cli.init_text import starter_text
from gateway.settings import load
from gateway.wire.toolcalls.detect import Finding

names = st.one_of(
    st.sampled_from(
        ["org/model", "7", "true", "null", "a: b", "a #b", "- x", "${HOME}", "it's", '"', "模型", "1e3", "~"]
    ),
    st.text(min_size=1, max_size=20),
)
models = st.builds(
    FoundModel,
    name=names,
    aliases=st.lists(names, max_size=2).map(tuple),
    task=st.sampled_from(["chat", "embedding", "rerank", None]),
    format=st.sampled_from(
        [Finding("", "", ""), Finding("hermes", "name", "qwen"), Finding("granite", "template", "x")]
    ),
    context=st.one_of(st.none(), st.integers(1, 10**6)),
)
found = st.builds(
    FoundEngine,
    url=st.integers(1, 65535).map(lambda port: f"http://h:{port}"),
    kind=st.just(EngineKind.VLLM),
    evidence=st.just("its models are owned by 'vllm'"),
    version=st.sampled_from([None, "0.32.0"]),
    rust_frontend=st.booleans(),
    models=st.lists(models, max_size=3, unique_by=lambda model: model.name).map(tuple),
    keyed=st.booleans(),
)


@given(found=st.lists(found, min_size=1, max_size=3, unique_by=lambda engine: engine.url))
def test_it_is_valid_and_has_every_model_that_can_be_asked_for(
    found: list[FoundEngine], tmp_path_factory: pytest.TempPathFactory
) -> None:
    file = tmp_path_factory.mktemp("init") / "turnout.yaml"
    file.write_text(starter_text(found, schema="turnout.schema.json", key="KEY"), encoding="utf-8")
    settings = load(file, {"KEY": "k"}).settings
    assert sorted(url for engine in settings.engines.values() for url in engine.urls) == sorted(
        one.url for one in found
    )
    wanted = {
        model.name
        for engine in found
        for model in engine.models
        if model.task is not None and model.name == model.name.strip() and model.name.isprintable()
    }
    first = {model.name: model.task for engine in reversed(found) for model in reversed(engine.models)}
    assert set(settings.models) == {name for name in wanted if first[name] is not None}
