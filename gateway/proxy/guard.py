"""What stands before the engines: whose key lets in, to what, and to how much.

There is no guard where everybody may do everything.
"""

from collections.abc import Callable, Iterable

from engines.profile import Operation
from gateway.errors import AuthenticationFailed
from gateway.metrics import Meters
from gateway.proxy.callers import Caller, Callers, let_in, not_allowed
from gateway.proxy.limiter import Limiter


class Guard:
    """The keys and limits in force. ``clock`` gives Unix seconds."""

    __slots__ = ("_callers", "_meters", "clock", "limiter")

    def __init__(self, callers: Callers | None, limiter: Limiter, meters: Meters, clock: Callable[[], float]) -> None:
        self._callers = callers
        self.limiter = limiter
        self._meters = meters
        self.clock = clock

    def caller(self, operation: Operation | None, headers: Iterable[tuple[bytes, bytes]]) -> Caller | None:
        """Whose key the headers show; None if that is nobody's, or if no key is asked for."""
        return None if self._callers is None else self._callers.find(operation, headers)

    def let_in(self, caller: Caller | None) -> None:
        """Raises AuthenticationFailed for a caller without a good key, where keys are asked for."""
        if self._callers is None:
            return
        try:
            let_in(caller, self.clock())
        except AuthenticationFailed:
            self._meters.happened("keys_refused", "unknown" if caller is None else "not_good")
            raise

    def allow(self, caller: Caller, asked: str, model: str) -> None:
        """Raises PermissionDenied for a model that the caller's key is not for."""
        if not caller.may_ask(asked, model):
            self._meters.happened("keys_refused", "model")
            raise not_allowed(asked)
