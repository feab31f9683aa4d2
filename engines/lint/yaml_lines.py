"""YAML that remembers the line of each key."""

from collections.abc import Sequence

from ruamel.yaml import YAML
from ruamel.yaml.comments import CommentedMap, CommentedSeq
from ruamel.yaml.error import MarkedYAMLError, YAMLError


class YamlFault(Exception):
    """A text that is no YAML; `line` counts from 1."""

    def __init__(self, line: int, message: str) -> None:
        self.line, self.message = line, message
        super().__init__(message)


def read_yaml(text: str) -> object:
    """The tree of a text, as mappings and lists that know their lines.

    Raises:
        YamlFault: it is no YAML.
    """
    try:
        tree: object = YAML(typ="rt").load(text)
    except MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        raise YamlFault(1 + mark.line if mark else 1, " ".join(str(error.problem or error.context).split())) from None
    except (YAMLError, ValueError, RecursionError) as error:
        raise YamlFault(1, " ".join(str(error).split())) from None
    return tree


def line_of(tree: object, path: Sequence[str | int]) -> int:
    """The line of the key, or of the list's item, at a path; that of what is around it where the rest is not there."""
    line, here = 1, tree
    for part in path:
        if isinstance(here, CommentedMap) and part in here:
            if part in here.lc.data:
                line = here.lc.key(part)[0] + 1
            here = here[part]
        elif isinstance(here, CommentedSeq) and isinstance(part, int) and part < len(here):
            line = here.lc.item(part)[0] + 1
            here = here[part]
        else:
            break
    return line
