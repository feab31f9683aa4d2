"""Shows a plan: for people at a glance, for programs as a tree of plain values."""

from collections.abc import Iterator, Mapping
from typing import Final

from rich.console import Console
from rich.text import Text

from engines.profile import EngineKind
from engines.registry import profile
from gateway.cli.init_text import plainly
from gateway.settings.changes import Change, Kind
from gateway.settings.changes.plan import Look, Plan

_MARKS: Final[Mapping[Kind, tuple[str, str]]] = {
    Kind.ADDED: ("+", "green"),
    Kind.REMOVED: ("-", "red"),
    Kind.CHANGED: ("~", "yellow"),
}
_TITLES: Final = {"models": "Models", "engines": "Engines", "keys": "Keys"}
_REST: Final = "Gateway"
_MOST_MODELS: Final = 5


def show_plan(plan: Plan, source: str) -> None:
    """Writes the plan to stdout, in colour on a terminal."""
    console = Console(highlight=False, soft_wrap=True, emoji=False)
    console.print(Text(f"{source} against {plan.against}", style="bold"))
    for line in _lines(plan):
        console.print(line)


def _lines(plan: Plan) -> Iterator[Text]:
    if not plan.changes:
        yield Text("  no difference that can be seen" if plan.notes else "  no difference")
    for title in (*_TITLES.values(), _REST):
        found = [change for change in plan.changes if _TITLES.get(str(change.path[0]), _REST) == title]
        if found:
            yield Text(f"\n{title}", style="bold")
            yield from map(_change, found)
    if plan.looks:
        yield Text("\nLooked at", style="bold")
        yield from map(_look, plan.looks)
    yield Text()
    yield from _verdict(plan)


def _change(change: Change) -> Text:
    mark, style = _MARKS[change.kind]
    name = change.subject.partition(" ")[2] or change.subject
    line = Text.assemble(("  " + mark, style), f" {name}: {change.meaning}")
    if change.key.endswith(".targets") and change.before and change.after:
        line.append(f"  [{change.before} → {change.after}]", style="dim")
    if change.breaks:
        line.append("  breaks clients", style="bold red")
    if change.restart:
        line.append("  needs a restart", style="magenta")
    return line


def _look(look: Look) -> Text:
    place = f"{look.engine} at {look.url}"
    if look.fault:
        return Text.assemble(("  ✗", "red"), f" {place}: {look.fault}")
    what = f"{profile(EngineKind(look.kind)).title} {plainly(look.version or '')}".strip() if look.kind else "answers"
    models = ", ".join(map(plainly, look.models[:_MOST_MODELS])) + (", …" if len(look.models) > _MOST_MODELS else "")
    return Text.assemble(("  ✓", "green"), f" {place}: {what}" + (f", lists {models}" if models else ""))


def _verdict(plan: Plan) -> Iterator[Text]:
    for note in plan.notes:
        yield Text.assemble(("note", "cyan"), f": {note}")
    for engine, model in plan.unlisted:
        yield Text.assemble(("warning", "yellow"), f': {engine} does not list "{model}"')
    for name in plan.unreached:
        yield Text.assemble(("unsafe", "bold red"), f": no replica of the new engine {name} can be used")
    for loss in plan.losses:
        told = f": model {loss.model} would lose its last healthy target ({loss.why})"
        yield Text.assemble(("unsafe", "bold red"), told)
    if plan.safe:
        breaks = sum(change.breaks for change in plan.changes)
        what = f"; {breaks} of its changes will break requests that work now" if breaks else ""
        yield Text.assemble(("safe", "bold green"), what)
