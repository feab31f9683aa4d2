"""The section `logs`."""

from typing import Annotated, Final, Literal

from pydantic import BeforeValidator, Field

from gateway.settings.section import Section
from gateway.settings.units import parse_share, share_text
from gateway.settings.values import RefusedValueError
from gateway.settings.written import SHARE, VARIABLE, Written, any_of, one_of

WORDS: Final = ("off", "errors", "all")
_EXPECTED: Final = "off, errors, all, or a share such as 1%"


def _which(value: object) -> str | float:
    if isinstance(value, bool):  # what `off` and `on` are where YAML 1.1 is spoken
        value = "all" if value else "off"
    if isinstance(value, str) and value.strip() in WORDS:
        return value.strip()
    try:
        return parse_share(value)
    except ValueError:
        raise RefusedValueError(f"expected {_EXPECTED}") from None


def _which_text(which: object) -> str:
    return which if isinstance(which, str) else share_text(which)


WHICH: Final = Written(any_of(one_of(WORDS), SHARE.schema, VARIABLE, expected=_EXPECTED), _which_text)

WhichRequests = Annotated[Literal["off", "errors", "all"] | float, BeforeValidator(_which), WHICH]


class Logs(Section):
    """What is written to the log, on standard error: for people on a terminal, one JSON object per line otherwise."""

    level: Literal["debug", "info", "warning", "error"] = Field(
        default="info", description="the least that is written; PUT /admin/log-level changes it for a while"
    )
    requests: WhichRequests = Field(
        default="off",
        description="which requests have a line of their own: off, errors, all; or errors and a share of the others",
        examples=["1%"],
    )
