"""Plain values as YAML that people like to read."""

import io
from collections.abc import Iterable, Mapping
from typing import Final

from ruamel.yaml import YAML
from ruamel.yaml.comments import CommentedMap, CommentedSeq
from ruamel.yaml.scalarstring import DoubleQuotedScalarString, LiteralScalarString

WIDTH: Final = 100  # columns after which a line is broken at the next word


def yaml_text(value: object) -> str:
    """One document. Short lists of single values stand in one line; texts with line breaks keep them."""
    return yaml_documents([value])


def yaml_documents(values: Iterable[object]) -> str:
    """Several documents, with `---` between them."""
    yaml = YAML()
    yaml.width = WIDTH
    texts = []
    for value in values:
        stream = io.StringIO()
        yaml.dump(_shaped(value), stream)
        texts.append("".join(f"{line.rstrip()}\n" for line in stream.getvalue().splitlines()))
    return "---\n".join(texts)


def _shaped(value: object) -> object:
    match value:
        case Mapping():
            found = CommentedMap((str(key), _shaped(inner)) for key, inner in value.items())
            if not found:
                found.fa.set_flow_style()
            return found
        case list() | tuple():
            items = CommentedSeq([_shaped(inner) for inner in value])
            if all(isinstance(inner, str | int | float) for inner in value):
                items.fa.set_flow_style()
            return items
        case str() if "\n" in value:
            return LiteralScalarString(value)
        case str() if _needs_quotes(value):
            return DoubleQuotedScalarString(value)
        case _:
            return value


def _needs_quotes(text: str) -> bool:
    """Texts that YAML 1.1 or a list in one line would take for something else."""
    odd = set(text) & set("{}[],&*#?|<>=!%@\\`\"' $") or ": " in text or text.endswith(":")
    words = {"", "~", "null", "true", "false", "yes", "no", "on", "off", "y", "n"}
    indicator = text in {"-", "?", ":"} or text.startswith(("- ", "? ", ":"))
    return bool(odd) or text.lower() in words or indicator or _is_number(text)


def _is_number(text: str) -> bool:
    return text.replace("_", "").replace(".", "", 1).replace(":", "").lstrip("+-").isdigit()
