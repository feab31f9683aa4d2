"""Puts questions to replicas over connections of its own, a new one for each."""

import asyncio
import contextlib
import ssl
import time
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, replace
from typing import Final
from urllib.parse import urlsplit

import httpx2

from engines.prometheus import read_load
from gateway.doctor.asking import Answers, Heard, How, Left, Question
from gateway.doctor.idle import idle_seconds
from gateway.doctor.subject import Site
from gateway.unreachable import no_connection

LARGEST: Final = 4 * 2**20
"""Bytes of an answer; a longer one is no answer to such small questions."""

AT_ONCE: Final = 4
"""Questions that a replica gets at a time."""

QUICK: Final = 10.0
"""Seconds for an answer for which nothing has to be generated."""

WATCH: Final = 0.25
"""Seconds between two looks at the metrics after leaving."""


@dataclass(frozen=True, slots=True)
class Patience:
    """How long is waited, in seconds: for an answer, and for an engine to notice that its client has left.

    trtllm-serve looks once a second. ``idle``: how long an idle connection is watched; None: as long as the gateway
    keeps one.
    """

    answer: float = 30.0
    leaving: float = 2.5
    idle: float | None = None

    def of(self, question: Question) -> float:
        """For this question."""
        return self.answer if question.tokens else min(self.answer, QUICK)

    @property
    def looks(self) -> int:
        """At the metrics, for one question that is left."""
        return 2 + round(self.leaving / WATCH)


class Asker:
    """Asks. What was asked once is not asked again."""

    def __init__(self, patience: Patience) -> None:
        self._patience = patience
        self._tls: ssl.SSLContext | None = None
        self._clients: dict[str, httpx2.AsyncClient] = {}
        self._gates: dict[str, asyncio.Semaphore] = {}
        self._known: dict[tuple[str, str], dict[Question, Heard]] = {}

    async def close(self) -> None:
        """Gives up all connections."""
        for client in self._clients.values():
            await client.aclose()

    async def ask(self, site: Site, *questions: Question) -> Answers:
        """The answers to these questions, some of which may be known."""
        known = self._known.setdefault((site.engine, site.place), {})
        new = [question for question in dict.fromkeys(questions) if question not in known]
        heard = await asyncio.gather(*(self._gated(site, question) for question in new))
        known.update(zip(new, heard, strict=True))
        return known

    async def _gated(self, site: Site, question: Question) -> Heard:
        async with self._gates.setdefault(site.place, asyncio.Semaphore(AT_ONCE)):
            match question.how:
                case How.WHOLE:
                    return await self._whole(site, question)
                case How.IDLE:
                    return await self._idle(site, question)
                case How.LEAVE:
                    return await self._leave(site, question)

    def _client(self, site: Site) -> httpx2.AsyncClient:
        client = self._clients.get(site.engine)
        if client is None:
            self._tls = self._tls or ssl.create_default_context()
            limits = httpx2.Limits(max_keepalive_connections=0)
            timeout = httpx2.Timeout(self._patience.answer, connect=site.settings.timeouts.connect)
            client = httpx2.AsyncClient(verify=self._tls, timeout=timeout, trust_env=False, limits=limits)
            self._clients[site.engine] = client
        return client

    async def _whole(self, site: Site, question: Question) -> Heard:
        heard = Heard()
        try:
            async with self._answer(site, question) as (response, head):
                heard = head
                async for part in response.aiter_bytes():
                    heard = replace(heard, body=heard.body + part)
                    if len(heard.body) > LARGEST:
                        return replace(heard, failure="an answer without end")
        except _ERRORS as error:
            return _failed(heard, error, self._patience.of(question))
        return heard

    @contextlib.asynccontextmanager
    async def _answer(self, site: Site, question: Question) -> AsyncIterator[tuple[httpx2.Response, Heard]]:
        """The head of an answer, within the patience for the whole of it."""
        client = self._client(site)
        method = "GET" if question.body is None else "POST"
        headers = headers_for(site, question)
        url, named = at_address(site.url, site.address)
        began = time.monotonic()
        async with (
            asyncio.timeout(self._patience.of(question)),
            client.stream(
                method, url + question.path, headers=headers | named, content=question.body, extensions=_sni(named)
            ) as response,
        ):
            plain = {name.lower(): value for name, value in response.headers.items()}
            heard = Heard(response.status_code, plain, expires=_expiry(response))
            yield response, replace(heard, at=time.time(), seconds=time.monotonic() - began)

    async def _leave(self, site: Site, question: Question) -> Heard:
        before = await self._running(site, question)
        heard = Heard()
        during: float | None = None
        try:
            async with self._answer(site, question) as (response, head):
                heard = head
                async for part in response.aiter_bytes():
                    heard = replace(heard, body=heard.body + part)
                    if heard.body.count(b"data:") > 1:  # the first event may come before any work is done
                        break
                during = await self._running(site, question)
        except _ERRORS as error:
            return _failed(heard, error, self._patience.answer)
        left = time.monotonic()
        after = await self._running(site, question)
        while after and time.monotonic() - left < self._patience.leaving:
            await asyncio.sleep(WATCH)
            after = await self._running(site, question)
        return replace(heard, left=Left(before, during, after, time.monotonic() - left))

    async def _running(self, site: Site, question: Question) -> float | None:
        heard = await self._whole(site, Question(question.metrics))
        load = read_load(site.profile.kind, heard.body) if heard.ok else None
        if load is None or load.running is None:
            return None
        return load.running + (load.waiting or 0.0)

    async def _idle(self, site: Site, question: Question) -> Heard:
        window = self._patience.idle
        if window is None:
            window = max(0.0, site.keep_alive - 1.0)
        self._tls = self._tls or ssl.create_default_context()
        tls = self._tls if site.url.startswith("https:") else None
        try:
            async with asyncio.timeout(self._patience.answer + window):
                seconds = await idle_seconds(
                    site.url, site.address, question.path, headers_for(site, question), tls, window
                )
        except (OSError, ValueError) as error:
            return Heard(failure=f"no answer on a connection that is kept ({type(error).__name__})")
        return Heard(200, idle=seconds)


