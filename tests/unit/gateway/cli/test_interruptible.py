"""Ctrl-C while a command waits."""

import asyncio
import os
import signal

import pytest

from gateway.cli.interruptible import run


async def interrupted_while_it_waits() -> None:
    os.kill(os.getpid(), signal.SIGINT)
    await asyncio.Event().wait()


async def of_its_own_opinion() -> None:
    try:
        await interrupted_while_it_waits()
    except asyncio.CancelledError:
        raise ValueError("nobody can be reached") from None


async def undeterred() -> str:
    try:
        await interrupted_while_it_waits()
    except asyncio.CancelledError:
        return "done all the same"
    return "not interrupted"


async def mistaken() -> None:
    raise ValueError("wrong")


@pytest.mark.parametrize("command", [interrupted_while_it_waits, of_its_own_opinion])
def test_ctrl_c_is_told_as_such_whatever_the_command_makes_of_it(command: object) -> None:
    assert callable(command)
    with pytest.raises(KeyboardInterrupt):
        run(command())
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_a_command_that_ends_well_after_ctrl_c_has_ended_well() -> None:
    assert run(undeterred()) == "done all the same"


def test_errors_of_the_command_are_its_own() -> None:
    with pytest.raises(ValueError, match="wrong"):
        run(mistaken())
