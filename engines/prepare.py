"""Applies a table to one request.

It looks only at member names first, so a request that needs nothing costs the same whatever its size; then at the
values of the few members that may have to change; and only then takes a copy.
"""

from typing import assert_never

import msgspec

from engines.policy import (
    NULL,
    UNCHANGED,
    Default,
    Drop,
    Edit,
    Emulate,
    Members,
    ParameterRefused,
    Pass,
    Policy,
    Prepared,
    Reject,
    Rename,
    Split,
    Table,
    Translate,
    Unknown,
)

LONGEST_NEUTRAL = 64
"""No neutral value is longer; longer ones need not be looked at."""

MOST_PARTS = 2048
"""Requests that one call may become: as many inputs as OpenAI takes in a list."""


def prepare(table: Table, members: Members, unknown: Unknown) -> Prepared:
    """Give the members this engine wants. Never touches `model`.

    Raises:
        ParameterRefused: a member cannot be served as asked.
    """
    quiet = table.quiet
    if quiet.issuperset(members):
        return UNCHANGED
    looks = table.looks
    for name in members:
        if name not in quiet and ((look := looks.get(name)) is None or look(name, members) is not None):
            return _Draft(table, members).finish(unknown)
    return UNCHANGED


class _Draft:
    """One request on its way through a table: the client's members, and what has become of them."""

    __slots__ = ("dropped", "members", "out", "splits", "table", "translated")

    def __init__(self, table: Table, members: Members) -> None:
        self.table = table
        self.members = members
        self.out: Members | None = None
        self.dropped: list[str] = []
        self.translated: list[str] = []
        self.splits: list[tuple[str, tuple[Edit, ...], bool]] = []

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
        if self.out is None and not self.splits:
            return UNCHANGED
        return Prepared(self.out, tuple(self.dropped), tuple(self.translated), self._split())

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
            case Emulate():
                self._emulate(name, policy)
            case _:
                assert_never(policy)

    def _emulate(self, name: str, policy: Emulate) -> None:
        edits = policy.by(name, self.members)
        if edits is None:
            return
        if len(edits) == 1:
            self._edit(name, edits[0])
        else:
            self.splits.append((name, edits, policy.copies))

    def _split(self) -> Split | None:
        """One part for each combination, copies of the same prompt in a row."""
        if not self.splits:
            return None
        self.splits.sort(key=lambda split: split[2])
        parts: tuple[Edit, ...] = ({},)
        copies = 1
        for name, edits, copied in self.splits:
            if len(parts) * len(edits) > MOST_PARTS:
                raise ParameterRefused(name, f"'{name}' asks for more than {MOST_PARTS} answers.", "invalid_value")
            parts = tuple({**part, **edit} for part in parts for edit in edits)
            copies = len(edits) if copied else copies
        return Split(parts, copies, tuple(name for name, _, _ in self.splits))

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


def _is_one_of(raw: msgspec.Raw, values: tuple[bytes, ...]) -> bool:
    """Compare small JSON values by their bytes, blanks aside; nobody writes `1.0` as `1.00`."""
    if not values:
        return False
    data = bytes(raw)
    return len(data) <= LONGEST_NEUTRAL and b"".join(data.split()) in values
