"""What TensorRT-LLM had before PyTorch became its only execution backend, and what to do now."""

import re
from collections.abc import Iterable, Iterator
from typing import Final

from engines.lint.finding import At, Finding

DIRECT: Final = "give trtllm-serve the Hugging Face checkpoint itself: trtllm-serve MODEL; nothing is built any more"

PROGRAMS: Final = {
    "trtllm-build": ("builds TensorRT engines, and is gone with them", DIRECT),
    "trtllm-refit": (
        "changes weights in TensorRT engines, and is gone with them",
        "start trtllm-serve with the other checkpoint",
    ),
    "trtllm-prune": (
        "takes weights out of TensorRT-LLM checkpoints, and is gone with them",
        "leave it out: checkpoints load as they are",
    ),
    "convert_checkpoint.py": ("makes checkpoints for trtllm-build, which is gone", DIRECT),
    "fill_template.py": (
        "fills in configurations of the backend that runs TensorRT engines",
        "`turnout engines repository` makes the LLM-API model",
    ),
}
_ENGINE: Final = re.compile(r"(rank)?[0-9]+\.engine|.*\.engine|.*\.plan\.engine")
_FOLDER: Final = re.compile(r"(^|[/_-])(trt[_-]?(llm[_-]?)?engines?|engine_outputs?|engines?)([/_-]|$)", re.IGNORECASE)


def program(name: str, at: At) -> Iterator[Finding]:
    """A finding for a program that is gone."""
    if name in PROGRAMS:
        why, fix = PROGRAMS[name]
        yield at.error("removed-program", f"{name} {why}", fix)


def engine_folders(root: str, files: Iterable[str]) -> Iterator[Finding]:
    """Folders that hold built engines."""
    folders = {path.rpartition("/")[0] for path in files if _ENGINE.fullmatch(path.rpartition("/")[2])}
    for folder in sorted(folders):
        at = At("/".join(part for part in (root, folder) if part) or ".")
        message = "built TensorRT engines (*.engine): nothing loads them any more"
        yield at.error("engine-directory", message, DIRECT)


def model_argument(model: str, at: At) -> Iterator[Finding]:
    """A model that is named like a folder of built engines."""
    local = model.startswith(("/", "./", "../")) or model.count("/") > 1
    if model.endswith(".engine") or (local and _FOLDER.search(model)):
        message = f"{model} looks like a folder of built TensorRT engines, which are not loaded any more"
        yield at.warning("engine-directory", message, DIRECT)
