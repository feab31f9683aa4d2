"""The shared accounts: one task that keeps Redis and the requests of this process in touch.

Requests wait `PATIENCE` for the batch under way and twice that for their own, at most. After two failures in a row, or
one that leaves no doubt, Redis counts as away and nobody waits any more: a trial of this task's own finds out when it
is back.
"""

import asyncio
import os
import time
from collections.abc import Callable
from typing import Final

import structlog

from gateway.background.shared.batch import Asked, Batch, Deltas, Reply
from gateway.background.shared.book import read_usage
from gateway.background.shared.calling import base_of, call_script, no_answer
from gateway.background.shared.client import Client, RedisFault
from gateway.background.shared.reasons import on_first_contact
from gateway.background.shared.succession import Succession, place
from gateway.balance.limits.account import Account
from gateway.balance.limits.availability import Availability
from gateway.balance.limits.windows import today
from gateway.errors import UsageUnavailable
from gateway.metrics import Meters
from gateway.proxy.limiter import Group, Heard, Limiter
from gateway.settings.keys import State
from gateway.settings.redis_url import read_redis_url
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
        self._clients = Succession()
        self._heard = False
        self._trial: asyncio.Timeout | None = None

    def use(self, state: State, limiter: Limiter | None) -> None:
        """Serves another configuration from now on."""
        self.limiter = limiter
        if limiter is not None:
            limiter.shared = None if state.redis is None else self
        if state != self.state:
            elsewhere = place(state) != place(self.state)
            self.state = state
            if elsewhere:
                self._move()

    def _move(self) -> None:
        """Another Redis, or none, from now on: at once, if it has been heard from."""
        self.availability = Availability()
        self._heard = False
        self._clients.leave(self._client)
        self._client, reason = self._clients.take(self.state) or (None, "")
        if self._client is not None:
            self._beaten = 0.0  # what runs is told to it first of all
            self.availability.answered()
            self._changed(up=True)
        elif reason:
            self._fell(reason, surely=True)
        if not self.availability.up:
            self._give_up()
        if self._trial is not None:
            self._trial.reschedule(asyncio.get_running_loop().time())
        self._wake.set()

    async def ahead(self, state: State) -> None:
        """Gets to know the Redis of a configuration that `use` is told of next: requests are not to wait for that."""
        if state.redis is not None and place(state) != place(self.state):
            await self._clients.meet(state)

    async def leave(self) -> None:
        """Ends the connections to what is not in use any more."""
        await self._clients.end()

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
        return await read_usage(self._client, base_of(self.state), since, until)

    # ---- the task

    async def run(self) -> None:
        """Serves until it is cancelled."""
        try:
            while True:
                if self.state.redis is None:
                    await self._wake.wait()
                    self._wake.clear()
                elif self.availability.up and self._client is not None:
                    await self._serve()
                else:
                    await self._try()
        finally:
            if self.availability.up and self._client is not None:  # what runs here is not freed by anybody else
                await self._exchange(self._client, PATIENCE, beat=True)
            self._give_up()
            await self._close()
            await self.leave()

    async def _try(self) -> None:
        """Looks, and rests if there was nobody; another configuration cuts it short."""
        try:
            async with asyncio.timeout(None) as self._trial:
                await self.look()
                if not self.availability.up:
                    await asyncio.sleep(TRIAL_EVERY)
        except TimeoutError:
            if self._trial is None or not self._trial.expired():
                raise
        finally:
            self._trial = None

    async def look(self) -> None:
        """Finds out whether Redis is there, with a connection of its own."""
        await self._close()
        if self.state.redis is None:
            return
        try:
            self._client = client = await self._clients.client(self.state)
        except RedisFault as error:
            self._failed(error, TRIAL_PATIENCE)
        else:
            await self._exchange(client, TRIAL_PATIENCE, beat=True)

    async def _serve(self) -> None:
        """Waits for something to tell, or for the next beat, and tells it."""
        loop = asyncio.get_running_loop()
        due = self._beaten + BEAT
        if loop.time() < due:
            timer = loop.call_at(due, self._wake.set)
            await self._wake.wait()
            timer.cancel()
        self._wake.clear()
        if self.availability.up and self._client is not None:  # maybe another one than before the wait
            await self._exchange(self._client, PATIENCE, beat=loop.time() >= due)

    async def _close(self) -> None:
        client, self._client = self._client, None
        self._clients.leave(client)
        await self._clients.close()

    async def _exchange(self, client: Client, patience: float, *, beat: bool) -> None:
        """One batch: everything that has gathered.

        One that was not answered in time is sent once more before Redis counts as away: it does it once.
        """
        availability = self.availability
        batch, argument = self._gather(beat=beat)
        reply = await self._told_once(client, batch, argument, patience)
        if reply is None:
            return
        loop = asyncio.get_running_loop()
        if self._unsure is batch.deltas:
            self._unsure = None
        if availability is self.availability:
            if beat:
                self._beaten = loop.time()
            if availability.answered():
                self._changed(up=True)
        for one, answer in zip(batch.asks, batch.answers(reply.answers, time.time()), strict=True):
            if answer.refusal is None:
                for account in one.group.accounts:
                    account.running += 1
            loop.call_soon(one.heard, answer)  # a fault there is no fault here
        if beat:
            self._told(reply.loads)

    async def _told_once(self, client: Client, batch: Batch, argument: bytes, patience: float) -> Reply | None:
        """What Redis says to a batch; None: nothing in time, or it is not the one in use any more."""
        availability, base = self.availability, base_of(self.state)
        while True:
            try:
                async with asyncio.timeout(patience):
                    return await call_script(client, base, argument)
            except asyncio.CancelledError:
                self._take_back(batch)
                raise
            except (RedisFault, TimeoutError) as error:
                moved = availability is not self.availability  # to another Redis: no word of this one counts
                if moved or self._failed(error, patience):
                    self._take_back(batch)
                    return None

    def _take_back(self, batch: Batch) -> None:
        """What was not told, for whoever is asked next; nobody is, while Redis is away."""
        self._dirty = batch.renewed | self._dirty
        self._asks[:0] = batch.asks
        if not self.availability.up:
            self._give_up()

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

    def _failed(self, error: RedisFault | TimeoutError, patience: float) -> bool:
        """Whether Redis counts as away now."""
        timed_out = isinstance(error, TimeoutError)
        self._meters.happened("state_failures", "timeout" if timed_out else "error")
        self._fell(no_answer(patience) if timed_out else str(error), surely=not timed_out)
        return not self.availability.up

    def _fell(self, reason: str, *, surely: bool) -> None:
        if self.state.redis is not None:
            address = read_redis_url(self.state.redis.get_secret_value())
            reason = f"{address.shown}: {reason if self._heard else on_first_contact(reason, address)}"
        if self.availability.failed(reason, surely=surely):
            self._changed(up=False)

    def _give_up(self) -> None:
        """Nobody waits any more."""
        asks, self._asks = self._asks, []
        loop = asyncio.get_running_loop()
        for one in asks:
            loop.call_soon(one.heard, None)

    def _changed(self, *, up: bool) -> None:
        self._meters.happened("state_changes", "back" if up else "away")
        if self.limiter is not None:
            self.limiter.forget()
        self._heard = self._heard or up
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
