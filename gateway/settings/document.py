"""A YAML text as plain values that remember where they stand."""

import re
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final

from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError, ReusedAnchorWarning, StringMark
from ruamel.yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode
from ruamel.yaml.reader import ReaderError

from gateway.settings.problems import Finding, Path
from gateway.settings.secrets import (
    MissingVariableError,
    expand,
    flag_takes_secret,
    masked,
    names_secret,
    without_credentials,
)

_TAG: Final = "tag:yaml.org,2002:"
_TRUE: Final = frozenset({"true", "yes", "on", "y"})
_BASES: Final = {"0x": 16, "0o": 8, "0b": 2}
_MOST_NODES: Final = 200_000


@dataclass(frozen=True, slots=True)
class Position:
    """Line and column, both from 1."""

    line: int
    column: int


@dataclass(frozen=True, slots=True)
class Place:
    """Where a mapping entry or list item stands, and its text as written (scalars only, secrets never)."""

    key: Position
    value: Position
    literal: str | None = None


@dataclass(slots=True)
class Document:
    """The values of one file, the place of each, and what was wrong with it as YAML.

    A path in `lost` has a value that could not be read, which `findings` explains; some text stands for it in the tree.
    """

    tree: object = None
    places: dict[Path, Place] = field(default_factory=dict)
    findings: list[tuple[Finding, Position]] = field(default_factory=list)
    lost: set[Path] = field(default_factory=set)
    lines: list[str] = field(default_factory=list)

    def place(self, path: Path) -> Place:
        """The place of `path`, or of the nearest thing around it."""
        while path and path not in self.places:
            path = path[:-1]
        start = Position(1, 1)
        return self.places.get(path, Place(start, start))


def read_document(text: str, environ: Mapping[str, str]) -> Document:
    """Reads one YAML document; `${VAR}` references are replaced from `environ`.

    What is wrong is collected in `findings`; after a syntax error there is no tree.
    """
    document = Document(lines=text.splitlines())
    try:
        root = _compose(text)
    except MarkedYAMLError as error:
        document.findings.append(_syntax(error, document.lines))
        document.lines = [masked(line) for line in document.lines]
    except ReaderError as error:
        document.findings.append(_forbidden(error, text))
        document.lines = [masked(line) for line in document.lines]
    except RecursionError:
        document.findings.append((Finding((), "nested too deeply"), Position(1, 1)))
        document.lines = []
    else:
        if root is not None:
            document.tree = _Reader(document, environ).value(root, (), secret=False)
    return document


def _compose(text: str) -> Node | None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ReusedAnchorWarning)
        try:
            node: Node | None = YAML(typ="rt", pure=True).compose(text)
        except (ValueError, OverflowError):
            # The parser gives no place for a \\U escape that names no character.
            before = text[: max(text.find("\\U"), 0)]
            mark = StringMark("", 0, before.count("\n"), len(before) - before.rfind("\n") - 1, None, 0)
            raise MarkedYAMLError(problem="an escape names no character", problem_mark=mark) from None
        except (KeyError, AssertionError):
            mark = StringMark("", 0, 0, 0, None, 0)
            raise MarkedYAMLError(problem="the YAML version is not known", problem_mark=mark) from None
        return node


def _forbidden(error: ReaderError, text: str) -> tuple[Finding, Position]:
    before = text[: error.position]
    position = Position(before.count("\n") + 1, error.position - before.rfind("\n"))
    return Finding((), f"not YAML: the character U+{ord(text[error.position]):04X} is not allowed"), position


def _syntax(error: MarkedYAMLError, lines: list[str]) -> tuple[Finding, Position]:
    mark = error.problem_mark or error.context_mark
    position = Position(mark.line + 1, mark.column + 1) if mark else Position(1, 1)
    line = lines[position.line - 1] if position.line <= len(lines) else ""
    problem = ", ".join(part for part in (error.context, error.problem) if part)
    if masked(line) != line:
        problem = re.sub(r"'([^']*)'", lambda quoted: quoted[0] if len(quoted[1]) < 4 else "'…'", problem)
    fix = None
    if "${" in line:
        fix = "inside [ ] and { }, put ${…} in quotes"
    elif "\t" in line:
        fix = "indent with spaces, not tabs"
    return Finding((), f"not YAML: {problem}", fix), position


