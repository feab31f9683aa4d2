"""Why a request got no answer, in words for an operator."""

import os
import socket
import ssl
from collections.abc import Iterator
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Unreachable:
    """No connection. ``refused``: nobody was listening. ``untrusted``: it is the certificate."""

    reason: str
    refused: bool = False
    untrusted: bool = False


def no_connection(error: BaseException) -> Unreachable:
    """Why there is no connection: the client library keeps the system's own words at the end of a chain."""
    causes = list(_causes(error))
    if any(isinstance(cause, socket.gaierror) for cause in causes):
        return Unreachable("its host name cannot be resolved")
    for cause in causes:
        if isinstance(cause, ssl.SSLCertVerificationError):
            return Unreachable(f"its certificate is not accepted ({cause.verify_message})", untrusted=True)
        if isinstance(cause, ssl.SSLError):
            return Unreachable("no TLS at its address: is it http:// rather than https://?")
    if any(isinstance(cause, ConnectionRefusedError) for cause in causes):
        return Unreachable("nobody listens at its address", refused=True)
    numbers = [cause.errno for cause in causes if isinstance(cause, OSError) and cause.errno]
    return Unreachable(f"its address cannot be reached ({os.strerror(numbers[-1])})" if numbers else "no connection")


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    """An error and what it came from."""
    while error is not None:
        yield error
        if isinstance(error, BaseExceptionGroup):
            for one in error.exceptions:
                yield from _causes(one)
        error = error.__cause__ or error.__context__
