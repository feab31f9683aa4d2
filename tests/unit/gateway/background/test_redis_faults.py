"""Whatever redis-py raises is a fault of Redis with a reason in words; what is not the library's own comes through."""

import inspect
import socket
import ssl

import pytest
import redis.exceptions as raised
from redis.asyncio.sentinel import MasterNotFoundError, SlaveNotFoundError

from gateway.background.shared.client import RedisFault
from gateway.background.shared.clients import FAULTS, fault_of
from gateway.background.shared.reasons import why

CLASSES = [one for _, one in inspect.getmembers(raised, inspect.isclass) if issubclass(one, Exception)]
OTHERS = [MasterNotFoundError, SlaveNotFoundError, OSError, ssl.SSLError, UnicodeDecodeError, ValueError, TypeError]


@pytest.mark.parametrize("kind", [*CLASSES, *OTHERS])
def test_every_kind_of_exception_of_the_library_is_caught(kind: type[Exception]) -> None:
    assert issubclass(kind, FAULTS)


@pytest.mark.parametrize("kind", [MemoryError, ZeroDivisionError, KeyboardInterrupt, StopIteration])
def test_what_no_connection_leads_to_is_not_caught(kind: type[BaseException]) -> None:
    assert not issubclass(kind, FAULTS)


def test_a_fault_keeps_to_itself_what_the_library_says_of_addresses_and_users() -> None:
    error = raised.ConnectionError("Error 7 connecting to SECRET:6379. user SECRET")
    assert isinstance(fault_of(error), RedisFault)
    assert "SECRET" not in str(fault_of(error))


def certificate() -> ssl.SSLError:
    error = ssl.SSLCertVerificationError()
    error.verify_message = "self-signed certificate"
    return error


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (raised.ResponseError("NOAUTH Authentication required."), "it needs a password (state.password)"),
        (
            raised.ResponseError("NOAUTH HELLO must be called with"),
            "it needs a password",
        ),
        (raised.AuthenticationError("invalid username-password pair or user is disabled."), "wrong user or password"),
        (raised.ResponseError("AUTH <password> called without any password configured"), "it has no password, but"),
        (
            raised.NoPermissionError("this user has no permissions to run"),
            "NOPERM: the user needs",
        ),
        (raised.ResponseError("DB index is out of range"), "it has no database of this number"),
        (raised.ReadOnlyError("You can't write against a read only replica."), "READONLY: it is a replica"),
        (raised.OutOfMemoryError("command not allowed when used memory > 'maxmemory'."), "OOM: its memory is full"),
        (raised.BusyLoadingError("Redis is loading the dataset in memory"), "LOADING: it still reads"),
        (raised.ClusterDownError("CLUSTERDOWN The cluster is down"), "the cluster is not whole"),
        (raised.RedisClusterException("Redis Cluster cannot be connected. SECRET"), "no node of the cluster answers"),
        (raised.MovedError("3999 127.0.0.1:6381"), "it is a node of a cluster"),
        (raised.ResponseError("NEWCODE what nobody knows yet"), "it answers NEWCODE"),
        (raised.InvalidResponse("Protocol Error: b'HTTP'"), "what answers there is no Redis"),
        (raised.DataError("what"), "it cannot be talked with (DataError)"),
        (ConnectionRefusedError(111, "Connection refused"), "refused: nothing listens there"),
        (OSError("Multiple exceptions: [Errno 111] Connect call failed ('::1', 1, 0, 0)"), "refused: nothing listens"),
        (OSError(113, "No route to host"), "the system says: no route to host"),
        (socket.gaierror(-2, "Name or service not known"), "unknown host"),
        (FileNotFoundError(2, "No such file or directory"), "no such file: the socket, or one of the TLS options"),
        (PermissionError(13, "Permission denied"), "no permission for a file"),
        (ConnectionResetError(104, "Connection reset by peer"), "the connection was closed"),
        (ssl.SSLError(1, "[SSL: WRONG_VERSION_NUMBER] wrong version number"), "there is no TLS"),
        (certificate(), "its certificate is not trusted: self-signed certificate (option ssl_ca_certs)"),
    ],
)
def test_the_cause_is_told_in_words(error: Exception, words: str) -> None:
    assert why(error).startswith(words)


def test_the_cause_below_comes_before_what_the_library_made_of_it() -> None:
    error = raised.ConnectionError("Error -2 connecting to h:1.")
    error.__context__ = socket.gaierror(-2, "Name or service not known")
    assert why(error) == "unknown host"
