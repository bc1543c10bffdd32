"""Clients that work, a clock that is pushed on, and a ledger of what each was told.

python -m tests.simulation.world --seeds 1000
"""

from __future__ import annotations

import argparse
import logging
import random
from collections import Counter
from dataclasses import dataclass, field

import anyio
from anyio.abc import TaskGroup
from anyio.lowlevel import checkpoint as breathe

from hq.actors.limits import Limits
from hq.actors.node import Node
from hq.domain.commands import Complete, Count, Enqueue, Receive, Release, Retry
from hq.domain.messages import Options
from hq.domain.replies import Delivery
from hq.domain.settings import Groups, Settings
from hq.errors import CallerError, HQError, OutcomeUnknown
from hq.testing import FrozenClock, MemoryQueue, SeededChance
from tests.domain.test_replay import whole
from tests.simulation.faulty import Faults, FaultyMemory

LEASE_MS = 60
DRAIN_LEASE_MS = 3_600_000
QUEUES = {
    "plain": Settings(max_attempts=None, lease_ms=LEASE_MS),
    "fifo": Settings(max_attempts=None, lease_ms=LEASE_MS, groups=Groups.FIFO),
}


@dataclass
class Ledger:
    """What clients were told, and the promises that must hold of it."""

    stored: set[bytes] = field(default_factory=set)
    perhaps_stored: set[bytes] = field(default_factory=set)
    completed: set[bytes] = field(default_factory=set)
    perhaps_completed: set[bytes] = field(default_factory=set)
    receives: dict[bytes, int] = field(default_factory=dict)
    leased_until: dict[bytes, int] = field(default_factory=dict)
    order: dict[tuple[str, str | None], list[int]] = field(default_factory=dict)
    told: Counter[str] = field(default_factory=Counter)

    def received(self, delivery: Delivery, completed_before: set[bytes], lease_ms: int = LEASE_MS) -> None:
        """Check what a receive gave."""
        payload = delivery.payload
        granted_at = delivery.lease_expires_at - lease_ms
        assert payload in self.stored | self.perhaps_stored, f"{payload!r} came from nowhere"
        assert payload not in completed_before, f"{payload!r} was completed and came again"
        assert delivery.receives > self.receives.get(payload, 0), f"{payload!r}: receives went back"
        assert granted_at >= self.leased_until.get(payload, 0), f"{payload!r} has two leases at once"
        self.receives[payload] = delivery.receives
        self.leased_until[payload] = delivery.lease_expires_at


