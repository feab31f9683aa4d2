"""The shared accounts: one task that keeps Redis and the requests of this process in touch.

Requests wait `PATIENCE` for the batch under way and twice that for their own, at most. After two failures in a row, or
one that leaves no doubt, Redis counts as away and nobody waits any more: a trial of this task's own finds out when it
is back.
"""

import asyncio
import hashlib
import os
import time
from collections.abc import Callable
from importlib.resources import files
from typing import Any, Final

import structlog

from gateway.background.shared.batch import Asked, Batch, Deltas, decode_reply
from gateway.background.shared.book import read_usage
from gateway.background.shared.client import Client, Connect, RedisFault, UnknownScript, load_clients
from gateway.balance.limits.account import Account
from gateway.balance.limits.availability import Availability
from gateway.balance.limits.windows import today
from gateway.errors import UsageUnavailable
from gateway.metrics import Meters
from gateway.proxy.limiter import Group, Heard, Limiter
from gateway.settings.keys import State
from gateway.usage import UsageBook, UsageRow

PATIENCE: Final = 0.05
"""Seconds that a batch may take."""
TRIAL_PATIENCE: Final = 1.5
"""Seconds that a trial may take, its connection included."""
TRIAL_EVERY: Final = 0.5
BEAT: Final = 1.0
"""Seconds between two batches that also tell the load, renew leases and bring the usage."""
LEASE: Final = 10.0
"""Seconds after which what a silent process runs is not counted any more."""
GATHER: Final = 0.01
"""Seconds that settlements wait for company, where hardly anybody wants the place that they free."""

SCRIPT: Final = files(__package__).joinpath("exchange.lua").read_text()
SHA: Final = hashlib.sha1(SCRIPT.encode(), usedforsecurity=False).hexdigest()

_log = structlog.get_logger()


