"""Speaks to the admin API of a running gateway, for commands that compare with it or change it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Final, Self
from urllib.parse import quote

import httpx2
import typer

from gateway.balance.endpoint import Endpoint, EndpointState
from gateway.cli.addresses import token_in
from gateway.settings import Server, Settings
from gateway.settings.changes.plan import Place
from gateway.settings.redacted import ForeignTreeError, settings_of
from gateway.settings.values import MANY_ADDRESSES

TOKEN_VARIABLE: Final = "TURNOUT_ADMIN_TOKEN"
URL_VARIABLE: Final = "TURNOUT_ADMIN_URL"
Token = Annotated[
    str | None,
    typer.Option(
        "--token",
        metavar="VARIABLE",
        help=f"The variable that holds the admin token; default: {TOKEN_VARIABLE}, then the file's admin.token.",
    ),
]
NO_GATEWAY: Final = "is it a Turnout gateway, and as new as this command?"
"""What to ask oneself where a path of the admin API is not there."""

PATIENCE: Final = 10.0
"""Seconds for one answer."""

_SERVING: Final = frozenset({EndpointState.UP.value, EndpointState.UNKNOWN.value})


class CannotAsk(typer.TyperException):
    """The gateway cannot be asked; the message says what to do."""


@dataclass(frozen=True, slots=True)
class InForce:
    """What the gateway says about its configuration; `error` is why its file, as it is now, is not in force."""

    hash: str | None
    source: str | None
    error: str | None
    settings: Settings | None = None
    restart_needed: tuple[str, ...] = ()


class RunningGateway:
    """A gateway at a base URL. Use it as an asynchronous context.

    Of several tokens, the next one is tried when one is not taken: an edit may change the token. `fix` says what to do
    when it does not answer, and `variable` names where the first token was looked for.
    """

    def __init__(self, url: str, tokens: Sequence[str] = (), *, fix: str, variable: str | None = None) -> None:
        self.url = url
        self._fix = fix
        self._variable = variable or TOKEN_VARIABLE
        self._tokens = [token for token in dict.fromkeys(tokens) if token] or [""]
        self._client = httpx2.AsyncClient(timeout=PATIENCE, trust_env=False)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._client.aclose()

    async def config(self, *, full: bool = False) -> InForce:
        """Which configuration is in force; with `full`, all of it, secrets as stars."""
        found = await self._ask("GET", "/admin/config" + ("?full=true" if full else ""))
        if not isinstance(found, dict):
            raise self._odd("/admin/config")
        settings = self._settings(found.get("settings")) if full else None
        waiting = found.get("restart_needed")
        told = tuple(map(str, waiting)) if isinstance(waiting, list) else ()
        text_hash, source, error = (_text(found.get(key)) for key in ("hash", "source", "error"))
        return InForce(text_hash, source, error, settings, told)

    def _settings(self, tree: object) -> Settings:
        if tree is None:
            raise self._odd("/admin/config?full=true")
        try:
            return settings_of(tree)
        except ForeignTreeError as error:
            raise CannotAsk(f"the gateway at {self.url} runs another version of Turnout: {error}") from None

    async def standing(self, settings: Settings) -> dict[Place, bool]:
        """Whether each place of these settings, which are in force, serves now."""
        found = await self._ask("GET", "/admin/engines")
        listed = found if isinstance(found, list) else []
        engines = {engine["name"]: engine["endpoints"] for engine in listed if isinstance(engine, dict)}
        standing: dict[Place, bool] = {}
        for name, engine in settings.engines.items():
            states = {str(one["url"]): one["state"] in _SERVING for one in engines.get(name, ())}
            standing |= _standing(name, engine.urls, states)
        return standing

    async def usage(self, days: Mapping[str, str]) -> list[dict[str, object]]:
        """What each key has used of each model on these days (``since``, ``until``)."""
        query = "&".join(f"{name}={quote(day, safe='')}" for name, day in days.items())
        found = await self._ask("GET", "/admin/usage" + (f"?{query}" if query else ""))
        if not isinstance(found, list):
            raise self._odd("/admin/usage")
        return found

    async def reload(self) -> str | None:
        """Has the gateway read its file at once; gives why it refuses, None if it does not."""
        answer = await self._send("POST", "/admin/reload")
        if answer.status_code == 200:
            return None
        return _message(answer) or f"status {answer.status_code}"

    async def _ask(self, method: str, path: str) -> object:
        answer = await self._send(method, path)
        if answer.status_code == 404:
            raise CannotAsk(f"{self.url} has no {path}: {NO_GATEWAY}")
        if answer.status_code != 200:
            raise CannotAsk(f"{self.url}{path} answers {answer.status_code}: {_message(answer) or 'no reason given'}")
        try:
            found: object = answer.json()
        except (ValueError, RecursionError):
            raise self._odd(path) from None
        return found

    async def _send(self, method: str, path: str) -> httpx2.Response:
        answer = await self._send_with(self._tokens[0], method, path)
        for token in self._tokens[1:]:
            if answer.status_code not in {401, 403}:
                break
            answer = await self._send_with(token, method, path)
        if answer.status_code in {401, 403}:
            why = f"{_message(answer)} Set {self._variable} to its admin.token"
            raise CannotAsk(f"{self.url} does not let us in: {why}")
        return answer

    async def _send_with(self, token: str, method: str, path: str) -> httpx2.Response:
        headers = {"authorization": f"Bearer {token}"} if token else {}
        try:
            return await self._client.request(method, self.url + path, headers=headers)
        except httpx2.HTTPError as error:
            why = "does not answer in time" if isinstance(error, httpx2.TimeoutException) else "cannot be reached"
            raise CannotAsk(f"no gateway at {self.url} ({why}): {self._fix}") from None

    def _odd(self, path: str) -> CannotAsk:
        return CannotAsk(f"{self.url}{path} does not answer as a Turnout gateway does")


def _text(value: object) -> str | None:
    return value if isinstance(value, str) and value else None


def _message(answer: httpx2.Response) -> str:
    try:
        found = answer.json()
    except (ValueError, RecursionError):
        return ""
    error = found.get("error") if isinstance(found, dict) else None
    return str(error.get("message", "")) if isinstance(error, dict) else ""


def _standing(engine: str, urls: tuple[str, ...], states: Mapping[str, bool]) -> dict[Place, bool]:
    plain = {url: Endpoint(url).url for url in urls if not url.startswith(MANY_ADDRESSES)}
    found: dict[Place, bool] = {(engine, url): states[shown] for url, shown in plain.items() if shown in states}
    resolved = [serves for shown, serves in states.items() if shown not in plain.values()]
    return found | {(engine, url): any(resolved) for url in urls if url not in plain}


def address_of(server: Server) -> str:
    """Where a gateway with these settings can be reached from this machine."""
    host = {"0.0.0.0": "127.0.0.1", "::": "::1", "": "127.0.0.1"}.get(server.host, server.host)
    return f"http://[{host}]:{server.port}" if ":" in host else f"http://{host}:{server.port}"


def tokens_for(settings: Settings, variable: str | None) -> tuple[str, ...]:
    """The admin tokens that may be the right ones: that of the named variable alone, or else that of the usual one, and
    then the file's.

    Raises:
        typer.BadParameter: the variable is not set, or holds no token.
    """
    given = token_in(variable, TOKEN_VARIABLE)
    of_the_file = settings.admin.token
    if variable is not None or of_the_file is None:
        return (given,)
    return given, of_the_file.get_secret_value()
