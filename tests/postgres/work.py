"""Clients of a node that go on whatever happens, and what each of them was told."""

from contextlib import suppress

import anyio

from hq.domain.commands import Complete, Count, Enqueue, Receive
from hq.errors import HQError, OutcomeUnknown

CLIENTS = 6


class Work:
    """Enqueue, receive and complete on one queue until stopped; then check that nothing answered is lost."""

    def __init__(self, node, queue):
        self.node, self.queue = node, queue
        self.stored, self.perhaps_stored = set(), set()
        self.completed, self.perhaps_completed = set(), set()
        self.stopping = False
        self._progress = anyio.Event()

    def start(self, tasks):
        for number in range(CLIENTS):
            tasks.start_soon(self._run, number)

    async def more(self):
        """Return once something more was done."""
        self._progress = anyio.Event()
        await self._progress.wait()

    async def drain(self):
        """Receive and complete all there is, and compare it with what clients were told."""
        while await self._left():
            with suppress(HQError):
                await self._take(Receive(100), 300)
        assert self.stored <= self.completed | self.perhaps_completed, "acknowledged and lost"
        assert self.completed <= self.stored | self.perhaps_stored, "it came from nowhere"

    async def _run(self, name):
        turn = 0
        while not self.stopping:
            turn += 1
            with suppress(HQError):
                await self._enqueue(b"%d %d" % (name, turn))
                await self._take(Receive(), 0)
                self._progress.set()

    async def _enqueue(self, payload):
        try:
            await self.node.ask(self.queue, Enqueue(payload))
        except OutcomeUnknown:
            self.perhaps_stored.add(payload)
            raise
        self.stored.add(payload)

    async def _take(self, command, wait_ms):
        completed_before = self.completed.copy()
        for one in await self.node.receive(self.queue, command, wait_ms):
            assert one.payload not in completed_before
            try:
                await self.node.ask(self.queue, Complete(one.message, one.token))
            except OutcomeUnknown:
                self.perhaps_completed.add(one.payload)
                raise
            self.completed.add(one.payload)

    async def _left(self):
        """How much is still to do, however often the connection was just lost."""
        while True:
            with suppress(HQError):
                stats = await self.node.ask(self.queue, Count())
                return stats.ready + stats.delayed + stats.leased