class World:
    """One seed."""

    def __init__(self, seed: int, clients: int = 4, rounds: int = 25) -> None:
        self.random = random.Random(seed)
        self.seed, self.clients, self.rounds = seed, clients, rounds
        self.clock = FrozenClock()
        self.ledger = Ledger()
        self.working = 0

    async def run(self) -> Counter[str]:
        """Work under faults, then without, until all is drained and checked."""
        limits = Limits(
            head=2, checkpoint_events=self.random.choice([5, 20, 100]), chunk=self.random.choice([1, 3, 50]),
            idle_ms=self.random.choice([30, 10_000]), loads=1_000, journal_ms=1, prune_every_ms=3,
        )  # fmt: skip
        async with anyio.create_task_group() as tasks:
            backend = await self._opened(tasks)
            async with anyio.create_task_group() as pumped:
                pumped.start_soon(self._pump)
                async with Node(
                    backend, clock=self.clock, chance=SeededChance(self.seed), limits=limits
                ) as node:
                    for name, settings in QUEUES.items():
                        await node.create(name, settings)
                    async with anyio.create_task_group() as working:
                        for number in range(self.clients):
                            working.start_soon(self._client, node, number)
                    backend.faults = False
                    await self._drain(node)
                    await self._compare(node, backend)
                pumped.cancel_scope.cancel()
            tasks.cancel_scope.cancel()
        return backend.done + self.ledger.told

    async def _opened(self, tasks: TaskGroup) -> Faults:
        """The backend of this world, which fails from now on."""
        return FaultyMemory(self.seed, self.clock, tasks)

    async def _pump(self) -> None:
        while True:
            for _ in range(self.random.randint(5, 30)):
                await breathe()
            self.clock.advance(self.random.choice([1, 1, 2, 5, 20, 100]))

    async def _client(self, node: Node, number: int) -> None:
        for turn in range(self.rounds):
            name = self.random.choice(list(QUEUES))
            if self.random.random() < 0.5:
                await self._enqueue(node, name, b"%d.%d" % (number, turn))
            else:
                await self._work(node, name)

    async def _enqueue(self, node: Node, name: str, payload: bytes) -> None:
        group = self.random.choice(["a", "b"])
        self.ledger.perhaps_stored.add(payload)
        try:
            await node.ask(name, Enqueue(payload, Options(group=group)))
        except OutcomeUnknown:
            self.ledger.told["unknown"] += 1
        except HQError as refusal:
            self.ledger.perhaps_stored.discard(payload)
            self.ledger.told[refusal.code] += 1
        else:
            self.ledger.stored.add(payload)

    async def _work(self, node: Node, name: str) -> None:
        completed_before = set(self.ledger.completed)
        try:
            with anyio.move_on_after(None) as scope:
                if self.random.random() < 0.1:
                    scope.cancel()
                deliveries = await node.receive(name, Receive(self.random.randint(1, 3)), 50)
                for delivery in deliveries:
                    self.ledger.received(delivery, completed_before)
                for delivery in deliveries:
                    await self._settle(node, name, delivery)
        except HQError as error:
            self.ledger.told[error.code] += 1

    async def _settle(self, node: Node, name: str, delivery: Delivery) -> None:
        verb = self.random.choice([Complete, Complete, Retry, Release, None])
        if verb is None:
            return
        if verb is not Complete:
            # Whatever the answer, the lease may be over now.
            self.ledger.leased_until[delivery.payload] = 0
        try:
            await node.ask(name, verb(delivery.message, delivery.token))
        except CallerError as refusal:
            self.ledger.told[refusal.code] += 1
        except BaseException:
            if verb is Complete:
                self.ledger.perhaps_completed.add(delivery.payload)
            raise
        else:
            if verb is Complete:
                self.ledger.completed.add(delivery.payload)

    async def _drain(self, node: Node) -> None:
        """Receive and complete all there is; everything acknowledged must come out."""
        found: set[bytes] = set()
        for name in QUEUES:
            while await self._left(node, name):
                completed_before = set(self.ledger.completed)
                deliveries = await node.receive(name, Receive(10, DRAIN_LEASE_MS), 5_000)
                for delivery in deliveries:
                    self.ledger.received(delivery, completed_before, DRAIN_LEASE_MS)
                for delivery in deliveries:
                    found.add(delivery.payload)
                    await node.ask(name, Complete(delivery.message, delivery.token))
                    self.ledger.completed.add(delivery.payload)
        lost = self.ledger.stored - found - self.ledger.completed - self.ledger.perhaps_completed
        assert not lost, f"acknowledged and lost: {lost}"

    async def _left(self, node: Node, name: str) -> int:
        stats = await node.ask(name, Count())
        return stats.ready + stats.delayed + stats.leased

    async def _compare(self, node: Node, backend: Faults) -> None:
        """Memory equals storage."""
        for name in QUEUES:
            number = node.number(name)
            await node.ask(name, Count())
            live = MemoryQueue(clock=self.clock)
            live.backend, live.number = backend, number
            live.state = node.directory.actor(number).state
            loaded = MemoryQueue(clock=self.clock)
            loaded.backend, loaded.number = backend, number
            loaded.reload()
            assert whole(loaded) == whole(live)


def simulate(seed: int) -> Counter[str]:
    """Run one seed; what happened, counted."""
    return anyio.run(World(seed).run)


def main() -> None:
    """Run seeds and report."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seeds", type=int, default=100)
    parser.add_argument("--first", type=int, default=0)
    arguments = parser.parse_args()
    logging.disable(logging.CRITICAL)
    done: Counter[str] = Counter()
    for seed in range(arguments.first, arguments.first + arguments.seeds):
        try:
            done += simulate(seed)
        except BaseException:
            print(f"seed {seed} broke a promise")
            raise
    print(dict(done))


if __name__ == "__main__":
    main()
