"""Addresses and variables as people give them on the command line."""

import os
import re
from typing import Final

import typer

from gateway.settings.values import RefusedValueError, engine_url

_CREDENTIALS: Final = re.compile(r"//[^/?#]*@")
_TOKEN: Final = re.compile(r"[!-~]*")


def base_url(text: str, option: str = "") -> str:
    """A base address as people paste it: the scheme may be missing, and /v1 may be there.

    Raises:
        typer.BadParameter: it is none; `option` is named, credentials are not repeated.
    """
    url = text if "://" in text or not text else f"http://{text}"
    try:
        return engine_url(url if url.endswith("://") else url.rstrip("/").removesuffix("/v1"))
    except RefusedValueError as error:
        fix = f" ({error.fix})" if error.fix else ""
        shown = _CREDENTIALS.sub("//", text)
        raise typer.BadParameter(": ".join(part for part in (option, shown, f"{error}{fix}") if part)) from None


def gateway_url(text: str, option: str) -> str:
    """The same for a gateway, which is at one address. Raises typer.BadParameter."""
    url = base_url(text, option)
    if not url.startswith("http"):
        raise typer.BadParameter(f"{option}: {text}: expected a URL with http:// or https://")
    return url


def token_in(variable: str | None, usual: str) -> str:
    """The token that a variable holds, the usual one if none is named; empty if the usual one is not set.

    Raises:
        typer.BadParameter: no variable has this name (what was given may be the token itself, and is not repeated), or
            what it holds cannot be a token.
    """
    name = variable or usual
    if name != usual and name not in os.environ:
        fix = "it takes the name of the variable that holds the token, not the token"
        raise typer.BadParameter(f"--token: no variable of that name is set ({fix})")
    token = os.environ.get(name, "").strip()
    if not _TOKEN.fullmatch(token):
        raise typer.BadParameter(
            f"what the variable {name} holds is no token: it has blanks or characters beyond ASCII"
        )
    return token
