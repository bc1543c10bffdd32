"""The simulated world on a real Postgres: time is virtual, storage is not.

python -m tests.simulation.on_postgres --seeds 100
"""

from __future__ import annotations

import argparse
import logging
import tempfile
from collections import Counter
from dataclasses import astuple
from pathlib import Path

import anyio
from anyio.abc import TaskGroup

from hq.actors.node import Node
from hq.backends.postgres import Shape
from hq.domain.checkpoint import Snapshot, snapshot
from hq.domain.commands import Count
from hq.domain.fetching import absorb
from hq.domain.loading import load, mentioned, replay
from tests.postgres.cluster import Cluster
from tests.simulation.faulty import Faults, FaultyPostgres
from tests.simulation.world import QUEUES, World


class PostgresWorld(World):
    """One seed, in a schema of its own."""

    def __init__(self, seed: int, url: str, schema: str) -> None:
        super().__init__(seed, clients=3, rounds=12)
        self.place = url, Shape(schema=schema)

    async def run(self) -> Counter[str]:
        """As in memory, and let go of the database."""
        try:
            return await super().run()
        finally:
            with anyio.CancelScope(shield=True):
                await self.backend.close()

    async def _opened(self, tasks: TaskGroup) -> Faults:
        url, shape = self.place
        self.backend = FaultyPostgres(self.seed, self.clock, tasks, url, shape=shape)
        await self.backend.open()
        return self.backend

    async def _compare(self, node: Node, backend: Faults) -> None:
        """Memory equals storage: all is drained, so that the small state is all there is."""
        for name in QUEUES:
            await node.ask(name, Count())
            number = node.number(name)
            live = node.directory.actor(number).state
            assert not live.messages
            assert astuple(await read_again(backend, number)) == astuple(snapshot(live))


async def read_again(backend: Faults, number: int) -> Snapshot:
    """The small state that follows from storage alone."""
    loaded = await backend.load(number)
    state = load(loaded.snapshot, loaded.leases, head=2)
    while events := await backend.tail(number, state.sequence, 1_000):
        if lookups := mentioned(events):
            absorb(state, lookups, await backend.fetch(number, lookups))
        replay(state, events)
    return snapshot(state)


def simulate_on(url: str, seed: int, schema: str) -> Counter[str]:
    """Run one seed; what happened, counted."""
    return anyio.run(PostgresWorld(seed, url, schema).run)


def main() -> None:
    """Run seeds on a server of their own, and report."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seeds", type=int, default=100)
    parser.add_argument("--first", type=int, default=0)
    arguments = parser.parse_args()
    logging.disable(logging.CRITICAL)
    cluster = Cluster(Path(tempfile.mkdtemp(prefix="hq-simulation-")))
    done: Counter[str] = Counter()
    try:
        cluster.make()
        for seed in range(arguments.first, arguments.first + arguments.seeds):
            try:
                done += simulate_on(cluster.url(), seed, f"seed_{seed}")
            except BaseException:
                print(f"seed {seed} broke a promise")
                raise
    finally:
        cluster.remove()
    print(dict(done))


if __name__ == "__main__":
    main()
