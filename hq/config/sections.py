"""What can be configured: every key with its kind, its default, and a sentence for the operator."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass, field
from typing import Annotated, Literal

from hq.actors.limits import Limits
from hq.config.kinds import (
    GIB,
    KIB,
    MAX_PORT,
    MIB,
    Database,
    File,
    Host,
    Listen,
    Listens,
    Maybe,
    Name,
    OneOf,
    Origins,
    Seconds,
    Secret,
    Size,
    Switch,
    Whole,
)
from hq.errors import ConfigInvalid

DAY_S = 86_400
DIALECTS = ("hq", "cl-sqs", "mq-core")
"""What other systems' clients may be spoken to in, each by the name of its system."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Server:
    """Where hq listens, and what it takes from a connection."""

    host: Annotated[
        str, Host(), "The address to listen on; one that other machines can reach wants keys."
    ] = "127.0.0.1"
    port: Annotated[int, Whole(0, MAX_PORT), "The port to listen on; 0 takes one that is free."] = 9999
    engine: Annotated[
        Literal["hypercorn", "uvicorn"],
        OneOf(("hypercorn", "uvicorn")),
        "The HTTP server; hypercorn has HTTP/2, uvicorn is faster and wants to be installed.",
    ] = "hypercorn"
    request_timeout: Annotated[
        float | None,
        Maybe(Seconds(0.001, DAY_S)),
        "How many seconds a request may take before it is answered with 408.",
    ] = None
    # Less than the ten seconds after which `docker stop` kills.
    grace_s: Annotated[float, Seconds(0, 3_600), "How long requests may go on after hq was told to stop."] = (
        8.0
    )
    access_log: Annotated[bool, Switch(), "Whether every request is logged; it costs speed."] = False
    max_body_bytes: Annotated[
        int, Size(KIB, GIB), "The largest body of a request; a longer one is answered with 413."
    ] = 16 * MIB
    max_header_bytes: Annotated[
        int, Size(KIB, MIB), "The largest head of a request, all its headers together."
    ] = 16 * KIB
    # Python gives up at a depth of about a thousand.
    max_json_depth: Annotated[int, Whole(1, 500), "How deep JSON may be nested."] = 64
    read_timeout_s: Annotated[float, Seconds(0.1, 3_600), "How long a client may take to send a request."] = (
        30.0
    )
    # Proxies let go after a minute; were hq first, a request could meet a connection that is closing.
    keep_alive_s: Annotated[
        float, Seconds(0, 3_600), "How long a connection may be idle between two requests."
    ] = 75.0
    keep_alive_max_requests: Annotated[
        int, Whole(1, 1_000_000_000), "How many requests a connection may make before it is closed."
    ] = 1_000_000
    max_connections: Annotated[
        int,
        Whole(1, 1_000_000),
        "How many connections may be open at once; each takes a file descriptor, and a long poll keeps one.",
    ] = 10_000
    allow_unauthenticated_bind: Annotated[
        bool,
        Switch(),
        "Whether hq starts without keys on an address that other machines can reach, open to all of them.",
    ] = False
    cors_origins: Annotated[
        tuple[str, ...],
        Origins(),
        "The origins whose web pages may call hq; none switches CORS off.",
    ] = ()
    tls_certificate: Annotated[
        str | None, Maybe(File()), "The certificate chain, in PEM; with it and its key hq serves HTTPS."
    ] = None
    tls_key: Annotated[str | None, Maybe(File()), "The private key of the certificate, in PEM."] = None

    def __post_init__(self) -> None:
        if (self.tls_certificate is None) != (self.tls_key is None):
            raise ConfigInvalid("server.tls_certificate and server.tls_key must be set together")

    def check_bind(self, keys: int) -> None:
        """Refuse to be open to other machines while there are no keys and nobody said that it may be."""
        self._check(self.host, "server.host", keys)

    def check_listen(self, listen: Listen, keys: int) -> None:
        """The same for a port of a dialect."""
        self._check(listen.host, f"the address for {listen.dialect}", keys)

    def _check(self, host: str, name: str, keys: int) -> None:
        if keys == 0 and not self.allow_unauthenticated_bind and not _is_loopback(host):
            raise ConfigInvalid(
                f"{name} is {host!r}, which other machines can reach, and there are no keys: "
                "listen on 127.0.0.1, make a key, or set server.allow_unauthenticated_bind = true"
            )


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        # Another name may lead anywhere, today or tomorrow.
        return host.lower() == "localhost"


@dataclass(frozen=True, slots=True, kw_only=True)
class Sqlite:
    """How a SQLite file is kept."""

    durability: Annotated[
        Literal["power", "process"],
        OneOf(("power", "process")),
        "What an answered request survives: a loss of power, or (faster) only the end of the process.",
    ] = "power"


@dataclass(frozen=True, slots=True, kw_only=True)
class Postgres:
    """How a Postgres database is used."""

    schema: Annotated[str, Name(), "The schema that hq has to itself; it is made if it is not there."] = "hq"
    durability: Annotated[
        Literal["power", "process"],
        OneOf(("power", "process")),
        "Whether hq refuses a server whose commits may not survive a loss of power, or takes any.",
    ] = "power"
    lines: Annotated[int, Whole(1, 64), "How many appends may run side by side, each on a connection."] = 4
    connections: Annotated[int, Whole(1, 256), "How many connections read and write checkpoints."] = 8
    prepared: Annotated[
        bool,
        Switch(),
        "Whether statements are prepared once per connection; false behind a pooler that cannot have that.",
    ] = True
    ownership_s: Annotated[
        float,
        Seconds(3, 300),
        "How long after its last heartbeat a process keeps its queues; then another may take over.",
    ] = 10.0
    deadline_s: Annotated[float, Seconds(0.1, 3_600), "How long a statement may take."] = 30.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ClSqs:
    """What cl-sqs is told by its environment."""

    api_key: Annotated[
        str | None, Secret(), "The key that cl-sqs wants in the header api-key, wherever it is served."
    ] = field(default=None, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Log:
    """What is logged to standard error."""

    level: Annotated[
        Literal["debug", "info", "warning", "error"],
        OneOf(("debug", "info", "warning", "error")),
        "The least important lines that are still logged.",
    ] = "info"
    format: Annotated[
        Literal["text", "json"], OneOf(("text", "json")), "Lines for people, or JSON for programs."
    ] = "text"


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """All of it. The limits are hq.Limits as they are."""

    # Not in the repr: a URL may hold a password.
    database: Annotated[
        str,
        Database(),
        "Where messages are stored: a path, `memory:` to keep nothing, or a URL.",
    ] = field(default="./hq.db", repr=False)
    listen: Annotated[
        tuple[Listen, ...],
        Listens(DIALECTS),
        "Ports of their own for the dialects of other systems, each at the root of its port.",
    ] = ()
    server: Server = field(default_factory=Server)
    limits: Limits = field(default_factory=Limits)
    sqlite: Sqlite = field(default_factory=Sqlite)
    postgres: Postgres = field(default_factory=Postgres)
    cl_sqs: ClSqs = field(default_factory=ClSqs)
    log: Log = field(default_factory=Log)
