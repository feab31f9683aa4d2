"""Starts the members, replaces those that end, passes signals and orders on, and adds up what they count."""

import os
import selectors
import signal
import socket
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias, assert_never

import msgspec
import structlog

from gateway import logs
from gateway.api.orders import (
    CHANGES,
    Drain,
    Errors,
    Look,
    Order,
    Put,
    Refused,
    Reread,
    SetLevel,
    decoded,
    encoded,
)
from gateway.api.view import Replies
from gateway.balance.drains import StandingOrders
from gateway.metrics import Snapshot
from gateway.supervisor.configured import Configured, Standing
from gateway.supervisor.frames import Frame, Kind
from gateway.supervisor.member import Member, State, become
from gateway.supervisor.restarts import Restarts
from gateway.supervisor.rounds import Rounds, patience_with
from gateway.supervisor.signals import Signals, held_back
from gateway.supervisor.tally import Tally

GRACE: Final = 5.0
"""Seconds after the drain in which members may still end by themselves."""

Serve: TypeAlias = Callable[[list[socket.socket], socket.socket, Standing], int]
"""What a member does: serves on the listening sockets, with a line to the supervisor, under what holds already; gives
its exit code."""

NOBODY: Final = 0
"""Who calls when the supervisor itself has something to say."""

_log = structlog.get_logger()


class CannotServe(Exception):
    """No member comes up."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What to run. ``listeners`` has the sockets of each place.

    ``told`` is called once, when the first member takes requests. ``last_words`` is how many seconds members need after
    the drain that is configured.
    """

    listeners: Sequence[Sequence[socket.socket]]
    serve: Serve
    told: Callable[[], None]
    last_words: float


