"""What the text of a variable means as a value of the tree: pydantic-settings knows.

Few gateways have such variables, so that this, and the library with it, is loaded when the first one is seen.
"""

from collections.abc import Mapping

from pydantic_settings import BaseSettings, EnvSettingsSource, SettingsConfigDict

from gateway.settings.problems import Path
from gateway.settings.tree import Settings

_DELIMITER = "\x1f"  # of path parts, since names of models may hold underscores


class _FromEnvironment(Settings, BaseSettings):
    """The tree as pydantic-settings wants it. It is only looked at."""

    model_config = SettingsConfigDict(env_prefix="")


def decoded(path: Path, text: str) -> object:
    """`text` as the field at `path` takes it: lists and mappings are JSON, everything else stays text.

    Raises:
        ValueError: it is not JSON.
    """
    source = EnvSettingsSource(_FromEnvironment, case_sensitive=True, env_nested_delimiter=_DELIMITER)
    source.env_vars = {_DELIMITER.join(map(str, path)): text}
    value: object = source()
    for part in path:
        if not isinstance(value, Mapping) or part not in value:
            return text
        value = value[part]
    return value
