"""A Triton model repository: layout, versions and configuration. Refusals are recorded ones (server 2.51)."""

import difflib
import re
from collections.abc import Iterator, Mapping
from typing import Final

from engines.launch.repository import MODEL_NAME
from engines.lint import batching, llmapi_model, python_model, vllm_model
from engines.lint.finding import At, Finding
from engines.lint.legacy import engine_folders
from engines.lint.model_files import CONFIG, Configured, ModelFiles
from engines.lint.triton_config import ConfigFault, ModelConfig, read_config

_BACKENDS: Final = (
    "vllm",
    "python",
    "tensorrtllm",
    "tensorrt",
    "onnxruntime",
    "pytorch",
    "tensorflow",
    "openvino",
    "dali",
    "fil",
    "identity",
    "repeat",
    "square",
)
_ALONE: Final = ("model.py", "model.onnx", "model.plan", "model.pt", "model.savedmodel", "model.graphdef", "model.xml")
"""Files by which Triton knows the backend of a model that names none."""


def lint_repository(files: Mapping[str, bytes]) -> Iterator[Finding]:
    """The faults of a repository: its files by their paths within; an empty folder's path ends in a slash."""
    models: dict[str, dict[str, bytes]] = {}
    for path, content in files.items():
        name, slash, rest = path.partition("/")
        if slash and not name.startswith("."):
            models.setdefault(name, {})[rest] = content
    if not models:
        yield At("").error("no-models", "there is no model: each is a folder of its own", "MODEL/config.pbtxt")
    configured = []
    for name, own in sorted(models.items()):
        model = ModelFiles(name, {path: content for path, content in own.items() if path})
        yield from _layout(model)
        config = _config(model)
        if isinstance(config, Finding):
            yield config
            continue
        configured.append(Configured(model, config))
        yield from _rules(configured[-1])
    yield from vllm_model.shares(configured)
    yield from vllm_model.samples(configured)


def _rules(model: Configured) -> Iterator[Finding]:
    yield from _names(model)
    yield from _versions(model)
    yield from _groups(model)
    yield from batching.rules(model)
    match model.config.backend:
        case "vllm":
            yield from vllm_model.rules(model)
        case "tensorrtllm":
            fix = 'backend "python" with the LLM-API model: `turnout engines repository` makes it'
            message = "this backend runs TensorRT engines, which are not built any more, and needs a library of its own"
            yield model.model.at_field("backend").error("legacy-backend", message, fix)
        case "python" if any(path.endswith("/model.yaml") for path in model.model.files):
            yield from python_model.rules(model)
            yield from llmapi_model.rules(model)
        case "python":
            yield from python_model.rules(model)


def _layout(model: ModelFiles) -> Iterator[Finding]:
    if not MODEL_NAME.fullmatch(model.name):
        message = "Triton does not decode names in URLs: this model can be neither loaded by name nor asked"
        yield At(model.name).error("model-name", message, "letters, digits, and . _ - only")
    yield from engine_folders(model.name, model.files)


def _config(model: ModelFiles) -> ModelConfig | Finding:
    text = model.text(CONFIG)
    if text is None:
        return ModelConfig()
    try:
        return read_config(text)
    except ConfigFault as fault:
        fix = "mend the line; Triton tells the reason only in its log, not in its answer to a load"
        if "${" in text:
            fix = "put values in the place of ${…}: it is a template"
        message = f"Triton cannot read this: {fault.message}"
        return model.at(CONFIG, fault.line).error("config-syntax", message, fix)


def _names(model: Configured) -> Iterator[Finding]:
    own, config = model.model, model.config
    if config.name and config.name != own.name:
        message = f'the folder is called {own.name}, and the model "{config.name}": Triton wants one name'
        yield own.at_field("name").error("name-mismatch", message, f'name: "{own.name}", or leave it out')
    known = config.backend or config.platform
    if not known and own.name.rpartition(".")[2] not in _BACKENDS and not _tells_itself(own):
        fix = 'backend: "vllm", or "python"'
        if CONFIG in own.files:
            yield own.at(CONFIG).error("no-backend", "no backend: Triton cannot tell what runs this model", fix)
        else:
            message = f"there is no {CONFIG}, and nothing else says what runs this model"
            yield At(own.name).error("no-config", message, f"a {CONFIG} with {fix}")
    if config.backend and config.backend not in _BACKENDS:
        close = difflib.get_close_matches(config.backend, _BACKENDS, n=1)
        at, message = own.at_field("backend"), f'Triton has no backend "{config.backend}" of its own'
        if close:
            yield at.error("unknown-backend", message, f'did you mean "{close[0]}"?')
        else:
            yield at.warning("unknown-backend", message, "its library must be in the server's folder of backends")


def _tells_itself(model: ModelFiles) -> bool:
    return any(path.partition("/")[2].partition("/")[0] in _ALONE for path in model.files)


def _versions(model: Configured) -> Iterator[Finding]:
    own, policy = model.model, model.config.version_policy
    for folder in own.misnamed:
        number = re.sub(r"^[vV]?0*", "", folder).partition(".")[0] or "1"
        at, message = At(f"{own.name}/{folder}"), f"Triton does not see the folder {folder} as a version"
        yield at.error("version-folder", message, f"call it {number}")
    if not own.versions and not own.misnamed:
        message = "no version: a model's files stand in a folder that is called by a number"
        yield At(own.name).error("no-version", message, "put them into 1/")
    if 0 in own.versions:
        message = "documented as ignored, because it begins with 0, though it has been seen to load"
        yield At(f"{own.name}/0").warning("version-zero", message, "call it 1")
    if policy is None and len(own.versions) > 1:
        others = ", ".join(map(str, own.versions[:-1]))
        message = f"only the latest version, {own.versions[-1]}, is served, not {others}"
        yield At(own.name).warning("version-not-served", message, "a version_policy says which are served")
    if policy is not None and policy.specific is not None and own.versions:
        missing = [version for version in policy.specific.versions if version not in own.versions]
        for version in missing:
            at = own.at_field("version_policy", "specific", "versions")
            message = f"the policy asks for version {version}, and there is no such folder"
            fix = f"one of {', '.join(map(str, own.versions))}"
            made = at.warning if model.served else at.error
            yield made("version-policy", message, fix)


def _groups(model: Configured) -> Iterator[Finding]:
    for group in model.config.instance_group:
        if group.gpus and group.kind in {"KIND_CPU", "KIND_MODEL"}:
            at, message = model.model.at_field("instance_group", "gpus"), f"gpus cannot stand beside {group.kind}"
            fix = "leave it out; CUDA_VISIBLE_DEVICES chooses the server's GPUs"
            yield at.error("instance-gpus", message, fix)
        if group.count < 0:
            at = model.model.at_field("instance_group", "count")
            yield at.error("instance-count", f"{group.count} instances", "1 or more")
