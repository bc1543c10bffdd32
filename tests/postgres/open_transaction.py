"""Readers of the journal beside a transaction that an application leaves open, as long as wanted.

python -m tests.postgres.open_transaction --seconds 600
"""

import argparse
import tempfile
from pathlib import Path
from time import monotonic
from typing import NamedTuple

import anyio
import asyncpg

from hq.actors.limits import Limits
from hq.actors.node import Node
from hq.backends.postgres import PostgresBackend, Shape
from hq.domain.settings import Settings
from tests.postgres.cluster import Cluster
from tests.postgres.work import Work

PAGE = 500
SLOWEST_S = 2.0
PATIENCE_S = 60


class Seen(NamedTuple):
    """What a reader read while the transaction was open, and what it should have."""

    read: list[int]
    stored: list[int]
    slowest_s: float
    cycles: int


async def beside_open_transaction(url: str, schema: str, seconds: float) -> Seen:
    """Work, and follow the journal, while an application's transaction has written and does not end."""
    backend = PostgresBackend(url, shape=Shape(schema=schema))
    application = await asyncpg.connect(url)
    await backend.open()
    try:
        async with Node(backend, limits=Limits(checkpoint_events=500)) as node:
            await node.create("jobs", Settings(max_attempts=None))
            async with application.transaction():
                await application.execute(f"CREATE TABLE {schema}.orders AS SELECT 1 AS number")
                work, read, slowest_s = await followed(node, backend, seconds)
            await work.drain()
        rows = await application.fetch(f"SELECT position FROM {schema}.journal ORDER BY position")
        stored = [row["position"] for row in rows if row["position"] <= read[-1]]
        return Seen(read, stored, slowest_s, len(work.completed))
    finally:
        await backend.close()
        await application.close()


async def followed(node: Node, backend: PostgresBackend, seconds: float) -> tuple[Work, list[int], float]:
    """Clients at work for so many seconds, the positions a reader saw meanwhile, and its longest wait."""
    work, read, slowest_s = Work(node, "jobs"), [], 0.0
    until = monotonic() + seconds
    with anyio.fail_after(seconds + PATIENCE_S):
        async with anyio.create_task_group() as tasks:
            work.start(tasks)
            while monotonic() < until:
                begun = monotonic()
                entries = await backend.journal(read[-1] if read else 0, PAGE)
                slowest_s = max(slowest_s, monotonic() - begun)
                read += [entry.position for entry in entries]
                if not entries:
                    await work.more()
            work.stopping = True
    return work, read, slowest_s


def main() -> None:
    """Follow on a server of its own, and report."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seconds", type=float, default=600)
    arguments = parser.parse_args()
    cluster = Cluster(Path(tempfile.mkdtemp(prefix="hq-open-")))
    try:
        cluster.make()
        seen = anyio.run(beside_open_transaction, cluster.url(), "beside", arguments.seconds)
    finally:
        cluster.remove()
    assert seen.read == seen.stored, "an entry was missed, or read twice"
    assert seen.slowest_s < SLOWEST_S, f"a reader waited {seen.slowest_s:.1f} s"
    print(f"{seen.cycles} cycles, {len(seen.read)} entries, the slowest read {seen.slowest_s:.3f} s")


if __name__ == "__main__":
    main()
