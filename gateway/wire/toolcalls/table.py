"""The table of formats in `docs/tool-calls.md`, made from the data that the parser runs on."""

from typing import Final

from gateway.wire.toolcalls.aliases import ALIASES, ENGINES
from gateway.wire.toolcalls.formats import FORMATS
from gateway.wire.toolcalls.spec import Format, Grammar

BEGIN: Final = "<!-- formats: made by `turnout tools table`, do not edit -->"
END: Final = "<!-- end of formats -->"


def format_table() -> str:
    """Formats by model families, what their calls begin with, and each engine's parser names, as Markdown."""
    heads = ("format", "model families", "calls begin with", "reasoning", *ENGINES)
    rows = [heads, tuple("---" for _ in heads), *(_row(form) for form in FORMATS)]
    return "\n".join(f"| {' | '.join(row)} |" for row in rows) + "\n"


def updated(document: str) -> str:
    """`document` with its table replaced by the current one.

    Raises:
        ValueError: the document has no place for it.
    """
    before, begin, rest = document.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise ValueError(f"no place for the table: {BEGIN} … {END} is missing")
    return f"{before}{BEGIN}\n\n{format_table()}\n{END}{after}"


def _row(form: Format) -> tuple[str, ...]:
    return (
        f"`{form.name}`",
        form.families,
        _openers(form),
        form.reasoning,
        *(" ".join(f"`{alias}`" for alias in names.split()) or "-" for names in ALIASES[form.name]),
    )


def _openers(form: Format) -> str:
    if form.name == "harmony":
        return _code("<|channel|>… to=functions.NAME")
    if form.name == "guided":
        return "a JSON list or object"
    marked = [opener for grammar in form.grammars if not grammar.at_start for opener in _first(grammar)]
    shown = [_code(opener) for opener in dict.fromkeys(marked)][:2]
    return ", ".join(shown) + ("; or bare" if form.bare else "")


def _first(grammar: Grammar) -> tuple[str, ...]:
    """The openers that a template writes."""
    return () if grammar.only_offered else grammar.opens or grammar.item_opens


def _code(text: str) -> str:
    return "`" + text.strip().replace("|", "\\|") + "`"
