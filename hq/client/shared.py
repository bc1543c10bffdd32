"""A SQLite file shared by processes: the first holds it and serves the others, one of which takes over.

Who finds the file held joins: it asks the holder over a Unix socket, as it would ask any server. All who
joined stand by. When the holder ends, however it ends, its lock is free: one of them takes it, opens the file
and serves it at the same place. It goes on asking over the socket, now itself, so that nothing that is under
way has to know.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from importlib import import_module
from pathlib import Path
from random import uniform
from typing import Any

import anyio
import anyio.to_thread

from hq.actors.clock import Clock
from hq.client.listening import hang_up, listen, socket_beside
from hq.errors import DatabaseInUse, HQError
from hq.system.port import Port
from hq.system.system import OpenPort

log = logging.getLogger("hq.shared")

SETTLING_S = 2.0
"""How long a file may be held by a process that cannot be reached: it may be about to listen, or to end."""
TROUBLE_S = 1.0


@asynccontextmanager
async def shared(database: str, hold: OpenPort, clock: Clock | None) -> AsyncIterator[Port]:
    """The file itself, or the process that holds it. DatabaseInUse if that does not share it."""
    place = await anyio.to_thread.run_sync(socket_beside, database)
    give_up_at = anyio.current_time() + SETTLING_S
    async with AsyncExitStack() as stack:
        port: Port | None = None
        while port is None:
            try:
                port = await stack.enter_async_context(holding(hold, place))
            except DatabaseInUse as in_use:
                port = await _join(stack, place, hold, clock, in_use)
                if port is None and anyio.current_time() >= give_up_at:
                    raise
                await _pause()
        yield port


async def _join(
    stack: AsyncExitStack, place: Path, hold: OpenPort, clock: Clock | None, in_use: DatabaseInUse
) -> Port | None:
    """The process that holds the file; None if it does not answer."""
    try:
        remote = await anyio.to_thread.run_sync(import_module, "hq.client.remote")
    except ModuleNotFoundError:
        raise DatabaseInUse(f"{in_use}; to share it: pip install 'hq-queue[shared]'") from in_use
    try:
        port: Port = await stack.enter_async_context(joined(remote, place, hold, clock))
    except remote.Unsent:
        return None
    return port


@asynccontextmanager
async def holding(hold: OpenPort, place: Path) -> AsyncIterator[Port]:
    """The file, held by this process and served to others; DatabaseInUse if another has it."""
    async with hold() as node:
        listening = await anyio.to_thread.run_sync(listen, place)
        if listening is None:
            yield node
            return
        leaving = anyio.Event()
        try:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(_serve, node, listening, leaving)
                try:
                    yield node
                finally:
                    leaving.set()
        finally:
            with anyio.CancelScope(shield=True):
                await anyio.to_thread.run_sync(hang_up, listening, place)


async def _serve(node: Port, listening: Any, leaving: anyio.Event) -> None:
    # Imported while the file is in use already: it brings a web framework.
    beside = await anyio.to_thread.run_sync(import_module, "hq.http.beside")
    await beside.serve(node, listening, leaving.wait)


@asynccontextmanager
async def joined(remote: Any, place: Path, hold: OpenPort, clock: Clock | None) -> AsyncIterator[Port]:
    """The process that holds the file, while this one stands by."""
    address = remote.Address("http://hq", str(place))
    async with remote.connected(address, clock) as node:
        await node.greet_now()
        async with anyio.create_task_group() as tasks:
            standby = Standby(node, hold, place)
            tasks.start_soon(standby.run)
            try:
                yield node
            finally:
                with anyio.CancelScope(shield=True):
                    # First, for this process may be the one that serves it.
                    await node.close()
                    standby.leave()


class Standby:
    """Takes over when the holder ends."""

    def __init__(self, node: Any, hold: OpenPort, place: Path) -> None:
        self._node = node
        self._hold = hold
        self._place = place
        self._leaving = anyio.Event()
        self._watching = anyio.CancelScope()

    def leave(self) -> None:
        """Stand by no more; if this process holds the file, let go of it."""
        self._leaving.set()
        self._watching.cancel()

    async def run(self) -> None:
        """Watch the holder; when it has gone, hold the file, or watch whoever does."""
        while not self._leaving.is_set():
            with anyio.CancelScope() as self._watching:
                await self._node.gone()
                await _pause()
            if not self._leaving.is_set():
                await self._take_over()

    async def _take_over(self) -> None:
        try:
            async with holding(self._hold, self._place):
                log.info("took over", extra={"socket": str(self._place)})
                await self._leaving.wait()
        except DatabaseInUse:
            return
        except HQError:
            log.exception("could not take over", extra={"socket": str(self._place)})
            with anyio.move_on_after(TROUBLE_S):
                await self._leaving.wait()


async def _pause() -> None:
    """Not all at the same instant."""
    await anyio.sleep(uniform(0.01, 0.05))  # noqa: S311 - spreads processes, keeps no secret
