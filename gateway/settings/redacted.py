"""The settings as plain values that may be shown: what the file and the environment said, secrets as stars."""

from typing import Final

from pydantic import ValidationError

from gateway.settings.launching import value_at
from gateway.settings.secrets import names_secret
from gateway.settings.tree import Settings

_STARS: Final = "**********"


class ForeignTreeError(ValueError):
    """A tree that is not this version's."""


def redacted_tree(settings: Settings) -> dict[str, object]:
    """Only what was written down, as JSON values. Secrets are stars; one that is empty, or left out, is left out."""
    tree: dict[str, object] = settings.model_dump(mode="json", exclude_unset=True, exclude_none=True)
    for name in settings.engines:
        variables = value_at(tree, ("engines", name, "launch", "environment"))
        if isinstance(variables, dict):
            variables.update({variable: _STARS for variable in variables if names_secret(variable)})
    return tree


def settings_of(tree: object) -> Settings:
    """The settings that a redacted tree shows; their secrets are stars.

    Raises:
        ForeignTreeError: it has keys or values that this version does not know.
    """
    try:
        return Settings.model_validate(tree)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        place = ".".join(map(str, first["loc"]))
        raise ForeignTreeError(f"{place or 'the tree'}: {first['msg']}") from None