class _Reader:
    """Turns nodes into values, entering each one's place into the document."""

    def __init__(self, document: Document, environ: Mapping[str, str]) -> None:
        self._document = document
        self._environ = environ
        self._around: list[Node] = []  # the nodes that hold the current one, to notice an anchor inside itself
        self._nodes = 0

    def value(self, node: Node, path: Path, *, secret: bool) -> object:
        """The value of `node`, which stands at `path`; `secret` hides its text."""
        self._nodes += 1
        if any(node is outer for outer in self._around) or self._nodes > _MOST_NODES:
            return self._lose(Finding(path, "an anchor must not hold itself, or be repeated without end"), node)
        self._around.append(node)
        try:
            if isinstance(node, MappingNode) and node.tag == f"{_TAG}map":
                return self._mapping(node, path, secret=secret)
            if isinstance(node, SequenceNode) and node.tag == f"{_TAG}seq":
                return self._sequence(node, path, secret=secret)
            return self._scalar(node, path, secret=secret)
        finally:
            self._around.pop()

    def _mapping(self, node: MappingNode, path: Path, *, secret: bool) -> dict[str, object]:
        tree: dict[str, object] = {}
        for name, (key, value) in self._pairs(node, path, own=True).items():
            if secret:
                self._hide(key, secret=True)
            tree[name] = self._entry(key, value, (*path, name), secret=secret)
        return tree

    def _pairs(self, node: MappingNode, path: Path, *, own: bool) -> dict[str, tuple[Node, Node]]:
        """The entries of a mapping; its own ones win over those that `<<` brings, which are only reported once."""
        pairs: dict[str, tuple[Node, Node]] = {}
        merged: list[Node] = []
        for key, value in node.value:
            if key.tag == f"{_TAG}merge":
                merged += value.value if isinstance(value, SequenceNode) else [value]
            elif not isinstance(key, ScalarNode):
                self._report(Finding(path, "a key must be a single word"), key)
            elif (name := str(key.value)) in pairs:
                self._hide(value, secret=names_secret(name))
                if own:
                    message = f"is given twice; first on line {_start(pairs[name][0]).line}"
                    self._report(Finding((*path, name), message, "keep one of the two"), key)
            else:
                pairs[name] = (key, value)
        for other in merged:
            if not isinstance(other, MappingNode) or any(other is outer for outer in self._around):
                self._report(Finding(path, "<< must name another mapping"), other)
                continue
            self._around.append(other)
            pairs = self._pairs(other, path, own=False) | pairs
            self._around.pop()
        return pairs

    def _entry(self, key: Node, value: Node, path: Path, *, secret: bool) -> object:
        secret = secret or names_secret(path[-1])
        self._document.places[path] = Place(_start(key), _start(value), _literal(value, secret=secret))
        return self.value(value, path, secret=secret)

    def _sequence(self, node: SequenceNode, path: Path, *, secret: bool) -> list[object]:
        items: list[object] = []
        after_flag = False  # the values of a flag such as --api-key, up to the next flag
        for index, item in enumerate(node.value):
            here, word = (*path, index), str(item.value) if isinstance(item, ScalarNode) else ""
            flag = word.startswith("--")
            after_flag = flag_takes_secret(word) if flag else after_flag
            hidden = secret or (after_flag and re.fullmatch(r"--[\w-]+", word) is None)
            self._document.places[here] = Place(_start(item), _start(item), _literal(item, secret=hidden))
            items.append(self.value(item, here, secret=hidden))
        return items

    def _scalar(self, node: Node, path: Path, *, secret: bool) -> object:
        self._hide(node, secret=secret)
        read = _SCALARS.get(str(node.tag)) if isinstance(node, ScalarNode) else None
        if read is None:
            return self._lose(Finding(path, "YAML tags have no meaning here", "leave the tag out"), node)
        value = read(node.value)
        if not isinstance(value, str) or "${" not in value:
            return value
        try:
            return expand(value, self._environ)
        except MissingVariableError as error:
            return self._lose(Finding(path, str(error), error.fix), node)

    def _lose(self, finding: Finding, node: Node) -> str:
        self._document.lost.add(finding.path)
        self._report(finding, node)
        return f"unreadable line {node.start_mark.line + 1}"

    def _report(self, finding: Finding, node: Node) -> None:
        self._document.findings.append((finding, _start(node)))

    def _hide(self, node: Node, *, secret: bool) -> None:
        """Puts stars over a secret, and over credentials in a URL, in the lines that errors show."""
        lines = self._document.lines
        for row in range(node.start_mark.line, min(node.end_mark.line + 1, len(lines))):
            line = lines[row]
            start = node.start_mark.column if row == node.start_mark.line else 0
            end = node.end_mark.column if row == node.end_mark.line else len(line)
            hidden = re.sub(r"\S", "*", line[start:end]) if secret else without_credentials(line[start:end])
            lines[row] = line[:start] + hidden + line[end:]


def _start(node: Node) -> Position:
    return Position(node.start_mark.line + 1, node.start_mark.column + 1)


def _literal(node: Node, *, secret: bool) -> str | None:
    if secret or not isinstance(node, ScalarNode) or "://" in node.value:
        return None
    text: str = node.value
    return text if len(text) <= 60 and text.isprintable() else None


def _integer(text: str) -> int | str:
    digits = text.replace("_", "")
    sign, digits = (-1, digits[1:]) if digits.startswith("-") else (1, digits.removeprefix("+"))
    try:
        return sign * int(digits[2:], base) if (base := _BASES.get(digits[:2].lower())) else sign * int(digits)
    except ValueError:
        return text


def _float(text: str) -> float | str:
    plain = text.lower().replace("_", "")
    try:
        return float(plain.replace(".inf", "inf").replace(".nan", "nan"))
    except ValueError:
        return text


_SCALARS: Final[Mapping[str, Callable[[str], object]]] = {
    f"{_TAG}str": str,
    f"{_TAG}int": _integer,
    f"{_TAG}float": _float,
    f"{_TAG}bool": lambda text: text.lower() in _TRUE,
    f"{_TAG}null": lambda _: None,
    f"{_TAG}timestamp": str,
}
