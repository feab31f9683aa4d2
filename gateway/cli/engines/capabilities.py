"""`turnout engines capabilities`."""

import json
from typing import Annotated

import typer

from engines.capabilities import OPENAI, capabilities
from engines.documents import engines_page
from engines.profile import Operation


def show_capabilities(
    as_json: Annotated[bool, typer.Option("--json", help="Print everything as JSON.")] = False,  # noqa: FBT002 - an option
    markdown: Annotated[  # noqa: FBT002 - an option
        bool, typer.Option("--markdown", help="Print the page docs/engines.md.")
    ] = False,
) -> None:
    """Print what becomes of each parameter on each kind of engine."""
    if as_json:
        typer.echo(json.dumps(capabilities(), indent=2, ensure_ascii=False))
    elif markdown:
        typer.echo(engines_page(), nl=False)
    else:
        typer.echo(_overview())


def _overview() -> str:
    """A table of words: one line per parameter of OpenAI's."""
    engines = capabilities()
    lines = []
    for operation in OPENAI:
        titles = [engine["title"] for engine in engines]
        lines.append(f"{operation.value:<26}" + "".join(f"{title:<14}" for title in titles).rstrip())
        for name in OPENAI[operation]:
            words = [_word(engine["operations"], operation, name) for engine in engines]
            lines.append(f"  {name:<24}" + "".join(f"{word:<14}" for word in words).rstrip())
    lines.append("The reasons, and engines' own parameters: --json, or docs/engines.md.")
    return "\n".join(lines)


def _word(operations: dict[str, dict[str, dict[str, dict[str, str]]]], operation: Operation, name: str) -> str:
    served = operations.get(operation.value)
    return "-" if served is None else served["parameters"][name]["policy"]
