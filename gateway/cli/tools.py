"""`turnout tools`: what the parser sees in a model's raw text, and which format a model speaks."""

import json
import sys
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from gateway.wire.toolcalls import (
    CallArguments,
    CallEnd,
    CallStart,
    Delta,
    Finish,
    Parsed,
    ReasoningDelta,
    Stream,
    TextDelta,
    UnknownFormatError,
    collect,
)
from gateway.wire.toolcalls.detect import NOTHING, Finding, from_name, from_template, from_text, template_in
from gateway.wire.toolcalls.table import format_table, updated

app: Final = typer.Typer(
    help="Read tool calls out of raw text, and find out which format a model speaks.",
    no_args_is_help=True,
    add_completion=False,
)
_NAME_IT: Final = "turnout tools table lists all: name one in the configuration, models.NAME.tools: {format: …}"
_MODES: Final = frozenset({"auto", "none", "required"})
_TOKENIZER_FILES: Final = ("chat_template.jinja", "chat_template.json", "tokenizer_config.json", "tokenizer.json")


@app.command()
def parse(
    format_: Annotated[str, typer.Option("--format", "-f", help="A format, or any engine's parser name.")],
    tools: Annotated[
        Path | None, typer.Option(help="The offered tools: a JSON list, or a request that has one.", metavar="FILE")
    ] = None,
    stream: Annotated[bool, typer.Option("--stream", help="Show the deltas as they come.")] = False,  # noqa: FBT002 - an option
    piece: Annotated[int, typer.Option(min=1, help="With --stream: characters per piece.")] = 8,
    reasoning: Annotated[str, typer.Option(help="auto, off, or a reasoning parser's name.")] = "auto",
    starts_in_reasoning: Annotated[  # noqa: FBT002 - an option
        bool, typer.Option("--starts-in-reasoning", help="The prompt already opened the reasoning.")
    ] = False,
    tool_choice: Annotated[str, typer.Option(help="auto, none, required, or a tool's name.")] = "auto",
    finish_reason: Annotated[str, typer.Option(help="The engine's finish reason.")] = "stop",
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,  # noqa: FBT002 - an option
) -> None:
    """Print what a model's raw text, read from standard input, says: reasoning, content and calls."""
    named = {"type": "function", "function": {"name": tool_choice}}
    try:
        parser = Stream(
            format_,
            tools=_tools(tools),
            tool_choice=tool_choice if tool_choice in _MODES else named,
            reasoning=reasoning,
            starts_in_reasoning=starts_in_reasoning,
        )
    except UnknownFormatError as error:
        raise typer.BadParameter(f"{error} (turnout tools table lists all)") from error
    text = _given()
    if stream:
        _show_stream(parser, text, piece, finish_reason)
        return
    parsed = collect([*parser.feed(text), *parser.finish(finish_reason)], parser.repairs)
    typer.echo(json.dumps(_plain(parsed), ensure_ascii=False, indent=2) if as_json else _shown(parsed))


@app.command()
def detect(
    file: Annotated[
        str | None,
        typer.Argument(
            metavar="FILE|-", help="A chat template, a model's text, or a folder with a tokenizer; - reads it."
        ),
    ] = None,
    model: Annotated[str, typer.Option(help="The model's name, if nothing better is there.")] = "",
) -> None:
    """Name the wire format of a chat template, of a text with tool calls in it, or of a model."""
    if not file and not model:
        raise typer.BadParameter("what shall be looked at? Give a FILE, - for standard input, or --model NAME")
    found = _found(file) if file else NOTHING
    if not found.format and model:
        found = from_name(model)
    if not found.format:
        raise typer.TyperException(f"no tool-call format recognised ({_NAME_IT})")
    typer.echo(f"{found.format}  ({found.source}: {found.evidence})")