class SharedAccounts:
    """The `limiter.Shared` of a process. ``load`` gives what it knows of endpoints, ``heard`` gets what others know."""

    def __init__(self, meters: Meters, load: Callable[[], str], heard: Callable[[list[str]], None]) -> None:
        self.state = State()
        self.availability = Availability()
        self.limiter: Limiter | None = None
        self._meters = meters
        self._load = load
        self._told = heard
        self._me = os.urandom(8).hex()
        self._connect: Connect | None = None
        self._client: Client | None = None
        self._asks: list[Asked] = []
        self._known: dict[str, Account] = {}
        self._settled: dict[tuple[str, int, int], int] = {}
        self._usage = UsageBook()
        self._unsure: Deltas | None = None
        self._number = 0
        self._dirty: dict[str, Account] = {}
        self._wake = asyncio.Event()
        self._gathering: asyncio.TimerHandle | None = None
        self._beaten = 0.0

    def use(self, state: State, limiter: Limiter | None) -> None:
        """Serves another configuration from now on."""
        self.limiter = limiter
        if limiter is not None:
            limiter.shared = None if state.redis is None else self
        if state != self.state:
            elsewhere = (state.redis, state.password, state.prefix) != (
                self.state.redis,
                self.state.password,
                self.state.prefix,
            )
            self.state = state
            if elsewhere:
                self.availability = Availability()
                self._give_up()
                self._wake.set()

    # ---- the limiter's calls

    @property
    def closed(self) -> bool:
        """Whether nothing that is limited may pass while Redis is away (`limiter.Shared`)."""
        return self.state.when_away == "closed"

    def ask(self, group: Group, tokens: int, heard: Heard) -> bool:
        """Asks whether a request may pass (`limiter.Shared`)."""
        if not self.availability.up:
            return False
        self._asks.append(Asked(group, tokens, heard))
        self._wake.set()
        return True

    def settle(self, group: Group, tokens: int, day: int, month: int) -> None:
        """A request has ended (`limiter.Shared`)."""
        at_once = False
        for account in group.accounts:
            name = account.name
            self._known[name] = account
            if tokens:
                at = (name, day, month)
                self._settled[at] = self._settled.get(at, 0) + tokens
            parallel = account.terms.parallel
            if parallel is not None:
                self._dirty[name] = account
                at_once = at_once or 2 * account.running >= parallel  # somebody may want the place
        if at_once:
            self._wake.set()
        elif self._gathering is None:
            self._gathering = asyncio.get_running_loop().call_later(GATHER, self._gathered)

    def used(self, group: Group, prompt: int, answer: int, estimated: int) -> None:
        """What a request has used, for the common book (`limiter.Shared`)."""
        self._usage.count(group.row.day, group.row.key, group.row.model, prompt, answer, estimated)

    def _gathered(self) -> None:
        self._gathering = None
        self._wake.set()

    async def usage(self, since: str, until: str) -> list[UsageRow] | None:
        """The common book of these days, both included; None where there is none.

        Raises:
            UsageUnavailable: Redis does not answer.
        """
        if self.state.redis is None:
            return None
        if self._client is None or not self.availability.up:
            raise UsageUnavailable("Redis, which keeps the usage, is away.", retry_after=1.0, should_retry=True)
        return await read_usage(self._client, self.base, since, until)

    # ---- the task

    async def run(self) -> None:
        """Serves until it is cancelled."""
        try:
            while True:
                if self.state.redis is None:
                    await self._wake.wait()
                    self._wake.clear()
                elif self.availability.up and self._client is not None:
                    await self._serve(self._client)
                else:
                    await self.look()
                    if not self.availability.up:
                        await asyncio.sleep(TRIAL_EVERY)
        finally:
            if self.availability.up and self._client is not None:  # what runs here is not freed by anybody else
                await self._exchange(self._client, PATIENCE, beat=True)
            self._give_up()
            await self._close()

    async def look(self) -> None:
        """Finds out whether Redis is there, with a connection of its own."""
        await self._close()
        if self._connect is None and self.state.redis is not None:
            self._connect = await asyncio.to_thread(load_clients)
        if self._connect is not None and self.state.redis is not None:
            self._client = client = self._connect(self.state)
            await self._exchange(client, TRIAL_PATIENCE, beat=True)

    async def _serve(self, client: Client) -> None:
        """Waits for something to tell, or for the next beat, and tells it."""
        loop = asyncio.get_running_loop()
        due = self._beaten + BEAT
        if loop.time() < due:
            timer = loop.call_at(due, self._wake.set)
            await self._wake.wait()
            timer.cancel()
        self._wake.clear()
        if self.availability.up:
            await self._exchange(client, PATIENCE, beat=loop.time() >= due)

    async def _close(self) -> None:
        client, self._client = self._client, None
        if client is None:
            return
        try:
            async with asyncio.timeout(TRIAL_PATIENCE):
                await client.aclose()
        except (RedisFault, OSError, TimeoutError):
            pass

    async def _exchange(self, client: Client, patience: float, *, beat: bool) -> None:
        """One batch: everything that has gathered.

        One that was not answered in time is sent once more before Redis counts as away: it does it once.
        """
        state = self.state
        batch, argument = self._gather(beat=beat)
        found = None
        while found is None:
            try:
                async with asyncio.timeout(patience):
                    found = await self._call(client, argument)
            except (RedisFault, OSError, TimeoutError) as error:
                if self._failed(error):
                    self._dirty = batch.renewed | self._dirty
                    self._away(batch.asks)
                    self._give_up()
                    return
        loop = asyncio.get_running_loop()
        if beat:
            self._beaten = loop.time()
        if self._unsure is batch.deltas:
            self._unsure = None
        reply = decode_reply(found)
        if state is self.state and self.availability.answered():
            self._changed(up=True)
        for one, answer in zip(batch.asks, batch.answers(reply.answers, time.time()), strict=True):
            if answer.refusal is None:
                for account in one.group.accounts:
                    account.running += 1
            loop.call_soon(one.heard, answer)  # a fault there is no fault here
        if beat:
            self._told(reply.loads)

    async def _call(self, client: Client, argument: bytes) -> Any:  # noqa: ANN401 - redis' own
        try:
            return await client.exchange("EVALSHA", SHA, 1, self.base, argument)
        except UnknownScript:
            return await client.exchange("EVAL", SCRIPT, 1, self.base, argument)

    @property
    def base(self) -> str:
        """Begins all names in Redis: a hash tag."""
        return f"{{{self.state.prefix}}}"

    def _gather(self, *, beat: bool) -> tuple[Batch, bytes]:
        self._number += 1
        asks, self._asks = self._asks, []
        renewed, self._dirty = self._dirty, {}
        if beat and self.limiter is not None:
            renewed |= {a.name: a for a in self.limiter.accounts if a.running and a.terms.parallel is not None}
        if self._unsure is None and (self._settled or (beat and len(self._usage))):
            usage = self._usage.take() if beat else []
            self._unsure = Deltas(self._number, self._settled, usage)
            self._settled = {}
        load = self._load() if beat else ""
        batch = Batch(self._me, self._number, LEASE, today(time.time()), asks, self._unsure, renewed, load)
        return batch, batch.encode(self._known)

    def _failed(self, error: Exception) -> bool:
        """Whether Redis counts as away now."""
        self._meters.happened("state_failures", _kind(error))
        timed_out = isinstance(error, TimeoutError)
        if self.availability.failed(_reason(error), surely=not timed_out):
            self._changed(up=False)
        return not self.availability.up

    def _give_up(self) -> None:
        """Nobody waits any more."""
        asks, self._asks = self._asks, []
        self._away(asks)

    def _away(self, asks: list[Asked]) -> None:
        loop = asyncio.get_running_loop()
        for one in asks:
            loop.call_soon(one.heard, None)

    def _changed(self, *, up: bool) -> None:
        self._meters.happened("state_changes", "back" if up else "away")
        if self.limiter is not None:
            self.limiter.forget()
        if up:
            _log.info("redis answers: limits are shared")
        else:
            _log.warning(f"redis is away: {self._policy}", reason=self.availability.reason)

    @property
    def _policy(self) -> str:
        return "what is limited is refused" if self.closed else "each process holds the limits by itself"

    @property
    def unsettled(self) -> bool:
        """Whether there is something that the others do not know yet."""
        return bool(self._settled or self._dirty or self._unsure or len(self._usage))

    @property
    def trouble(self) -> str:
        """What is wrong, in words for operators; "" if nothing is."""
        if self.state.redis is None or self.availability.up:
            return ""
        return f"redis: away ({self.availability.reason}); {self._policy}"


def _kind(error: Exception) -> str:
    if isinstance(error, TimeoutError):
        return "timeout"
    return "refused" if isinstance(error, OSError) else "error"


def _reason(error: Exception) -> str:
    """What happened, in words that hold no address and no password."""
    if isinstance(error, TimeoutError):
        return f"no answer within {PATIENCE * 1000:.0f} ms"
    return str(error) if isinstance(error, RedisFault) else type(error).__name__
