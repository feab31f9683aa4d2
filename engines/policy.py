"""What an engine does with each request member, said as data.

A table row is one of a closed set of policies. `prepare` applies a table to one request; it looks only at member names
first, so a request that needs nothing costs the same whatever its size.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TypeAlias, assert_never

import msgspec

Members: TypeAlias = dict[str, msgspec.Raw]
"""One JSON object taken apart; a member nobody touches goes on byte for byte."""

Edit: TypeAlias = Mapping[str, bytes | None]
"""New raw JSON per member name; None takes the member away."""

Translator: TypeAlias = Callable[[str, Members], Edit | None]
"""Gets the member's name and the client's members, which it must not change. None: nothing to do. May refuse."""


class ParameterRefused(Exception):
    """A member that this engine cannot serve as asked: 400 for the client, naming the parameter."""

    def __init__(self, param: str, message: str, code: str = "unsupported_parameter") -> None:
        super().__init__(message)
        self.param = param
        self.message = message
        self.code = code


@dataclass(frozen=True, slots=True)
class Pass:
    """The engine knows it and means the same as OpenAI. `note` says what is worth knowing all the same."""

    note: str = ""


@dataclass(frozen=True, slots=True)
class Rename:
    """The engine has another name for it. If the client sent both, this one wins and the other is dropped."""

    to: str
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Drop:
    """Taken away and told, because leaving it out does not change what the client gets.

    Values in `silent` mean the same as leaving it out: they are taken away without telling.
    """

    reason: str
    silent: tuple[bytes, ...] = ()


@dataclass(frozen=True, slots=True)
class Reject:
    """Refused, because leaving it out would give the client something other than it asked for.

    Values in `neutral` (raw JSON without blanks) ask for what the engine does anyway: they are taken away instead, or
    go on as they are if `keep_neutral` (the engine knows the name, but only that value).
    """

    reason: str
    neutral: tuple[bytes, ...] = ()
    keep_neutral: bool = False


@dataclass(frozen=True, slots=True)
class Translate:
    """Rewritten by a function that looks at the value; `reason` says into what."""

    by: Translator
    reason: str


Policy: TypeAlias = Pass | Rename | Drop | Reject | Translate


class Unknown(StrEnum):
    """What becomes of members that no table names (a model's `unknown_parameters`)."""

    DROP = "drop"
    REJECT = "reject"
    PASS = "pass"


@dataclass(frozen=True, slots=True)
class Default:
    """Sent when the client is silent, because the engine's own default is not OpenAI's.

    A member counts as said when one of `unless` (or the name itself) is there and not null.
    """

    name: str
    value: bytes
    reason: str
    unless: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Prepared:
    """What to send. `members` is None when the client's own bytes go on; the names are for the response headers."""

    members: Members | None = None
    dropped: tuple[str, ...] = ()
    translated: tuple[str, ...] = ()


UNCHANGED = Prepared()
"""The one answer for every request that needs nothing."""


@dataclass(frozen=True, slots=True)
class Table:
    """The policies of one engine kind for one operation."""

    engine: str
    policies: Mapping[str, Policy]
    defaults: tuple[Default, ...] = ()
    remove_nulls: bool = False
    """OpenAI takes null for absent; an engine that does not wants the member left out."""
    quiet: frozenset[str] = field(init=False)
    """Names that need no look at their value."""

    def __post_init__(self) -> None:
        """Work out which names let a request through at once."""
        needs_look = self.defaults or self.remove_nulls
        passed = () if needs_look else ("model", *(n for n, p in self.policies.items() if isinstance(p, Pass)))
        object.__setattr__(self, "quiet", frozenset(passed))


def prepare(table: Table, members: Members, unknown: Unknown) -> Prepared:
    """Give the members this engine wants. Never touches `model`.

    Raises:
        ParameterRefused: a member cannot be served as asked.
    """
    if table.quiet.issuperset(members):
        return UNCHANGED
    return _Draft(table, members).finish(unknown)


class _Draft:
    """One request on its way through a table: the client's members, and what has become of them."""

    __slots__ = ("dropped", "members", "out", "table", "translated")

    def __init__(self, table: Table, members: Members) -> None:
        self.table = table
        self.members = members
        self.out: Members | None = None
        self.dropped: list[str] = []
        self.translated: list[str] = []

    def finish(self, unknown: Unknown) -> Prepared:
        quiet = self.table.quiet
        policies = self.table.policies
        for name, raw in self.members.items():
            if name in quiet or name == "model":
                continue
            policy = policies.get(name)
            if policy is None:
                self._unknown(name, unknown)
            elif self.table.remove_nulls and raw == NULL:
                self._remove(name)
            else:
                self._apply(name, raw, policy)
        for default in self.table.defaults:
            self._default(default)
        if self.out is None:
            return UNCHANGED
        return Prepared(self.out, tuple(self.dropped), tuple(self.translated))

    def _apply(self, name: str, raw: msgspec.Raw, policy: Policy) -> None:
        match policy:
            case Pass():
                return
            case Rename():
                self._rename(name, policy)
            case Drop():
                if not _is_one_of(raw, policy.silent):
                    self.dropped.append(name)
                self._remove(name)
            case Reject():
                self._reject(name, raw, policy)
            case Translate():
                edit = policy.by(name, self.members)
                if edit is not None:
                    self._edit(name, edit)
            case _:
                assert_never(policy)

    def _unknown(self, name: str, unknown: Unknown) -> None:
        match unknown:
            case Unknown.PASS:
                return
            case Unknown.DROP:
                self.dropped.append(name)
                self._remove(name)
            case Unknown.REJECT:
                raise ParameterRefused(name, f"Unknown parameter: '{name}'.", "unknown_parameter")
            case _:
                assert_never(unknown)

    def _reject(self, name: str, raw: msgspec.Raw, policy: Reject) -> None:
        if raw == NULL or _is_one_of(raw, policy.neutral):
            if not policy.keep_neutral:
                self._remove(name)
            return
        raise ParameterRefused(name, f"'{name}' is not supported by {self.table.engine}: {policy.reason}.")

    def _rename(self, name: str, policy: Rename) -> None:
        value = self.members[name]
        self._remove(name)
        if value == NULL:
            return
        there = self.members.get(policy.to)
        if there is not None and there != NULL:
            self.dropped.append(policy.to)
        self._writable()[policy.to] = value
        self.translated.append(name)

    def _edit(self, name: str, edit: Edit) -> None:
        out = self._writable()
        for key, value in edit.items():
            if value is None:
                out.pop(key, None)
            else:
                out[key] = msgspec.Raw(value)
        if edit.get(name) is None and len(edit) == 1:
            self.dropped.append(name)
        else:
            self.translated.append(name)

    def _default(self, default: Default) -> None:
        for name in (default.name, *default.unless):
            raw = self.members.get(name)
            if raw is not None and raw != NULL:
                return
        self._writable()[default.name] = msgspec.Raw(default.value)

    def _remove(self, name: str) -> None:
        self._writable().pop(name, None)

    def _writable(self) -> Members:
        if self.out is None:
            self.out = dict(self.members)
        return self.out


NULL = msgspec.Raw(b"null")


def _is_one_of(raw: msgspec.Raw, values: tuple[bytes, ...]) -> bool:
    """Compare small JSON values by their bytes, blanks aside; nobody writes `1.0` as `1.00`."""
    if not values:
        return False
    data = bytes(raw)
    return len(data) <= LONGEST_NEUTRAL and b"".join(data.split()) in values


LONGEST_NEUTRAL = 64
"""No neutral value is longer; longer ones need not be looked at."""
