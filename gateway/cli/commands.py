"""The subcommands of `turnout`: one row each, loaded only when it runs, and their frame (typer)."""

import difflib
import importlib
import sys
from dataclasses import dataclass
from typing import Annotated, Final

import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_command


@dataclass(frozen=True, slots=True)
class Command:
    """Where a subcommand's typer-annotated function is, or the typer application of a group of subcommands."""

    name: str
    module: str
    function: str


_GROUPS: Final = ("admin", "engines", "keys", "tools")
COMMANDS: Final = tuple(
    Command(name, f"gateway.cli.{name}", name)
    for name in (
        "apply",
        "check",
        "demo",
        "doctor",
        "init",
        "plan",
        "serve",
        "simulate",
        "usage",
        "version",
    )
) + tuple(Command(name, f"gateway.cli.{name}", "app") for name in _GROUPS)
_ROWS: Final = {row.name: row for row in COMMANDS}


class UnknownCommand(typer.TyperException):
    """A subcommand that does not exist."""

    exit_code = 2


class LazyGroup(TyperGroup):
    """Imports a subcommand's module when the subcommand is asked for, so that the quick ones start quickly."""

    def list_commands(self, ctx: object) -> list[str]:  # noqa: ARG002 - the group's interface
        """The names, in the order of the table."""
        return list(_ROWS)

    def get_command(self, ctx: object, cmd_name: str) -> TyperCommand | TyperGroup | None:  # noqa: ARG002 - see above
        """The subcommand, built from its function, or the group."""
        row = _ROWS.get(cmd_name)
        if row is None:
            return None
        found = getattr(importlib.import_module(row.module), row.function)
        wrapped = typer.Typer(add_completion=False, rich_markup_mode=self.rich_markup_mode)
        if isinstance(found, typer.Typer):
            found.rich_markup_mode = self.rich_markup_mode
            wrapped = found
        else:
            wrapped.command(row.name)(found)
        command = get_command(wrapped)
        return command if isinstance(command, TyperCommand | TyperGroup) else None

    def resolve_command(
        self, ctx: object, args: list[str]
    ) -> tuple[str | None, TyperCommand | TyperGroup | None, list[str]]:
        """The subcommand that the arguments begin with, and the rest of them."""
        name, *rest = args
        if name not in _ROWS:
            close = difflib.get_close_matches(name, _ROWS, n=1)
            suggestion = f'did you mean "{close[0]}"?' if close else "see turnout --help"
            raise UnknownCommand(f'no command "{name}" ({suggestion})')
        return name, self.get_command(ctx, name), rest


def _about(
    version: Annotated[  # noqa: FBT002 - an option
        bool, typer.Option("--version", "-V", help="Print the version and exit.", is_eager=True)
    ] = False,
) -> None:
    """One OpenAI endpoint in front of vLLM, TensorRT-LLM and Triton."""
    del version  # `main` makes the command of it


def run(arguments: list[str]) -> int:
    """Runs the command line and gives its exit code; what is wrong with it is one line on stderr.

    A subcommand reports a failure by raising `typer.TyperException` or `gateway.cli.failing.Failure` (one line, exit
    code 1), or by printing and raising `typer.Exit`.
    """
    app = typer.Typer(
        cls=LazyGroup,
        add_completion=False,
        rich_markup_mode="rich" if sys.stdout.isatty() else None,
        context_settings={"help_option_names": ["--help", "-h"]},
    )
    app.callback()(_about)
    try:
        result = get_command(app).main(_meant(arguments), prog_name="turnout", standalone_mode=False)
    except typer.TyperException as error:
        _complain(error, arguments)
        return error.exit_code
    except typer.Abort:
        return 130
    return result if isinstance(result, int) else 0


def _meant(given: list[str]) -> list[str]:
    """The arguments, completed where they leave no doubt: help for nothing, or for a group of commands alone."""
    if not given:
        return ["--help"]
    if given[0] in {"--version", "-V"}:
        return ["version", *given[1:]]
    if len(given) == 1 and given[0] in _GROUPS:
        return [*given, "--help"]
    return given


def _complain(error: typer.TyperException, given: list[str]) -> None:
    command = getattr(getattr(error, "ctx", None), "command_path", None)
    if command is None and hasattr(error, "ctx"):  # of an option without a value, it is not said whose it is
        command = " ".join(("turnout", *given[: 2 if given[0] in _GROUPS else 1]))
    hint = f" (see {command} --help)" if command else ""
    said = error.format_message().replace("Value error, ", "")  # pydantic's, which typer reads values with
    message = " ".join(said.split()).removesuffix(".")
    typer.echo(f"{command or 'turnout'}: {message}{hint}", err=True)
