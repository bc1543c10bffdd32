"""hq work."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from contextlib import AsyncExitStack
from importlib import import_module
from typing import TYPE_CHECKING, Annotated

import typer

from hq.cli.serve import log_to_stderr
from hq.errors import InvalidInput

if TYPE_CHECKING:
    import asyncio

    from hq.worker.worker import Worker

Target = Annotated[str, typer.Argument(help="Where the worker is: module:name, as in myapp.jobs:worker.")]
Database = Annotated[
    str | None, typer.Option("-d", "--database", help="A path or a URL; default HQ_DATABASE, then ./hq.db.")
]
Health = Annotated[
    str | None,
    typer.Option("--health", help="PORT or HOST:PORT: answers 200 while it consumes, else 503."),
]


def work(target: Target, *, database: Database = None, health: Health = None) -> None:
    """Work on queues until SIGTERM or Ctrl-C; a second one does not wait for what is in hand."""
    import asyncio

    from hq.config import Log

    log_to_stderr(Log())
    url = database or os.environ.get("HQ_DATABASE") or "./hq.db"
    with asyncio.Runner(loop_factory=_uvloop()) as runner:
        runner.run(_work(worker_at(target), url, None if health is None else _address(health)))


def _uvloop() -> Callable[[], asyncio.AbstractEventLoop] | None:
    """How a loop of uvloop is made, if it is installed."""
    try:
        make: Callable[[], asyncio.AbstractEventLoop] = import_module("uvloop").new_event_loop
    except ImportError:
        return None
    return make


def worker_at(target: str) -> Worker:
    """The worker that `module:name` names; modules of the current directory are found too."""
    from hq.worker.worker import Worker

    module, _, name = target.partition(":")
    if not module or not name:
        raise InvalidInput(f"{target!r} is no module:name")
    if "" not in sys.path:
        sys.path.insert(0, "")
    try:
        worker = getattr(import_module(module), name, None)
    except ModuleNotFoundError as error:
        raise InvalidInput(f"there is no module {error.name!r}") from None
    if not isinstance(worker, Worker):
        raise InvalidInput(f"{target!r} is no hq.Worker")
    return worker


def _address(text: str) -> tuple[str, int]:
    host, _, port = text.rpartition(":")
    if not port.isdecimal():
        raise InvalidInput(f"--health is PORT or HOST:PORT, not {text!r}")
    return host or "127.0.0.1", int(port)


async def _work(worker: Worker, url: str, address: tuple[str, int] | None) -> None:
    import asyncio

    from hq.system.collector import calm_collector
    from hq.system.open import open as open_system
    from hq.worker.health import health as telling

    loop = asyncio.get_running_loop()
    working = asyncio.current_task()
    assert working is not None
    asked: list[int] = []

    def end(number: int) -> None:
        asked.append(number)
        if len(asked) == 1:
            worker.stop()
        else:
            working.cancel()

    async with AsyncExitStack() as stack:
        system = await stack.enter_async_context(open_system(url))
        if address is not None:
            port = await stack.enter_async_context(telling(*address, worker.is_alive))
            typer.echo(f"hq tells its health at http://{address[0]}:{port}")
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, end, number)
        typer.echo(f"hq works on {', '.join(handler.source.name for handler in worker.handlers())}")
        calm_collector()
        try:
            await worker.run(system)
        except asyncio.CancelledError:
            if len(asked) <= 1:
                raise