class Supervisor:
    """Runs a plan, under a configuration that may change, until a signal ends it."""

    def __init__(self, plan: Plan, configured: Configured) -> None:
        self._plan = plan
        self._configured = configured
        self._members: dict[int, Member] = {}
        self._due: dict[int, tuple[float, int | None]] = {}
        """By place without a member: when the next one starts, and whom it follows."""
        self._restarts = Restarts(len(plan.listeners))
        self._tally = Tally()
        self._drains = StandingOrders()
        self._rounds = Rounds()
        self._told = False
        self._stopping = False
        self._kill_at: float | None = None
        self._killed = False
        self._futile = ""

    def run(self) -> int:
        """Supervises until the end; gives the exit code: 0, or 1 if a member had to be killed.

        Raises:
            CannotServe: members end before they serve, again and again.
        """
        self._signals = Signals()
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._signals.inlet, selectors.EVENT_READ)
        self._due = dict.fromkeys(range(len(self._plan.listeners)), (0.0, None))
        while self._due or self._members:
            now = time.monotonic()
            self._start_due(now)
            self._fulfil(now)
            self._lose_patience(now)
            if (news := self._configured.look(now)) is not None:
                self._pass_round(news)
            for key, events in self._selector.select(self._pause(now)):
                if key.data is None:
                    self._obey(self._signals.arrived())
                else:
                    self._attend(key.data, events)
        self._selector.close()
        if self._futile:
            raise CannotServe(self._futile)
        return int(self._killed)

    def _pause(self, now: float) -> float | None:
        """Seconds until something has to be done unasked."""
        times = [at for at, _ in self._due.values()]
        known = (self._tally.until(), self._rounds.until(), self._configured.until(), self._kill_at)
        times += [at for at in known if at is not None]
        return max(0.0, min(times) - now) if times else None

    # ---- members come and go

    def _start_due(self, now: float) -> None:
        for place, (at, follows) in list(self._due.items()):
            if at <= now and place in self._due:
                del self._due[place]
                self._start(place, follows)

    def _start(self, place: int, follows: int | None) -> None:
        ours, theirs = socket.socketpair()
        ours.settimeout(0)
        theirs.settimeout(0)
        with held_back():
            try:
                pid = os.fork()
            except OSError as error:
                ours.close()
                theirs.close()
                self._replace(place, follows, None, f"no process can be started: {error.strerror}")
                return
            if pid == 0:
                self._leave_behind(place, ours)
        if pid == 0:
            standing = Standing(self._configured.current, self._configured.error, self._drains)
            become(lambda: self._plan.serve(list(self._plan.listeners[place]), theirs, standing))
        theirs.close()
        member = self._members[pid] = Member(place, pid, ours, follows)
        self._selector.register(ours, selectors.EVENT_READ, member)

    def _leave_behind(self, place: int, ours: socket.socket) -> None:
        """In the fork: lets go of all that belongs to the supervisor and to other members."""
        self._signals.forget()
        self._selector.close()
        ours.close()
        for member in self._members.values():
            member.line.close()
        mine = set(self._plan.listeners[place])
        for one in {one for others in self._plan.listeners for one in others} - mine:
            one.close()

    def _replace(self, place: int, pid: int | None, served: float | None, how: str) -> None:
        """Plans for the next member at the place of one that serves no more."""
        if self._stopping:
            return
        others = any(member.state is State.SERVING for member in self._members.values())
        pause = self._restarts.ended(place, served, others=others)
        if pause is None:
            self._futile = f"the gateway does not start: its processes end before they serve (the last: {how})"
            self._stop(signal.SIGTERM)
        else:
            self._due[place] = (time.monotonic() + pause, pid)

    def _leaves(self, member: Member, how: str) -> None:
        """A member takes nothing new any more: the next one need not wait for its end."""
        if member.state is State.LEAVING:
            return
        member.state = State.LEAVING
        served = None if member.ready_at is None else time.monotonic() - member.ready_at
        self._replace(member.place, member.pid, served, how)

    def _reap(self) -> None:
        for pid, member in list(self._members.items()):
            how = member.ended()
            if how is None:
                continue
            self._hear(member)
            if member.open:
                self._hang_up(member)
            write = _log.info if self._stopping or how == "exit code 0" else _log.warning
            write("serving process ended", pid=pid, how=how)
            del self._members[pid]
            self._tally.gone(pid)
            self._rounds.gone(pid)
            self._leaves(member, how)

    # ---- lines

    def _attend(self, member: Member, events: int) -> None:
        if events & selectors.EVENT_WRITE:
            member.flush()
        if events & selectors.EVENT_READ:
            self._hear(member)
        self._watch(member)

    def _hear(self, member: Member) -> None:
        was_open = member.open
        for frame in member.heard():
            self._take(member, frame)
        if was_open and not member.open:
            self._hang_up(member)

    def _hang_up(self, member: Member) -> None:
        member.open = False
        self._rounds.gone(member.pid)
        self._selector.unregister(member.line)
        member.line.close()

    def _watch(self, member: Member) -> None:
        if member.open:
            wanted = selectors.EVENT_READ | (selectors.EVENT_WRITE if member.waits else 0)
            self._selector.modify(member.line, wanted, member)

    def _take(self, member: Member, frame: Frame) -> None:
        match frame.kind:
            case Kind.READY:
                self._ready(member)
            case Kind.LEAVING:
                self._leaves(member, "it left")
            case Kind.COUNTS:
                self._tally.note(member.pid, msgspec.msgpack.decode(frame.payload, type=Snapshot), frame.number)
            case Kind.ASK:
                self._tally.note(member.pid, msgspec.msgpack.decode(frame.payload, type=Snapshot))
                self._poll(member, frame.number)
            case Kind.CALL:
                self._order(member, frame)
            case Kind.REPLY:
                self._rounds.replied(member.pid, frame.number, frame.payload)
            case Kind.POLL | Kind.TOTAL | Kind.ORDER | Kind.REPLIES:
                pass  # only said to members
            case _:
                assert_never(frame.kind)

    def _ready(self, member: Member) -> None:
        member.state = State.SERVING
        member.ready_at = time.monotonic()
        self._restarts.started()
        more = {} if member.follows is None else {"replaces": member.follows}
        _log.info("serving process started", pid=member.pid, **more)
        if not self._told:
            self._told = True
            self._plan.told()

    # ---- counts

    def _poll(self, asker: Member, number: int) -> None:
        others = [one for one in self._members.values() if one is not asker and one.open and one.ready_at is not None]
        poll = self._tally.ask(asker.pid, number, [one.pid for one in others], time.monotonic())
        for one in others:
            one.send(Frame(Kind.POLL, poll))
            self._watch(one)

    def _fulfil(self, now: float) -> None:
        for ask in self._tally.fulfilled(now):
            asker = self._members.get(ask.member)
            if asker is not None:
                asker.send(Frame(Kind.TOTAL, ask.number, msgspec.msgpack.encode(self._tally.total())))
                self._watch(asker)
        for one in self._rounds.over(now):
            caller = self._members.get(one.caller)
            if caller is not None:
                replies = Replies(list(one.replies.values()), len(one.waiting))
                caller.send(Frame(Kind.REPLIES, one.number, msgspec.msgpack.encode(replies)))
                self._watch(caller)

    # ---- orders

    def _order(self, caller: Member, frame: Frame) -> None:
        """Passes a call on to all, the caller included: so all heed all orders in one sequence."""
        call = decoded(frame.payload)
        match call:
            case Drain(order):
                self._drains.note(order)
                self._pass_round(call, caller.pid, frame.number)
            case Reread():
                self._pass_round(self._configured.read(time.monotonic()), caller.pid, frame.number)
            case SetLevel(level):
                if level is not None:
                    logs.set_level(level)  # those forked later have it from here
                self._pass_round(call, caller.pid, frame.number)
            case Look() | Put() | Refused() | Errors():
                self._pass_round(call, caller.pid, frame.number)
            case _:
                assert_never(call)

    def _pass_round(self, order: Order, caller: int = NOBODY, number: int = 0) -> None:
        """Gives an order to all, and their answers to the caller.

        Those that have not come up yet get it too, unless there is nothing to heed; those forked later know it already.
        Only the ones that have are waited for with a configuration: the others take it up with their start.
        """
        heeded = isinstance(order, CHANGES)
        meant = [one for one in self._members.values() if one.open and (heeded or one.ready_at is not None)]
        awaited = meant if isinstance(order, Drain) else [one for one in meant if one.ready_at is not None]
        now, patience = time.monotonic(), patience_with(order)
        round_number = self._rounds.begin(caller, number, [one.pid for one in awaited], now, patience)
        for one in meant:
            one.send(Frame(Kind.ORDER, round_number, encoded(order)), surely=True)
            self._watch(one)

    # ---- signals and the end

    def _obey(self, numbers: Sequence[int]) -> None:
        for number in numbers:
            if number in {signal.SIGTERM, signal.SIGINT}:
                self._stop(number)
            elif number == signal.SIGHUP:
                self._pass_round(self._configured.read(time.monotonic()))
        if signal.SIGCHLD in numbers:
            self._reap()

    def _pass_on(self, number: int) -> None:
        for member in self._members.values():
            member.signal(number)

    def _stop(self, number: int) -> None:
        """Ends the accepting at once; members drain by themselves. A further signal is for them to judge."""
        if not self._stopping:
            self._stopping = True
            _log.info("stopping", processes=len(self._members))
            drain = self._configured.current.settings.server.drain
            self._kill_at = time.monotonic() + drain + self._plan.last_words + GRACE
            self._due.clear()
            for one in {one for listeners in self._plan.listeners for one in listeners}:
                one.close()
        self._pass_on(number)

    def _lose_patience(self, now: float) -> None:
        if self._kill_at is not None and now >= self._kill_at:
            self._killed = True
            self._kill_at = None
            _log.warning("killing what does not end", pids=sorted(self._members))
            self._pass_on(signal.SIGKILL)
