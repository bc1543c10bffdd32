"""hq serve."""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from hq.config import Log

Port = Annotated[int | None, typer.Option("-p", "--port", help="The port to listen on; default 9999.")]
Timeout = Annotated[
    float | None, typer.Option("-r", "--request-timeout", help="Seconds a request may take; default none.")
]
Database = Annotated[
    str | None,
    typer.Option("-d", "--database", help="A path, :memory:, or a URL; default ./hq.db."),
]
ConfigFile = Annotated[Path | None, typer.Option("--config", help="A TOML file; see configs/.")]
Engine = Annotated[str | None, typer.Option("--engine", help="hypercorn or uvicorn; default hypercorn.")]
Host = Annotated[str | None, typer.Option("--host", help="The address to bind; default 127.0.0.1.")]
Listen = Annotated[
    list[str] | None,
    typer.Option(
        "--listen",
        metavar="ADDRESS=DIALECT",
        help="A port of its own for a dialect (hq, cl-sqs or mq-core); may be given several times.",
    ),
]

FORMAT = "%(asctime)s %(levelname)s %(name)s %(message)s"


def serve(
    *,
    port: Port = None,
    request_timeout: Timeout = None,
    database: Database = None,
    config: ConfigFile = None,
    engine: Engine = None,
    host: Host = None,
    listen: Listen = None,
) -> None:
    """Serve queues over HTTP until SIGTERM or Ctrl-C."""
    import asyncio

    from hq.config import load
    from hq.http.loops import new_loop
    from hq.http.server import serve as run

    flags: dict[str, Any] = {
        "--database": database,
        "--host": host,
        "--port": port,
        "--request-timeout": request_timeout,
        "--engine": engine,
        "--listen": listen or None,
    }
    loaded = load(config, environment=os.environ, flags=flags)
    log_to_stderr(loaded.log)

    def ready(address: str, dialect: str | None) -> None:
        typer.echo(f"hq serves {'' if dialect is None else dialect + ' '}at {address}")

    with asyncio.Runner(loop_factory=partial(new_loop, loaded.server.max_connections)) as runner:
        runner.run(run(loaded, ready=ready))


def log_to_stderr(settings: Log) -> None:
    """Send what hq logs to stderr, as the settings say."""
    import logging

    from hq.cli.logs import JsonFormatter

    handler = logging.StreamHandler()
    handler.setFormatter(JsonFormatter() if settings.format == "json" else logging.Formatter(FORMAT))
    logging.basicConfig(level=settings.level.upper(), handlers=[handler])
    for name in ("alembic", "uvicorn", "hypercorn"):
        logging.getLogger(name).setLevel(logging.WARNING)
