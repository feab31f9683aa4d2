"""Runs a command's coroutine so that Ctrl-C ends it as Ctrl-C, whatever it makes of being stopped."""

import asyncio
import signal
import threading
from collections.abc import Coroutine
from typing import Any, TypeVar

Result = TypeVar("Result")


def run(command: Coroutine[Any, Any, Result]) -> Result:
    """As `asyncio.run`.

    Raises:
        KeyboardInterrupt: Ctrl-C was pressed. The coroutine was cancelled, and may have ended with an error of its own:
            an HTTP client that is cancelled while it connects may say that nobody can be reached.
    """
    interrupted = False

    async def watched() -> Result:
        task = asyncio.current_task()

        def stop() -> None:
            nonlocal interrupted
            interrupted = True
            if task is not None:
                task.cancel()

        if threading.current_thread() is threading.main_thread():  # only there are signals heard
            asyncio.get_running_loop().add_signal_handler(signal.SIGINT, stop)
        return await command

    try:
        return asyncio.run(watched())
    except BaseException:
        if interrupted:
            raise KeyboardInterrupt from None
        raise
