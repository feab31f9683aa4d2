"""What the installed vLLM's own parser knows, as JSON; run with that vLLM's Python.

    python vllm_flags.py <command lines, one JSON list per line>

Prints its flags, the arguments of its engine, its parsers of tool calls and reasoning, and how it reads each command
line: the values by their names, or the error.
"""

import argparse
import contextlib
import dataclasses
import io
import json
import sys

from vllm.engine.arg_utils import AsyncEngineArgs
from vllm.entrypoints.cli.serve import ServeSubcommand
from vllm.reasoning import ReasoningParserManager
from vllm.tool_parsers import ToolParserManager
from vllm.utils.argparse_utils import FlexibleArgumentParser

KINDS = {
    "int": "int",
    "float": "float",
    "human_readable_int": "count",
    "human_readable_int_or_auto": "count",
    "loads": "json",
    "union_dict_and_str": "json",
    "_parse_type": "json",
    "parse_dataclass": "json",
}


def kind(convert: object) -> str:
    """The name that the project's table has for a type."""
    if getattr(convert, "__name__", "") == "_optional_type":
        cells = getattr(convert, "__closure__", None) or ()
        return kind(next(cell.cell_contents for cell in cells if callable(cell.cell_contents)))
    return KINDS.get(getattr(convert, "__name__", ""), "text")


def flag(action: argparse.Action) -> dict[str, object]:
    negative = [name for name in action.option_strings if name.startswith("--no-")]
    names = [name for name in action.option_strings if name not in negative]
    return {
        "names": sorted(names),
        "kind": "switch" if action.nargs == 0 else kind(action.type),
        "several": action.nargs == "+",
        "optional": action.nargs == "?",
        "negatable": bool(negative),
        "choices": [str(choice) for choice in action.choices or () if choice is not None],
    }


def read(parser: argparse.ArgumentParser, words: list[str]) -> dict[str, object]:
    said = io.StringIO()
    try:
        with contextlib.redirect_stderr(said):
            found = parser.parse_args(words)
            ServeSubcommand().validate(found)
    except (SystemExit, TypeError, ValueError) as error:
        return {"error": f"{said.getvalue()} {error}"}
    return {name: plain(value) for name, value in vars(found).items()}


def plain(value: object) -> object:
    return (
        value
        if value is None or (isinstance(value, list | int | float) and not isinstance(value, bool))
        else str(value)
    )


def main() -> None:
    groups = FlexibleArgumentParser(prog="vllm").add_subparsers(dest="subparser")
    parser = ServeSubcommand().subparser_init(groups)
    known = {
        "flags": [flag(action) for action in parser._actions if action.option_strings],
        "tool_parsers": sorted(ToolParserManager.list_registered()),
        "reasoning_parsers": sorted(ReasoningParserManager.list_registered()),
        "engine_arguments": sorted(field.name for field in dataclasses.fields(AsyncEngineArgs)),
        "read": [read(parser, json.loads(line)) for line in sys.stdin],
    }
    print(json.dumps(known, default=str))


if __name__ == "__main__":
    main()