@app.command()
def table(
    write: Annotated[Path | None, typer.Option(help="Put it into this document.", metavar="FILE")] = None,
) -> None:
    """Print the table of formats, model families and engines' names."""
    if write is None:
        typer.echo(format_table(), nl=False)
        return
    try:
        write.write_text(updated(_text(write)), encoding="utf-8")
    except ValueError as error:
        raise typer.TyperException(f"{write}: {error}") from error


def _tools(path: Path | None) -> list[Any] | None:
    if path is None:
        return None
    try:
        value = json.loads(_text(path))
    except ValueError as error:
        raise typer.BadParameter(f"{path} is not JSON: {error}") from error
    except RecursionError:
        raise typer.BadParameter(f"{path} is not JSON: it is nested too deeply") from None
    found = value.get("tools") if isinstance(value, dict) else value
    if not isinstance(found, list):
        raise typer.BadParameter(f"{path} holds neither a list of tools nor an object with one")
    return found


def _text(path: Path) -> str:
    """A file's text. Raises typer.TyperException."""
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise typer.TyperException(f"{path}: {error.strerror or 'cannot be read'}") from error
    except ValueError as error:
        raise typer.TyperException(f"{path}: is not UTF-8 text") from error


def _given() -> str:
    """What standard input says. Raises typer.TyperException."""
    try:
        text = sys.stdin.read()
        text.encode()
    except UnicodeError as error:
        raise typer.TyperException("standard input: is not UTF-8 text") from error
    return text


def _found(file: str) -> Finding:
    path = Path(file)
    if file != "-" and path.is_dir():
        there = {name: _text(path / name) for name in _TOKENIZER_FILES if (path / name).is_file()}
        found = from_template(template_in(there))
        return found if found.format else from_name(path.resolve().name)
    text = _given() if file == "-" else _text(path)
    if path.name in _TOKENIZER_FILES and path.suffix == ".json":
        return from_template(template_in({path.name: text}))
    if "{%" in text or "{{" in text:
        return from_template(text)
    found = from_text(text)
    return found if found.format else from_template(text)


def _show_stream(parser: Stream, text: str, size: int, reason: str) -> None:
    for at in range(0, len(text), size):
        _show_piece(text[at : at + size], parser.feed(text[at : at + size]))
    _show_piece("", parser.finish(reason))


def _show_piece(piece: str, deltas: list[Delta]) -> None:
    typer.echo(f"{piece!r}" if piece else "end")
    for delta in deltas:
        typer.echo(f"    {_line(delta)}")


def _line(delta: Delta) -> str:
    match delta:
        case TextDelta(text):
            return f"content {text!r}"
        case ReasoningDelta(text):
            return f"reasoning {text!r}"
        case CallStart(index, call_id, name):
            return f"call {index} {name} ({call_id})"
        case CallArguments(index, text):
            return f"call {index} arguments {text!r}"
        case CallEnd(index, complete):
            return f"call {index} {'ends' if complete else 'is not whole'}"
        case Finish(reason):
            return f"finish {reason}"


def _plain(parsed: Parsed) -> dict[str, Any]:
    return {
        "content": parsed.content,
        "reasoning": parsed.reasoning,
        "tool_calls": [
            {"id": call.id, "name": call.name, "arguments": call.arguments, "complete": call.complete}
            for call in parsed.calls
        ],
        "finish_reason": parsed.finish_reason,
        "repairs": parsed.repairs,
    }


def _shown(parsed: Parsed) -> str:
    lines = []
    if parsed.reasoning is not None:
        lines.append(f"reasoning: {parsed.reasoning!r}")
    if parsed.content is not None:
        lines.append(f"content: {parsed.content!r}")
    lines.extend(
        f"call: {call.name} {call.arguments}  ({call.id}{'' if call.complete else ', not whole'})"
        for call in parsed.calls
    )
    lines.append(f"finish: {parsed.finish_reason}")
    lines.extend(f"repaired: {name}, {count} times" for name, count in sorted(parsed.repairs.items()))
    return "\n".join(lines)