_ERRORS: Final = (TimeoutError, httpx2.HTTPError, httpx2.InvalidURL, OSError, UnicodeError)


def at_address(url: str, address: str) -> tuple[str, dict[str, str]]:
    """A URL with an address in place of its name, and the header that tells the name; as it is without an address."""
    if not address:
        return url, {}
    parts = urlsplit(url)
    host = f"[{address}]" if ":" in address else address
    port = "" if parts.port is None else f":{parts.port}"
    return f"{parts.scheme}://{host}{port}{parts.path}", {"host": parts.netloc}


def _sni(named: Mapping[str, str]) -> dict[str, str]:
    """The name that a certificate is asked for."""
    return {"sni_hostname": named["host"].partition(":")[0]} if named else {}


def headers_for(site: Site, question: Question) -> dict[str, str]:
    """As the gateway sends them."""
    headers = {"accept": "*/*", "accept-encoding": "identity"}
    if question.with_key:
        headers |= site.settings.credentials
    if question.body is not None:
        headers["content-type"] = "application/json"
    return headers


def _expiry(response: httpx2.Response) -> float | None:
    stream = response.extensions.get("network_stream")
    secured = stream.get_extra_info("ssl_object") if stream is not None else None
    certificate = secured.getpeercert() if secured is not None else None
    until = certificate.get("notAfter") if certificate else None
    return float(ssl.cert_time_to_seconds(until)) if isinstance(until, str) else None


def _failed(heard: Heard, error: BaseException, patience: float) -> Heard:
    if isinstance(error, httpx2.ConnectTimeout):
        return replace(heard, failure="no connection in time")
    if isinstance(error, httpx2.ConnectError):
        found = no_connection(error)
        return replace(heard, failure=found.reason, refused=found.refused, trust=found.untrusted)
    if isinstance(error, TimeoutError | httpx2.TimeoutException):
        return replace(heard, failure=f"no answer within {patience:g} s")
    return replace(heard, failure=f"no HTTP answer ({type(error).__name__})")
