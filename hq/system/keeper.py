"""Keeps the leases of consumers: renews each at a third of its time, gives back what nobody will work on.

One task per system. A lease is kept as long as its message waits in a consumer or is in somebody's hands. A
message that is dropped without a word is not kept: its lease ends by itself and the attempt counts.
"""

from __future__ import annotations

from collections import deque
from contextlib import suppress
from functools import partial
from weakref import WeakSet

import anyio

from hq.domain.commands import Extend, Release
from hq.domain.replies import Settled
from hq.errors import HQError, QueueNotFound
from hq.system.each import ask_each
from hq.system.lease import LOST, Lease
from hq.system.message import Message
from hq.system.port import Port


class Hold:
    """What one consumer has: messages that wait to be handed out, and leases of those that were."""

    __slots__ = ("changed", "queue", "waiting", "working")

    def __init__(self, queue: str) -> None:
        self.queue = queue
        self.waiting: deque[Message] = deque()
        self.working: WeakSet[Lease] = WeakSet()
        self.changed = anyio.Event()

    def __len__(self) -> int:
        return len(self.waiting) + len(self.working)

    def leases(self) -> list[Lease]:
        """All leases there are to keep."""
        return [lease for lease in (*(m.lease for m in self.waiting), *self.working) if lease.is_held]

    def hand_out(self) -> Message | None:
        """The next message that is still held."""
        while self.waiting:
            message = self.waiting.popleft()
            if not message.lost:
                message.consumed = True
                message.lease.ended = self.let_go
                self.working.add(message.lease)
                return message
        return None

    def let_go(self, lease: Lease) -> None:
        """A message was settled: there is room for another."""
        self.working.discard(lease)
        self.notify()

    def notify(self) -> None:
        """Wake who waits for room."""
        self.changed.set()
        self.changed = anyio.Event()


class Keeper:
    """Renews, for all consumers of a system."""

    def __init__(self, node: Port) -> None:
        self._node = node
        self._clock = node.clock
        self._holds: set[Hold] = set()
        self._abandoned: list[Hold] = []
        self._wakes_at: int | None = None
        self._nap = anyio.CancelScope()

    def keep(self, hold: Hold, leases: list[Lease]) -> None:
        """From now on renew these, and everything else the hold has."""
        now = self._clock.now
        for lease in leases:
            lease.plan(now)
        self._holds.add(hold)
        if self._wakes_at is None or any(lease.renew_at < self._wakes_at for lease in leases):
            self._nap.cancel()

    def abandon(self, hold: Hold) -> None:
        """Nobody will take what waits here any more: give it back soon."""
        self._abandoned.append(hold)
        self._nap.cancel()

    async def give_back(self, hold: Hold) -> None:
        """Release what waits in a hold; its other messages are still kept."""
        waiting = [message.lease for message in hold.waiting if message.lease.is_held]
        hold.waiting.clear()
        for lease in waiting:
            lease.settling = True
        # A release that is refused is a lease that has ended, and a queue that is gone took all with it.
        with suppress(QueueNotFound):
            number = self._node.number(hold.queue)
            await ask_each(waiting, partial(self._release, number), partial(self._node.post_many, number))

    async def give_all_back(self) -> None:
        """The same for every hold there is."""
        for hold in list(self._holds):
            await self.give_back(hold)

    async def run(self) -> None:
        """Keep, for ever."""
        while True:
            while self._abandoned:
                await self.give_back(self._abandoned.pop())
            await self._renew_due()
            self._wakes_at = self._next_renewal()
            if self._abandoned:
                continue
            with anyio.CancelScope() as self._nap:
                if self._wakes_at is None:
                    await anyio.sleep_forever()
                else:
                    await self._clock.until(self._wakes_at)

    def _next_renewal(self) -> int | None:
        """When the next lease is due; holds without any are forgotten until they have one again."""
        self._holds = {hold for hold in self._holds if len(hold)}
        return min((lease.renew_at for hold in self._holds for lease in hold.leases()), default=None)

    async def _renew_due(self) -> None:
        now = self._clock.now
        due = [(hold, lease) for hold in self._holds for lease in hold.leases() if lease.renew_at <= now]
        if due:
            async with anyio.create_task_group() as tasks:
                for hold, lease in due:
                    tasks.start_soon(self._renew, hold, lease)
        for hold in self._holds:
            hold.notify()

    async def _renew(self, hold: Hold, lease: Lease) -> None:
        try:
            number = self._node.number(hold.queue)
            command = Extend(self._node.sequence_of(number, lease.message), lease.token, lease.lease_ms)
            reply: Settled = await self._node.post(number, command)
        except LOST:
            self._missed(lease, ended=True)
        except HQError:
            # Storage had a bad moment. Our own clock says how long it is worth trying again.
            self._missed(lease, ended=lease.expires_at <= self._clock.now)
        else:
            lease.expires_at = reply.until or lease.expires_at
        lease.plan(self._clock.now)

    def _missed(self, lease: Lease, *, ended: bool) -> None:
        # A refusal that crosses its own settling is no loss: the settling will tell.
        if ended and lease.is_held:
            lease.lose()

    def _release(self, number: int, lease: Lease) -> Release:
        return Release(self._node.sequence_of(number, lease.message), lease.token)
