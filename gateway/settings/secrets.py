"""Values from outside the file (`${VAR}`, `${VAR:-default}`, `file:/run/secrets/x`), and how they stay hidden."""

import difflib
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Final

SECRET_FILE: Final = "file:"
"""How a secret begins that stands in a file."""

_REFERENCE: Final = re.compile(r"\$\$\{|\$\{(?:([^}]*)\})?")
_INSIDE: Final = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)(?::-(.*))?", re.DOTALL)
_SECRET_KEYS: Final = ("api_key", "apikey", "token")
_SECRET_NAME: Final = re.compile(r"(?:key|token|secret|password|passwd|credentials?|authorization|bearer|hash)$")
_NOT_SECRET: Final = frozenset({"first_token", "api_key_file"})
_SECRET_FLAGS: Final = frozenset({"--openai-restricted-api"})
_KEY_IN_LINE: Final = re.compile(r"""([\w-]+)["']?\s*:""")
_URL_CREDENTIALS: Final = re.compile(r"(?<=://)[^/@\s]+(?=@)")


class MissingVariableError(ValueError):
    """A `${VAR}` without a default whose variable is not set, or a reference that is not well formed."""

    def __init__(self, message: str, fix: str = "set it, or give a default: ${NAME:-default}") -> None:
        super().__init__(message)
        self.fix = fix


def expand(text: str, environ: Mapping[str, str]) -> str:
    """`text` with every `${VAR}` and `${VAR:-default}` replaced; `$${` stands for a literal `${`.

    The default counts when the variable is unset or empty.

    Raises:
        MissingVariableError: names the variable.
    """

    def value(match: re.Match[str]) -> str:
        if match[0] == "$${":
            return "${"
        inside = _INSIDE.fullmatch(match[1] or "")
        if inside is None or "${" in match[1]:
            what = "a reference inside another" if "${" in (match[1] or "") else "not a reference"
            what = "a reference without its }" if match[1] is None else what
            raise MissingVariableError(
                f"{what}: expected ${{NAME}} or ${{NAME:-default}}", "write $${ for a literal ${"
            )
        name, default = inside[1], inside[2]
        if default is not None:
            return environ.get(name) or default
        if name not in environ:
            raise MissingVariableError(f"environment variable {name} is not set and has no default")
        return environ[name]

    return _REFERENCE.sub(value, text)


def read_secret(text: str) -> str:
    """The secret that `text` is, or that stands in the file it names (`file:/run/secrets/x`), stripped of line breaks.

    Raises:
        ValueError: the file cannot be read or is empty, or the secret could not be sent in an HTTP header.
    """
    secret = text
    if text.startswith(SECRET_FILE):
        path = Path(text.removeprefix(SECRET_FILE))
        if not path.is_absolute():
            raise ValueError("a secret file needs an absolute path, as in file:/run/secrets/x")
        secret = _file_text(path)
        if not secret:
            raise ValueError(f"the secret file {path} is empty")
    if not re.fullmatch(r"[!-~]*", secret):
        raise ValueError("a secret must be printable ASCII in one line, without blanks")
    return secret


def _file_text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8").strip("\r\n")
    except UnicodeDecodeError:
        raise ValueError(f"the secret file {path} is not text") from None
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else None
        raise ValueError(f"cannot read the secret file {path}: {reason or 'not a valid path'}") from None


def names_secret(key: object) -> bool:
    """Whether a key holds a secret or looks like it: a misspelt `api_key` must stay as hidden as the right one."""
    if not isinstance(key, str) or key in _NOT_SECRET:
        return False
    name = key.lower()
    return bool(_SECRET_NAME.search(name) or difflib.get_close_matches(name, _SECRET_KEYS, n=1, cutoff=0.7))


def flag_takes_secret(word: str) -> bool:
    """Whether a word of a command line is a flag before a secret, or holds one itself (`--api-key=…`)."""
    name = re.split(r"[=\s]", word, maxsplit=1)[0].lower()
    return name.startswith("--") and (bool(_SECRET_NAME.search(name)) or name in _SECRET_FLAGS)


def without_credentials(text: str) -> str:
    """`text` with stars over the user and password of every URL; the width stays."""
    return _URL_CREDENTIALS.sub(lambda match: "*" * len(match[0]), text)


def masked(line: str) -> str:
    """`line` with stars over everything after a secret's key; for a file whose structure could not be read."""
    for match in _KEY_IN_LINE.finditer(line):
        if names_secret(match[1]):
            line = line[: match.end()] + re.sub(r"\S", "*", line[match.end() :])
            break
    return without_credentials(line)
