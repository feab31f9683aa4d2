"""A JSON value: what it holds is what a test is about."""

from typing import Any, TypeAlias

Json: TypeAlias = Any
