"""A journal to prune, and pruning to its end."""

from hq.backends.port import Batch, Retention
from hq.domain.checkpoint import Chunk, Snapshot
from hq.domain.events import Resumed
from hq.domain.settings import Settings

DAY = 86_400_000
NOTHING = Retention(keep_ms=0, keep_bytes=0)
EVERYTHING = Retention(keep_ms=1 << 50, keep_bytes=1 << 50)


async def new_queue(backend, name="jobs"):
    return (await backend.create(name, Settings())).number


async def fill(backend, queue, sequences, at=0):
    for sequence in sequences:
        await backend.append([Batch(queue, 0, [Resumed(sequence, at)])])


async def mark(backend, queue, sequence, **changes):
    snapshot = Snapshot(Settings(), sequence=sequence, **changes)
    await backend.checkpoint(queue, Chunk([], [], {}, snapshot), None)


async def prune(backend, retention=NOTHING, now=DAY, limit=10):
    steps = 0
    while await backend.prune(now, retention, limit):
        steps += 1
    return steps


async def kept(backend):
    return [
        (entry.queue, event.sequence) for entry in await backend.journal(0, 100) for event in entry.events
    ]
