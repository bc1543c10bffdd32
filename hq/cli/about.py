"""hq stats, health and metrics."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from hq.cli import numbers
from hq.cli.command import Named, command
from hq.cli.target import Target

if TYPE_CHECKING:
    from hq.system.system import System

MaybeQueue = Annotated[str | None, Named(("--queue", "--name"), "One queue; default all.")]


def add_to(app: typer.Typer) -> None:
    """Make them commands."""
    command(app, "stats")(stats)
    command(app, "health")(health)
    command(app, "metrics")(metrics)


async def stats(at: Target, queue: MaybeQueue = None) -> None:
    """Show a queue in numbers, or all of them."""
    if queue is not None:
        at.show.record(await numbers.numbers(at.system, at.queue(queue)))
        return
    queues = sorted(await at.system.queues(), key=lambda one: one.name)
    rows = [await numbers.numbers(at.system, one) for one in queues]
    at.show.rows(rows, numbers.COLUMNS, nothing="there is no queue")


async def health(at: Target) -> None:
    """See whether messages can be stored now, and what an answer survives."""
    durability = await at.system.ready()
    at.show.done(f"ok: an answer survives {_loss(durability)}", {"status": "ok", "durability": durability})


async def metrics(at: Target) -> None:
    """Show metrics as Prometheus reads them."""
    print(await _metrics(at.system), end="")


async def _metrics(system: System) -> str:
    from hq.actors.node import Node

    node = system.line.node
    if not isinstance(node, Node):
        from hq.client.remote import RemoteNode

        assert isinstance(node, RemoteNode)
        return await node.metrics()
    from hq.http.metrics import Metrics

    # Only queues that are awake are counted, and those of a database that was just opened sleep.
    for queue in await system.queues():
        await queue.stats()
    return Metrics(node).text().decode()


def _loss(durability: str) -> str:
    return {"power": "the loss of power", "process": "the end of the process"}.get(durability, "nothing")
