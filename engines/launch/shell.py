"""A command as text for a shell."""

import shlex
from collections.abc import Iterator

from engines.launch.command import Command, SecretFile, SettingsPath, Word


def shell_line(command: Command, settings_path: str = "", *, prefix: str = "") -> str:
    """One line that a POSIX shell runs: variables, then the words. Secrets are read from their files by the shell."""
    parts = [f"{name}={_quoted(value, settings_path)}" for name, value in sorted(command.environment.items())]
    parts += [prefix] if prefix else []
    parts += [_quoted(word, settings_path) for word in command.words]
    return " ".join(parts)


def exporting(command: Command, settings_path: str = "") -> str:
    """The same for the shell of a container, which the engine takes the place of: only secrets are set here."""
    secret = {name: value for name, value in command.environment.items() if isinstance(value, SecretFile)}
    exports = [f"export {name}={_quoted(value, settings_path)}; " for name, value in sorted(secret.items())]
    return "".join(exports) + shell_line(Command(command.words), settings_path, prefix="exec")


def plain_words(command: Command, settings_path: str = "") -> Iterator[str]:
    """The words of a command without secrets."""
    for word in command.words:
        match word:
            case SecretFile():
                raise ValueError("a secret has no plain words")
            case SettingsPath():
                yield settings_path
            case _:
                yield word


def here_document(path: str, text: str) -> str:
    """Shell lines that write a file."""
    end = "EOF"
    while end in text.splitlines():
        end += "_"
    return f"cat >{shlex.quote(path)} <<'{end}'\n{text.rstrip(chr(10))}\n{end}\n"


def _quoted(word: Word, settings_path: str) -> str:
    match word:
        case SecretFile(path):
            return f'"$(cat {shlex.quote(path)})"'
        case SettingsPath():
            return shlex.quote(settings_path)
        case _:
            return shlex.quote(word)
