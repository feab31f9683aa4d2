"""One call of the script, and the first one of a process that does not serve from that Redis yet."""

import asyncio
import hashlib
import os
import time
from importlib.resources import files
from typing import Final

import msgspec

from gateway.background.shared.batch import Batch, Reply, decode_reply
from gateway.background.shared.client import Client, Connect, RedisFault, UnknownScript
from gateway.balance.limits.windows import today
from gateway.settings.keys import State

SCRIPT: Final = files(__package__).joinpath("exchange.lua").read_text()
SHA: Final = hashlib.sha1(SCRIPT.encode(), usedforsecurity=False).hexdigest()


def base_of(state: State) -> str:
    """Begins all names in Redis: a hash tag."""
    return f"{{{state.prefix}}}"


async def call_script(client: Client, base: str, argument: bytes) -> Reply:
    """What the script says to a batch.

    Raises:
        RedisFault: Redis says no, cannot be talked with, or answers what the script does not.
    """
    try:
        found = await client.exchange("EVALSHA", SHA, 1, base, argument)
    except UnknownScript:
        found = await client.exchange("EVAL", SCRIPT, 1, base, argument)
    if not isinstance(found, bytes):
        raise RedisFault("what answers there is no Redis")
    try:
        return decode_reply(found)
    except msgspec.MsgspecError as error:
        raise RedisFault("it answers what the script does not say: is the prefix somebody else's?") from error


async def greet(connect: Connect, state: State, patience: float) -> tuple[Client | None, str]:
    """A client of a Redis that has done a batch of nothing, or None and why not. ``patience``: seconds it may take.

    The batch has a sender of its own, so that it cannot come between those that are under way.
    """
    batch = Batch(os.urandom(8).hex(), 1, 1.0, today(time.time()), [], None, {})
    client = None
    try:
        async with asyncio.timeout(patience):
            client = connect(state)
            await call_script(client, base_of(state), batch.encode({}))
            greeted, client = client, None
            return greeted, ""
    except TimeoutError:
        return None, no_answer(patience)
    except RedisFault as error:
        return None, str(error)
    finally:
        if client is not None:
            await close(client, patience)


async def close(client: Client, patience: float) -> None:
    """Ends a client's connections, whatever Redis makes of that. ``patience``: seconds that it may take."""
    try:
        async with asyncio.timeout(patience):
            await client.aclose()
    except (RedisFault, TimeoutError):
        pass


def no_answer(patience: float) -> str:
    """Words for a patience that has ended."""
    return f"no answer within {patience * 1000:.0f} ms"
