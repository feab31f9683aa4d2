"""What an engine does with each request member, said as data: a table row is one of a closed set of policies."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TypeAlias

import msgspec

Members: TypeAlias = dict[str, msgspec.Raw]
"""One JSON object taken apart; a member nobody touches goes on byte for byte."""

Edit: TypeAlias = Mapping[str, bytes | None]
"""New raw JSON per member name; None takes the member away."""

Translator: TypeAlias = Callable[[str, Members], Edit | None]
"""Gets the member's name and the client's members, which it must not change. None: nothing to do. May refuse."""

Splitter: TypeAlias = Callable[[str, Members], tuple[Edit, ...] | None]
"""As a translator, but gives one edit for each request that the call becomes. None: one request will do."""


NULL = msgspec.Raw(b"null")


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


@dataclass(frozen=True, slots=True)
class Emulate:
    """Served by several requests whose answers the gateway merges; `reason` says how.

    A request that is split by two members becomes one for each pair. `copies`: the parts ask for the same prompt again,
    so they belong together and their prompt counts once.
    """

    by: Splitter
    reason: str
    copies: bool = False


Policy: TypeAlias = Pass | Rename | Drop | Reject | Translate | Emulate


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
class Split:
    """A call that has to become several: what to change in the client's members for each, in the order of the choices.

    Each part is then a call of its own, to be prepared for the engine that gets it. `copies` parts in a row share one
    prompt. `names` are the members that caused it, for the response headers. A part has `size` items of a list that was
    cut into pieces, the last one perhaps fewer.
    """

    edits: tuple[Edit, ...]
    copies: int
    names: tuple[str, ...]
    size: int = 1


@dataclass(frozen=True, slots=True)
class Prepared:
    """What to send. `members` is None when the client's own bytes go on; the names are for the response headers.

    With a `split`, nothing is sent as it is.
    """

    members: Members | None = None
    dropped: tuple[str, ...] = ()
    translated: tuple[str, ...] = ()
    split: Split | None = None


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
    looks: Mapping[str, Translator] = field(init=False)
    """Names of which a look at the value may show that nothing has to change, with the function that looks."""

    def __post_init__(self) -> None:
        """Work out which names let a request through at once."""
        if self.defaults or self.remove_nulls:
            object.__setattr__(self, "quiet", frozenset())
            object.__setattr__(self, "looks", {})
            return
        passed = (name for name, policy in self.policies.items() if isinstance(policy, Pass))
        looks = {name: policy.by for name, policy in self.policies.items() if isinstance(policy, Translate)}
        object.__setattr__(self, "quiet", frozenset(("model", *passed)))
        object.__setattr__(self, "looks", looks)
