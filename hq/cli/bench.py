"""hq bench: what a target does here and now: enqueue, receive and complete, by several clients at once."""

from __future__ import annotations

from statistics import quantiles
from time import perf_counter
from typing import TYPE_CHECKING, Annotated, Any
from uuid import uuid4

import typer

from hq.cli.command import command
from hq.cli.target import Target
from hq.errors import HQError

if TYPE_CHECKING:
    from hq.system.message import Message
    from hq.system.queue import Queue

Messages = Annotated[int, typer.Option("--messages", min=1, max=10_000_000, help="How many messages.")]
Clients = Annotated[int, typer.Option("--clients", min=1, max=90, help="How many clients at once.")]
Batch = Annotated[int, typer.Option("--batch", min=1, max=1_000, help="How many in one request.")]
Bytes = Annotated[int, typer.Option("--bytes", min=0, max=500_000, help="How large each payload is.")]
PERCENT = 100
WAIT_MS = 10_000


def add_to(app: typer.Typer) -> None:
    """Make it a command."""
    command(app, "bench")(bench)


async def bench(
    at: Target, *, messages: Messages = 2_000, clients: Clients = 10, batch: Batch = 1, size: Bytes = 100
) -> None:
    """Measure the cycle of a message, in a queue of its own that is deleted afterwards."""
    name = f"hq-bench-{uuid4().hex[:8]}"
    durability = await at.system.ready()
    queue = await at.system.create_queue(name)
    try:
        run = Run(queue, messages, clients, batch, bytes(size))
        with at.show.progress("bench", total=messages) as advance:
            run.advance = advance
            seconds = await run.all()
    finally:
        import anyio

        with anyio.CancelScope(shield=True):
            await at.system.delete_queue(name)
    said = {"messages": messages, "clients": clients, "batch": batch, "bytes": size, "durability": durability}
    at.show.record(said | run.told(seconds))


class Run:
    """Clients that each put messages in and take them out again."""

    def __init__(self, queue: Queue, messages: int, clients: int, batch: int, payload: bytes) -> None:
        self._queue = queue
        self._left = self._messages = messages
        self._clients = clients
        self._batch = batch
        self._payload = payload
        self._times: list[float] = []
        self._done = 0
        self.advance: Any = None

    async def all(self) -> float:
        """How many seconds it took."""
        import anyio

        began = perf_counter()
        async with anyio.create_task_group() as tasks:
            for _ in range(self._clients):
                tasks.start_soon(self._work)
        return perf_counter() - began

    def told(self, seconds: float) -> dict[str, Any]:
        """How fast it was, and how long a cycle took: of one batch, its three requests together."""
        times = sorted(self._times)
        cuts = quantiles(times, n=PERCENT) if len(times) > 1 else times * PERCENT
        return {
            "seconds": round(seconds, 3),
            "messages_per_s": round(self._messages / seconds, 1),
            "cycle_p50_ms": round(cuts[49] * 1_000, 2),
            "cycle_p99_ms": round(cuts[98] * 1_000, 2),
        }

    async def _work(self) -> None:
        while self._left > 0:
            count = min(self._batch, self._left)
            self._left -= count
            began = perf_counter()
            await self._put(count)
            taken = 0
            while taken < count:
                # Another client may have taken what this one put in, and left its own.
                received = await self._queue.receive(count - taken, wait_ms=WAIT_MS)
                await self._take(received)
                taken += len(received)
            self._times.append(perf_counter() - began)
            self._done += count
            self.advance.to(self._done)

    async def _put(self, count: int) -> None:
        if self._batch == 1:
            await self._queue.enqueue(self._payload)
        else:
            _all_done(await self._queue.enqueue_many([self._payload] * count))

    async def _take(self, received: list[Message]) -> None:
        if self._batch > 1:
            _all_done(await self._queue.complete(received))
        else:
            for one in received:
                await self._queue.complete(one)


def _all_done(told: list[Any]) -> None:
    for one in told:
        if isinstance(one, HQError):
            raise one
