"""Takes request bodies apart and puts them together for the tests of this folder."""

import msgspec

from engines.profile import Members, Prepared


def members(body: dict[str, object]) -> Members:
    """Take a request apart as the gateway does."""
    return raw_members(msgspec.json.encode(body))


def raw_members(body: bytes) -> Members:
    """Take a request's bytes apart as the gateway does."""
    return msgspec.json.decode(body, type=Members)


def sent(before: Members, prepared: Prepared) -> dict[str, object]:
    """Give the request that the engine would get."""
    return dict(msgspec.json.decode(msgspec.json.encode(before if prepared.members is None else prepared.members)))


def as_bytes(some: Members) -> dict[str, bytes]:
    """Make members comparable."""
    return {name: bytes(raw) for name, raw in some.items()}
