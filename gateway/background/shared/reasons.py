"""Why a Redis cannot be used, in words for operators: the cause, and what can be done. No address, user, password."""

import re
import socket
import ssl
from collections.abc import Iterator
from typing import Final

from gateway.settings.redis_url import RedisAddress

CLOSED: Final = "the connection was closed"
ANSWERS: Final = (
    (r"\bNOAUTH\b|HELLO must be called|Authentication required", "it needs a password (state.password)"),
    (r"without any password configured", "it has no password, but state.redis or state.password gives one"),
    (r"\bWRONGPASS\b|invalid password|invalid username-password", "wrong user or password"),
    (
        r"\bNOPERM\b|has no permissions|\bNo permissions\b",
        "NOPERM: the user needs EVAL, EVALSHA and the prefix' keys",
    ),
    (r"index is out of range|Invalid Database", "it has no database of this number"),
    (r"cluster support disabled", "it is no cluster (use redis:// or rediss://)"),
    (r"SELECT is not allowed in cluster|\bMOVED\b|\bMovedError\b", "it is a node of a cluster (use redis+cluster://)"),
    (r"\bREADONLY\b|read only replica", "READONLY: it is a replica (name the master, or use redis+sentinel://)"),
    (r"\bOOM\b|maxmemory", "OOM: its memory is full (maxmemory)"),
    (r"\bLOADING\b|loading the dataset", "LOADING: it still reads its data"),
    (r"\bMISCONF\b", "MISCONF: it cannot write its snapshots, and takes no writes"),
    (r"\bMASTERDOWN\b", "MASTERDOWN: a replica without its master"),
    (r"\bCLUSTERDOWN\b|not covered|All slots", "the cluster is not whole: some slots have no node"),
    (r"\bNOREPLICAS\b", "NOREPLICAS: too few replicas for a write"),
    (r"\bBUSY\b", "BUSY: it runs somebody's script"),
    (r"\bDENIED\b|protected mode", "it takes local connections only (protected-mode)"),
    (r"max number of clients", "it has as many clients as it may (maxclients)"),
    (r"No master found|No slave found", "no sentinel answers that knows a master of this name"),
    (r"unknown command .SENTINEL", "it is no sentinel"),
    (r"unknown command", "it does not know a command that the gateway needs"),
    (r"Redis Cluster cannot be connected", "no node of the cluster answers"),
    (r"Connect call failed", "refused: nothing listens there"),
    (r"Timeout connecting", "no connection within 1 s: a wrong address, a firewall, or no TLS there"),
    (r"Connection closed|Connection lost|reset by peer|Connection reset|Broken pipe", CLOSED),
    (r"Protocol Error|Invalid RESP|Bad response", "what answers there is no Redis"),
)
"""What an answer of Redis, or a message of the library, says; the first that fits."""


def why(error: BaseException) -> str:
    """The cause of an error: the system's and TLS' come first, because messages of the library only wrap them."""
    chain = list(_chain(error))
    for one in chain:
        found = _of_tls(one) if isinstance(one, ssl.SSLError) else _of_system(one) if isinstance(one, OSError) else ""
        if found:
            return found
    texts = [f"{one} ({type(one).__name__})" for one in chain]
    for pattern, words in ANSWERS:
        if any(re.search(pattern, text) for text in texts):
            return words
    code = re.match(r"[A-Z]{3,20}\b", texts[0])
    return f"it answers {code[0]}" if code else f"it cannot be talked with ({type(error).__name__})"


def on_first_contact(reason: str, address: RedisAddress) -> str:
    """More of a reason where that Redis has never been heard from."""
    if reason != CLOSED or address.tls or address.topology == "socket":
        return reason
    return f"{reason}: if it wants TLS, begin the URL with rediss"


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        yield error
        error = error.__cause__ or error.__context__


def _of_tls(error: ssl.SSLError) -> str:
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"its certificate is not trusted: {error.verify_message} (option ssl_ca_certs)"
    reason = getattr(error, "reason", None) or next((one for one in error.args if isinstance(one, str)), "")
    what = re.sub(r"[^a-z ]", " ", reason.lower()).strip() or type(error).__name__
    if "wrong version number" in what or "record layer failure" in what or "packet length" in what:
        return "there is no TLS (use redis://, or the port with TLS)"
    if "no certificate or crl" in what or "pem lib" in what:
        return "a file of its TLS options holds no certificate or key"
    return f"TLS fails: {what}"


def _of_system(error: OSError) -> str:
    if isinstance(error, socket.gaierror):
        return "unknown host"
    if isinstance(error, ConnectionRefusedError):
        return "refused: nothing listens there"
    if isinstance(error, FileNotFoundError):
        return "no such file: the socket, or one of the TLS options"
    if isinstance(error, PermissionError):
        return "no permission for a file: the socket, or one of the TLS options"
    if isinstance(error, ConnectionError):
        return CLOSED
    text = error.strerror or ""
    return f"the system says: {text.lower()}" if re.fullmatch(r"[A-Z][a-z -]+", text) else ""
