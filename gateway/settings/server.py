"""The server section."""

from pydantic import Field

from gateway.settings.section import Section
from gateway.settings.values import (
    Duration,
    Name,
    Origin,
    PositiveDuration,
    PositiveNumber,
    PositiveSize,
    TcpPort,
)


class Server(Section):
    """The address that clients talk to, and how patient the gateway is with them."""

    host: Name = Field(default="127.0.0.1", description="address to listen on", examples=["0.0.0.0"])
    port: TcpPort = Field(default=8080, description="port to listen on; 0 takes a free one")
    workers: PositiveNumber = Field(
        default=1, description="processes that serve; max_in_flight and the retry budget hold in each one by itself"
    )
    max_body: PositiveSize = Field(default=64 * 2**20, description="largest request body in bytes; 413 above it")
    cors_origins: tuple[Origin, ...] = Field(
        default=(), description="browser origins that may call", examples=["[https://chat.example.org]"]
    )
    drain: Duration = Field(default=30.0, description="seconds that streams may take to finish on shutdown")
    write_timeout: PositiveDuration = Field(
        default=60.0, description="seconds after which a client that stops reading is cut"
    )
    keep_alive: PositiveDuration = Field(default=75.0, description="seconds that an idle client connection stays open")
    heartbeat: PositiveDuration | None = Field(
        default=None,
        description="seconds between signs of life in a stream whose first token is awaited; default: none, so that an "
        "error before the first token still has its own status",
        examples=["15s"],
    )
    access_log: bool = Field(default=False, description="the same as logs.requests: all", examples=["true"])
