"""Appends to the journal of a Postgres database: one statement each, whatever it carries.

The statement writes the batches that follow their queue's last one under its owner and epoch, and says which
those were. What it left out is another owner's. Rows of the inbox go with the batches that name them. An
append is never torn by its caller's cancellation: it ends, or its deadline passes and it is told as unknown.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence

import anyio
from tenacity import AsyncRetrying, retry_if_exception, stop_after_attempt, wait_random_exponential

from hq.backends.codec import UNSTORABLE, encode_events
from hq.backends.port import Batch, Ending
from hq.backends.postgres import statements as sql
from hq.backends.postgres.connections import Connection, Pool
from hq.backends.postgres.ownership import Ownership
from hq.backends.postgres.trouble import AGAIN, Trouble, code_of, ending_of
from hq.domain.events import Claimed
from hq.errors import StorageError

log = logging.getLogger("hq.postgres")
_TRIES = 5
_COLUMNS = ("queues", "firsts", "lasts", "epochs", "claims", "times", "bodies")


class Appends:
    """All appends of one process, side by side on the connections of a pool."""

    def __init__(self, pool: Pool, ownership: Ownership) -> None:
        self._pool = pool
        self._ownership = ownership
        self.bytes = 0
        """What was appended since the process began."""

    async def append(self, batches: Sequence[Batch]) -> list[Ending]:
        """Write batches to the journal, each ending by itself."""
        endings: dict[int, Ending] = {}
        left = dict(enumerate(batches))
        with anyio.CancelScope(shield=True):
            while left:
                # Of each queue one at a time: a batch must follow what is there.
                places = {batch.queue: place for place, batch in reversed(left.items())}
                part = {place: left.pop(place) for place in sorted(places.values())}
                endings.update(zip(part, await self._append(list(part.values())), strict=True))
        return [endings[place] for place in range(len(batches))]

    async def _append(self, batches: list[Batch]) -> list[Ending]:
        rows: list[tuple[object, ...]] = []
        taken: list[tuple[int, int]] = []
        storable: set[int] = set()
        for batch in batches:
            try:
                rows.append(_row(batch))
            except UNSTORABLE:
                log.exception("a batch could not be encoded", extra={"queue": batch.queue})
            else:
                storable.add(batch.queue)
                taken += [(batch.queue, row) for row in batch.taken]
        written: set[int] = set()
        ending = Ending.NOT_OWNER
        if rows:
            ending, written = await self._send(rows, taken)
        return [
            Ending.REFUSED
            if batch.queue not in storable
            else Ending.DURABLE
            if batch.queue in written
            else ending
            for batch in batches
        ]

    async def _send(
        self, rows: list[tuple[object, ...]], taken: list[tuple[int, int]]
    ) -> tuple[Ending, set[int]]:
        """The queues that were written, and how it ended for the others."""
        columns = (list(column) for column in zip(*rows, strict=True))
        values: dict[str, object] = dict(zip(_COLUMNS, columns, strict=True))
        values["takers"], values["taken"] = [queue for queue, _ in taken], [row for _, row in taken]
        extra = {"queues": values["queues"]}
        try:
            async with self._pool.lend() as connection:
                try:
                    written = await self._call(connection, values)
                except (*Trouble, StorageError) as error:
                    ending = ending_of(error)
                    log.exception("an append failed", extra={**extra, "ending": ending.value})
                    return ending, set()
        except StorageError:
            log.exception("an append found no connection", extra=extra)
            return Ending.REFUSED, set()
        self.bytes += sum(len(row[-1]) for row in rows if isinstance(row[-1], bytes))
        return Ending.NOT_OWNER, written

    async def _call(self, connection: Connection, values: dict[str, object]) -> set[int]:
        """The queues that were written, tried again where Postgres has certainly rolled back."""
        values |= {"node": self._ownership.node, **connection.schema.locks}
        try:
            return await _append(connection, values)
        except Trouble as error:
            if code_of(error) not in AGAIN:
                raise
        # Made only now: it would cost every append as much as all of the above.
        attempts = AsyncRetrying(
            wait=wait_random_exponential(multiplier=0.005, max=0.2),
            stop=stop_after_attempt(_TRIES - 1),
            retry=retry_if_exception(lambda error: code_of(error) in AGAIN),
            sleep=anyio.sleep,
            reraise=True,
        )
        written: set[int] = set()
        async for attempt in attempts:
            with attempt:
                written = await _append(connection, values)
        return written


async def _append(connection: Connection, values: dict[str, object]) -> set[int]:
    statement = sql.APPEND_TAKING if values["taken"] else sql.APPEND
    return {queue for (queue,) in await connection.call(statement, values)}


def _row(batch: Batch) -> tuple[object, ...]:
    queue, epoch, events, _ = batch
    claimed = max((event.epoch for event in events if type(event) is Claimed), default=0)
    first, last = events[0].sequence, events[-1]
    body = encode_events(queue, epoch, events)
    return (queue, first, last.sequence, epoch, claimed, last.at, body)
