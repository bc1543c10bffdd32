"""Group commit: while one append is being made durable, the batches of all queues gather for the next."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

import anyio

from hq.backends.port import Backend, Batch, Ending

log = logging.getLogger("hq.commit")


class CommitLines:
    """As many lines as the backend takes side by side; a queue is always on the same one."""

    def __init__(self, backend: Backend, appended: Callable[[], None]) -> None:
        """`appended` is called after each append, before anybody learns how it ended."""
        self._lines = [CommitLine(backend, appended) for _ in range(backend.lines)]

    def submit(self, batch: Batch, ended: Callable[[Ending], None]) -> None:
        """Hand over a batch; `ended` is called with how it ended, once."""
        lines = self._lines
        lines[batch.queue % len(lines)].submit(batch, ended)

    def close(self) -> None:
        """Stop after what was handed over."""
        for line in self._lines:
            line.close()

    async def run(self) -> None:
        """Append whatever has gathered, until closed."""
        async with anyio.create_task_group() as tasks:
            for line in self._lines:
                tasks.start_soon(line.run)


class CommitLine:
    """One line of appends, one after the other. Each queue has at most one batch in it."""

    def __init__(self, backend: Backend, appended: Callable[[], None]) -> None:
        self._backend = backend
        self._appended = appended
        self._waiting: list[tuple[Batch, Callable[[Ending], None]]] = []
        self._wake = asyncio.Event()
        self._closing = False

    def submit(self, batch: Batch, ended: Callable[[Ending], None]) -> None:
        """Hand over a batch; `ended` is called with how it ended, once."""
        self._waiting.append((batch, ended))
        self._wake.set()

    def close(self) -> None:
        """Stop after what was handed over."""
        self._closing = True
        self._wake.set()

    async def run(self) -> None:
        """Append whatever has gathered, until closed."""
        while True:
            await self._wake.wait()
            self._wake.clear()
            if self._waiting:
                gathered, self._waiting = self._waiting, []
                endings = await self._append([batch for batch, _ in gathered])
                self._appended()
                for (_, ended), ending in zip(gathered, endings, strict=True):
                    ended(ending)
            if self._waiting:
                self._wake.set()
            elif self._closing:
                return

    async def _append(self, batches: list[Batch]) -> list[Ending]:
        try:
            return await self._backend.append(batches)
        except Exception:
            # Whatever it was, nobody can say what was written.
            log.exception("an append raised", extra={"queues": [batch.queue for batch in batches]})
            return [Ending.UNKNOWN] * len(batches)
