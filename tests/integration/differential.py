"""Byte sequences that are, or almost are, HTTP requests; and what a server made of them."""

import json
import random
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

PATH: Final = b"/v1/chat/completions"
SENTINEL: Final = b"GET /nothing HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n"
_STATUS = re.compile(rb"HTTP/1\.1 (\d{3}) ")
_MODEL = re.compile(rb"model '(n\d+)'")


@dataclass(frozen=True, slots=True)
class Heard:
    """A server's answers: the models that it read out of bodies, its statuses, and whether it closed."""

    models: tuple[bytes, ...]
    statuses: tuple[int, ...]
    closed: bool

    @property
    def refused(self) -> bool:
        """The server took the bytes for something other than a request."""
        return any(status in {400, 408, 413, 431} for status in self.statuses)


def heard(data: bytes, *, closed: bool) -> Heard:
    """Reads a server's bytes. A body that names a model is answered with that model's name."""
    statuses = tuple(int(status) for status in _STATUS.findall(data) if status != b"100")
    return Heard(tuple(_MODEL.findall(data)), statuses, closed)


def body_of(number: int) -> bytes:
    """A body whose model no gateway has, so that the refusal says what was read."""
    return json.dumps({"model": f"n{number}", "messages": []}).encode()


def request(body: bytes, *lines: bytes, path: bytes = PATH, version: bytes = b"HTTP/1.1") -> bytes:
    """A POST with these header lines."""
    return b"POST " + path + b" " + version + b"\r\n" + b"".join(line + b"\r\n" for line in lines) + b"\r\n" + body


def sized(body: bytes, *lines: bytes, path: bytes = PATH, version: bytes = b"HTTP/1.1") -> bytes:
    """A POST with its content-length."""
    return request(body, b"host: x", *lines, b"content-length: %d" % len(body), path=path, version=version)


def chunks(body: bytes, rng: random.Random, *, trailer: bytes = b"") -> bytes:
    """The body in chunks of random sizes, some with extensions."""
    framed = b""
    while body:
        size = rng.randint(1, len(body))
        extension = rng.choice([b"", b"", b";x=1"])
        framed += rng.choice([b"%x", b"%X", b"0%x"]) % size + extension + b"\r\n" + body[:size] + b"\r\n"
        body = body[size:]
    return framed + b"0\r\n" + trailer + b"\r\n"


def good(rng: random.Random, number: int) -> bytes:
    """A request that every server must take."""
    body = body_of(number)
    extra = [line for line in (b"X-Thing: a b", b"accept:*/*", b"user-agent:\t x ") if rng.random() < 0.4]
    kinds: list[Callable[[], bytes]] = [
        lambda: sized(body, *extra),
        lambda: sized(body, *extra, path=PATH + b"?a=1"),
        lambda: request(body, b"HOST: x", b"Content-Length:%d" % len(body), *extra),
        lambda: request(chunks(body, rng), b"host: x", b"transfer-encoding: chunked", *extra),
        lambda: request(chunks(body, rng, trailer=b"x: y\r\n"), b"host: x", b"Transfer-Encoding: Chunked", *extra),
        lambda: sized(body, b"expect: 100-continue"),
        lambda: sized(body, path=b"/v1/completions"),
        lambda: b"GET /nothing HTTP/1.1\r\nhost: x\r\n\r\n",
    ]
    return rng.choice(kinds)()


def odd(rng: random.Random, number: int) -> bytes:
    """A request over which two servers could disagree."""
    body = body_of(number)
    size = b"content-length: %d" % len(body)
    inner = sized(body_of(number + 1))
    chunked = chunks(body, rng)
    te = b"transfer-encoding: chunked"
    kinds = [
        request(chunked, b"host: x", te, b"content-length: %d" % len(chunked)),
        request(chunked + inner, b"host: x", b"content-length: %d" % (len(chunked) + len(inner)), te),
        request(body, b"host: x", size, size),
        request(body, b"host: x", size, b"content-length: 3"),
        request(body, b"host: x", b"content-length: +%d" % len(body)),
        request(body, b"host: x", b"content-length: %d, %d" % (len(body), len(body))),
        request(body, b"host: x", b"content-length: 0x10"),
        request(body, b"host: x", b"content-length: -1"),
        request(body, b"host: x", b"content-length : %d" % len(body)),
        request(body, b"host: x", b"content-length: %d1" % 10**19),
        request(body, b"host: x", b"a: b\r\n c", size),
        request(body, b"host: x\n" + size),
        request(body, b"host: x\0y", size),
        request(body, b"host: x", b"no colon here", size),
        request(body, b"host: x", b": empty", size),
        request(chunked, b"host: x", b"transfer-encoding: gzip, chunked"),
        request(chunked, b"host: x", b"transfer-encoding: xchunked"),
        request(chunked, b"host: x", te, te),
        request(b"0x5\r\nhello\r\n0\r\n\r\n", b"host: x", te),
        request(b"-5\r\nhello\r\n0\r\n\r\n", b"host: x", te),
        request(b"\r\nhello\r\n0\r\n\r\n", b"host: x", te),
        request(b"5\r\nhelloX\r\n0\r\n\r\n", b"host: x", te),
        request(b"5\nhello\r\n0\r\n\r\n", b"host: x", te),
        request(b"fffffffffffffffff\r\nhello\r\n0\r\n\r\n", b"host: x", te),
        sized(body, version=b"HTTP/2.0"),
        sized(body, version=b"HTTP/1.1 "),
        sized(body, version=b"http/1.1"),
        sized(body, path=PATH + b" "),
        b"\r\n" + sized(body),
        sized(body).replace(b"POST", b"PO ST"),
        request(inner, b"host: x"),
    ]
    return rng.choice(kinds)


def mutated(rng: random.Random, number: int) -> bytes:
    """A good request with one to three bytes changed, lost or added."""
    data = bytearray(good(rng, number))
    for _ in range(rng.randint(1, 3)):
        at = rng.randrange(len(data))
        byte = rng.choice([rng.randrange(256), *b"\r\n :0"])
        match rng.randrange(3):
            case 0:
                data[at] = byte
            case 1:
                del data[at]
            case _:
                data.insert(at, byte)
    return bytes(data)


def split(rng: random.Random, data: bytes) -> list[bytes]:
    """The bytes in one to five pieces."""
    cuts = sorted(rng.randrange(len(data) + 1) for _ in range(rng.randint(0, 4)))
    return [data[a:b] for a, b in zip([0, *cuts], [*cuts, len(data)], strict=True)]
