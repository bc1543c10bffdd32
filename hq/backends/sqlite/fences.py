"""Fences: per queue the last sequence and the newest epoch claimed, as the one writing connection knows them.

One connection writes the file, so what it wrote last is all there is to compare with, and no index is needed
on the path of an append. A fence is read from the file when it is first wanted, and forgotten whenever an
append may or may not have happened; reading it again queues behind that append.
"""

from __future__ import annotations

from typing import NamedTuple

from hq.backends.port import Batch
from hq.backends.sqlite import statements as sql
from hq.backends.sqlite.connections import Connection
from hq.domain.events import Claimed


class Fence(NamedTuple):
    """What the next batch of a queue must follow."""

    last: int
    epoch: int

    def admits(self, batch: Batch) -> bool:
        """Whether this batch is its owner's."""
        return batch.events[0].sequence == self.last + 1 and batch.epoch >= self.epoch

    def after(self, batch: Batch) -> Fence:
        """The fence once this batch is written."""
        claims = [event.epoch for event in batch.events if type(event) is Claimed]
        return Fence(batch.events[-1].sequence, max(self.epoch, *claims) if claims else self.epoch)


async def read_fence(connection: Connection, queue: int) -> Fence | None:
    """A queue's fence as the file has it; None if there is no such queue."""
    place = {"queue": queue}
    known = await connection.rows(sql.KNOWN_OF_QUEUE, place)
    if not known:
        return None
    [(mark, epoch)] = known
    for last, claimed in await connection.rows(sql.LAST_OF_QUEUE, place):
        return Fence(max(mark, last), max(epoch, claimed))
    return Fence(mark, epoch)
