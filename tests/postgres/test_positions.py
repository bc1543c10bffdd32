"""Readers of the journal miss no row that is committed late, and wait for nobody else."""

import anyio
import pytest

from hq.backends.codec import encode_events
from hq.backends.port import Batch
from hq.backends.postgres import Limits
from hq.backends.postgres.schema import Schema
from hq.domain.events import Resumed
from hq.domain.settings import Settings
from hq.errors import StorageTimeout
from tests.postgres.open_transaction import SLOWEST_S, beside_open_transaction

OPEN_S = 5


@pytest.fixture
async def backend(opened):
    return await opened()


async def write_late(admin, table, queue, sequence):
    """Begin an append by hand, as hq does, and leave it open: the statement that ends it."""
    locks = Schema(table("").rstrip(".")).locks
    transaction = admin.transaction()
    await transaction.start()
    await admin.execute(f"SELECT pg_advisory_xact_lock_shared({locks['space']}, {locks['journal']})")
    await admin.execute(
        f"INSERT INTO {table('journal')} (queue, first, last, epoch, claimed, at, body)"
        " VALUES ($1, $2, $2, 0, 0, 0, $3)",
        queue,
        sequence,
        encode_events(queue, 0, [Resumed(sequence, 0)]),
    )
    return transaction


@pytest.mark.parametrize(("ending", "found"), [("commit", [2, 3]), ("rollback", [3])])
async def test_a_row_that_is_committed_late_is_not_passed_over(backend, admin, table, ending, found):
    first, second = [(await backend.create(name, Settings())).number for name in "ab"]
    await backend.append([Batch(first, 0, [Resumed(1, 0)])])
    late = await write_late(admin, table, first, 2)
    await backend.append([Batch(second, 0, [Resumed(1, 0)])])
    read = []

    async def reader():
        read.append([entry.position for entry in await backend.journal(1, 10)])

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(reader)
        await anyio.wait_all_tasks_blocked()
        assert read == []
        await getattr(late, ending)()

    assert read == [found]


async def test_a_position_that_was_never_written_is_not_taken_for_pruned(backend, admin, table):
    queue = (await backend.create("a", Settings())).number
    late = await write_late(admin, table, queue, 1)
    await late.rollback()
    await backend.append([Batch(queue, 0, [Resumed(1, 0)])])

    assert await backend.bounds() == (1, 2, 0)


async def test_an_open_append_bounds_how_long_a_reader_waits(opened, admin, table):
    backend = await opened(limits=Limits(deadline_s=0.3))
    queue = (await backend.create("a", Settings())).number
    await backend.append([Batch(queue, 0, [Resumed(1, 0)])])
    late = await write_late(admin, table, queue, 2)

    with pytest.raises(StorageTimeout):
        await backend.journal(0, 10)
    await late.rollback()
    assert len(await backend.journal(0, 10)) == 1


async def test_an_open_transaction_of_an_application_holds_no_reader_back(backend, admin, table):
    queue = (await backend.create("a", Settings())).number
    async with admin.transaction():
        await admin.execute(f"SELECT * FROM {table('journal')}, txid_current()")
        await backend.append([Batch(queue, 0, [Resumed(1, 0)])])
        with anyio.fail_after(2):
            assert len(await backend.journal(0, 10)) == 1


@pytest.mark.slow
async def test_a_reader_keeps_up_beside_a_transaction_that_stays_open_for_seconds(
    postgres_url, postgres_schema
):
    seen = await beside_open_transaction(postgres_url, postgres_schema, OPEN_S)

    assert seen.read == seen.stored
    assert len(seen.read) > 50
    assert seen.slowest_s < SLOWEST_S


async def test_every_entry_is_read_once_beside_appends_on_all_lines(backend):
    queues = [(await backend.create(f"q{n}", Settings())).number for n in range(8)]
    read, done = [], anyio.Event()

    async def write(queue):
        for sequence in range(1, 41):
            await backend.append([Batch(queue, 0, [Resumed(sequence, 0)])])

    async def follow():
        position, last = 0, False
        while not last:
            last = done.is_set()
            while entries := await backend.journal(position, 7):
                read.extend((entry.queue, entry.events[0].sequence) for entry in entries)
                position = entries[-1].position

    async with anyio.create_task_group() as readers:
        readers.start_soon(follow)
        async with anyio.create_task_group() as writers:
            for queue in queues:
                writers.start_soon(write, queue)
        done.set()

    assert sorted(read) == sorted((queue, n) for queue in queues for n in range(1, 41))
