"""A Triton model repository made of launch settings, as texts by their paths."""

import json
import re
from collections.abc import Iterator, Mapping
from typing import Final, assert_never

from engines.launch.command import members_of
from engines.launch.llmapi import CONFIG as LLMAPI_CONFIG
from engines.launch.llmapi import SHIM
from engines.launch.triton import RepositoryModel, TritonLaunch, TrtllmModel, VllmModel

VERSION: Final = "1"
MODEL_NAME: Final = re.compile(r"[A-Za-z0-9_~-][A-Za-z0-9._~-]*")
"""Names that Triton can be asked for: it does not decode those in URLs. They are names of folders, too."""
_VLLM_CONFIG: Final = """\
# Inputs, outputs and the decoupled mode are filled in by the vLLM backend. vLLM batches requests in flight by itself:
# dynamic_batching and max_batch_size have no place here. model.json has the arguments of its engine.
backend: "vllm"
instance_group [
  {
    # Each instance is an engine, with weights and a cache of its own.
    count: %d
    # vLLM chooses its GPUs itself: a model on more than one GPU needs this kind.
    kind: KIND_MODEL
  }
]
"""


def repository(launch: TritonLaunch, made_by: str) -> dict[str, str]:
    """The files of the repository with all models of a launch. `made_by` is a line for those that can have comments.

    Raises:
        ValueError: a model's name cannot be that of a folder, or cannot be asked for.
    """
    for name in launch.models:
        if not MODEL_NAME.fullmatch(name):
            raise ValueError(f'"{name}" is no name for a model of Triton (letters, digits, and . _ - only)')
    files: dict[str, str] = {}
    for name, model in launch.models.items():
        files |= {f"{name}/{path}": text for path, text in _files(model, made_by)}
    return files


def _files(model: RepositoryModel, made_by: str) -> Iterator[tuple[str, str]]:
    match model:
        case VllmModel():
            yield "config.pbtxt", f"# {made_by}\n{_VLLM_CONFIG % model.count}"
            yield f"{VERSION}/model.json", _json(vllm_arguments(model))
            if model.loras:
                yield f"{VERSION}/multi_lora.json", _json(model.loras)
        case TrtllmModel():
            yield "config.pbtxt", f"# {made_by}\n{LLMAPI_CONFIG}"
            yield f"{VERSION}/model.py", f"# {made_by}\n{SHIM}"
        case _:
            assert_never(model)


def vllm_arguments(model: VllmModel) -> dict[str, object]:
    """The members of `model.json`: arguments of vLLM's engine."""
    adapters: dict[str, object] = {"enable_lora": True} if model.loras else {}
    return {"model": model.model, **members_of(model), **adapters, **model.arguments}


def llmapi_settings(model: TrtllmModel) -> dict[str, object]:
    """The members of `model.yaml`: arguments of TensorRT-LLM's LLM, and what the model tells Triton about itself."""
    triton: dict[str, object] = {
        "max_batch_size": 0,
        "decoupled": model.decoupled,
        "cancellation_check_period_ms": 100,
    }
    given = {"model": model.model, "backend": "pytorch", **members_of(model), **model.arguments}
    return {**given, "triton_config": triton}


def _json(value: Mapping[str, object]) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False) + "\n"
