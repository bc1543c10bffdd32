"""What SQLite promises beside the contract: the file, its one process, and what is told when it is unwell."""

import os
import re
import signal
import sqlite3
import stat
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import anyio
import pytest
from sqlalchemy import create_mock_engine

from hq.backends.port import Batch, Ending
from hq.backends.sqlite import SqliteBackend
from hq.backends.sqlite.opening import Durability, Limits
from hq.backends.sqlite.schema import REVISION, metadata
from hq.domain.checkpoint import Chunk
from hq.domain.events import Claimed, Resumed
from hq.domain.lookups import Entry, KeyOf, RowOf
from hq.domain.messages import LEASED
from hq.errors import (
    DatabaseCorrupt,
    DatabaseInUse,
    DatabaseLocked,
    DatabaseMissing,
    DatabaseReadOnly,
    JournalDamaged,
    RowDamaged,
    SchemaTooNew,
    SnapshotDamaged,
    StorageTimeout,
)
from tests.backends.samples import EVENTS, FULL_ROW, SETTINGS, SNAPSHOT, columns, row

KEY = ("", "key")
ENTRY = Entry(1, 2, live=True, expires_at=None, as_of=1)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "hq.db"


@pytest.fixture
async def opened(path):
    """Opens the file, as often as wanted; whatever is open at the end is closed."""
    backends = []

    async def open_it(**options):
        backend = SqliteBackend(path, **options)
        backends.append(backend)
        await backend.open()
        return backend

    yield open_it
    for backend in backends:
        await backend.close()


@pytest.fixture
def change(path):
    """Change the file behind hq's back."""

    def execute(statement, *values):
        with sqlite3.connect(path) as connection:
            assert connection.execute(statement, values).rowcount != 0
        connection.close()

    return execute


async def new_queue(backend, name="jobs"):
    return (await backend.create(name, SETTINGS)).number


async def append(backend, queue, *events, epoch=0):
    [ending] = await backend.append([Batch(queue, epoch, list(events))])
    return ending


# The file.


@pytest.mark.parametrize(("durability", "synchronous"), [(Durability.POWER, 2), (Durability.PROCESS, 1)])
async def test_the_settings_durability_rests_on_are_in_force(opened, durability, synchronous):
    backend = await opened(durability=durability, limits=Limits(busy_ms=1_234))
    wanted = {"journal_mode": "wal", "synchronous": synchronous, "foreign_keys": 1, "busy_timeout": 1_234,
              "journal_size_limit": 64 << 20, "auto_vacuum": 2}  # fmt: skip

    facts = await backend.facts()

    assert {name: facts[name] for name in wanted} == wanted


async def test_the_file_and_all_beside_it_are_for_their_owner_alone(opened, path):
    await new_queue(await opened())

    modes = {file.name: stat.S_IMODE(file.stat().st_mode) for file in path.parent.iterdir()}

    assert set(modes) == {"hq.db", "hq.db-lock", "hq.db-wal", "hq.db-shm"}
    assert set(modes.values()) == {0o600}


async def test_a_closed_store_leaves_no_log_behind(opened, path):
    backend = await opened()
    await new_queue(backend)
    await backend.close()

    assert {file.name for file in path.parent.iterdir()} == {"hq.db", "hq.db-lock"}


async def test_a_name_that_sqlite_would_read_as_options_is_just_a_name(tmp_path):
    backend = SqliteBackend(tmp_path / "a b?mode=ro#100%.db")
    await backend.open()
    await new_queue(backend)
    await backend.close()

    assert (tmp_path / "a b?mode=ro#100%.db").stat().st_size > 0


async def test_the_schema_that_migrations_make_is_the_schema_in_code(opened, path):
    await opened()
    made = {}
    for target in (path, ":memory:"):
        connection = sqlite3.connect(target)
        if target == ":memory:":
            for statement in statements_of_the_schema():
                connection.execute(statement)
        found = connection.execute(
            "SELECT name, sql FROM sqlite_schema WHERE sql NOT NULL AND name NOT LIKE 'alembic%'"
            " AND name NOT LIKE 'sqlite_%'"
        )
        # A column that was added later stands on a line of its own making.
        made[target] = {name: re.sub(r"\s+(?=[,)])", "", " ".join(text.split())) for name, text in found}
        connection.close()

    assert made[path] == made[":memory:"]


def statements_of_the_schema():
    statements = []
    engine = create_mock_engine("sqlite://", lambda statement, *_: statements.append(statement))
    metadata.create_all(engine)
    return [str(statement.compile(dialect=engine.dialect)) for statement in statements]


# Reopening.


async def test_everything_is_found_again(opened):
    backend = await opened()
    incarnation = backend.incarnation
    queue = await new_queue(backend)
    dropped = await new_queue(backend, "dropped")
    await backend.drop(dropped)
    await append(backend, queue, *EVENTS, epoch=1)
    chunk = Chunk([FULL_ROW.row(), row(2, state=LEASED)], [], {KEY: ENTRY}, replace(SNAPSHOT, sequence=2))
    await backend.checkpoint(queue, chunk, 77)
    await backend.close()

    backend = await opened()

    assert backend.incarnation == incarnation
    [listed] = await backend.queues()
    assert (listed.number, listed.settings, listed.wake_at) == (queue, SETTINGS, 77)
    snapshot, leases = await backend.load(queue)
    assert snapshot == replace(SNAPSHOT, sequence=2)
    assert [columns(lease) for lease in leases] == [columns(row(2, state=LEASED))]
    assert await backend.tail(queue, 2, 1_000) == EVENTS[2:]
    [found, key] = await backend.fetch(queue, [RowOf(7), KeyOf(KEY)])
    assert (columns(found), key) == (columns(FULL_ROW), ENTRY)
    assert await backend.unsettled() == [queue]
    assert await new_queue(backend, "dropped") > dropped


async def test_a_new_writer_must_follow_what_an_earlier_process_wrote(opened):
    backend = await opened()
    queue = await new_queue(backend)
    await append(backend, queue, Claimed(1, 0, 5), epoch=5)
    await append(backend, queue, Resumed(2, 0), epoch=5)
    await backend.close()

    backend = await opened()

    assert await append(backend, queue, Resumed(2, 0), epoch=5) is Ending.NOT_OWNER
    assert await append(backend, queue, Resumed(3, 0), epoch=4) is Ending.NOT_OWNER
    assert await append(backend, queue, Claimed(3, 0, 6), epoch=6) is Ending.DURABLE


async def test_a_tail_is_found_whether_its_rows_are_indexed_or_not(opened):
    backend = await opened()
    first, second = await new_queue(backend, "a"), await new_queue(backend, "b")
    for sequence in range(1, 1_200):
        await backend.append([Batch(queue, 0, [Resumed(sequence, 0)]) for queue in (first, second)])
    await backend.checkpoint(first, Chunk([], [], {}, None), None)
    for sequence in range(1_200, 1_210):
        await append(backend, second, Resumed(sequence, 0))

    read = []
    while events := await backend.tail(second, len(read), 100):
        read += events

    assert read == [Resumed(sequence, 0) for sequence in range(1, 1_210)]
    assert await backend.tail(second, 1_205, 100) == [Resumed(n, 0) for n in range(1_206, 1_210)]


async def test_more_queues_than_one_statement_holds_are_appended(opened):
    backend = await opened(durability=Durability.PROCESS)
    queue = await new_queue(backend)

    endings = await backend.append([Batch(queue, 0, [Resumed(n, 0)]) for n in range(1, 2_503)])

    assert set(endings) == {Ending.DURABLE}
    assert len(await backend.tail(queue, 0, 10_000)) == 2_502


# One process.

HOLD = """
import asyncio, os, signal, sys
from pathlib import Path
from hq.backends.port import Batch
from hq.backends.sqlite import SqliteBackend
from hq.domain.events import Resumed
from hq.domain.settings import Settings

async def main():
    backend = SqliteBackend(Path(sys.argv[1]))
    await backend.open()
    queue = (await backend.create("jobs", Settings())).number
    for sequence in range(1, 51):
        [ending] = await backend.append([Batch(queue, 0, [Resumed(sequence, 0)])])
    print(ending.value, flush=True)
    if sys.argv[2] == "die":
        os.kill(os.getpid(), signal.SIGKILL)
    sys.stdin.read()
    await backend.close()

asyncio.run(main())
"""


def start(path, how):
    """Another process on the file, once it has appended."""
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(path), how], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout.readline() == "durable\n"
    return process


async def test_a_second_process_is_refused_and_told_of_the_first(opened, path):
    process = await anyio.to_thread.run_sync(start, path, "hold")
    try:
        with pytest.raises(DatabaseInUse, match=str(process.pid)):
            await opened()
    finally:
        await anyio.to_thread.run_sync(process.communicate)

    assert len(await (await opened()).queues()) == 1


async def test_a_second_backend_of_the_same_process_is_refused_too(opened):
    await opened()

    with pytest.raises(DatabaseInUse, match=str(os.getpid())):
        await opened()


async def test_what_was_told_durable_is_there_after_the_process_was_killed(opened, path):
    process = await anyio.to_thread.run_sync(start, path, "die")
    await anyio.to_thread.run_sync(process.communicate)
    assert process.returncode == -signal.SIGKILL

    backend = await opened()

    [queue] = await backend.queues()
    assert await backend.tail(queue.number, 0, 100) == [Resumed(n, 0) for n in range(1, 51)]


# What is told when a file is unwell.


async def test_a_file_that_is_no_database_is_told_and_left_alone(opened, path):
    path.write_bytes(b"certainly no database" * 1_000)

    with pytest.raises(DatabaseCorrupt):
        await opened()

    assert path.read_bytes() == b"certainly no database" * 1_000


async def test_a_missing_folder_is_told(tmp_path):
    with pytest.raises(DatabaseMissing, match="make it first"):
        await SqliteBackend(tmp_path / "nowhere" / "hq.db").open()


async def test_a_folder_in_the_place_of_the_file_is_told(path):
    path.mkdir()

    with pytest.raises(DatabaseReadOnly):
        await SqliteBackend(path).open()


# Root may write anywhere, so it becomes nobody; only then, for nobody may not be allowed to read this Python.
OPEN = """
import os, sys
import anyio
from hq.backends.sqlite import SqliteBackend
from hq.errors import DatabaseReadOnly

async def main(folder):
    if os.getuid() == 0:
        os.setuid(65534)
    assert os.listdir(folder) == []
    try:
        await SqliteBackend(folder + "/hq.db").open()
    except DatabaseReadOnly as error:
        print(error)

anyio.run(main, sys.argv[1])
"""


def test_a_folder_that_cannot_be_written_is_told():
    # Not below tmp_path, which others may not enter.
    with TemporaryDirectory() as folder:
        Path(folder).chmod(0o555)
        told = subprocess.run(
            [sys.executable, "-c", OPEN, folder], capture_output=True, text=True, timeout=60, check=False
        )

    assert (told.returncode, told.stderr) == (0, "")
    assert "hq.db cannot be written (Permission denied)" in told.stdout


async def test_a_file_another_program_has_locked_is_told(opened, path):
    await (await opened()).close()
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")

    with pytest.raises(DatabaseLocked):
        await opened(limits=Limits(busy_ms=1))

    other.close()


async def test_an_append_that_another_program_blocks_is_refused(opened, path):
    backend = await opened(limits=Limits(busy_ms=1))
    queue = await new_queue(backend)
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")

    assert await append(backend, queue, Resumed(1, 0)) is Ending.REFUSED
    other.execute("ROLLBACK")
    other.close()
    assert await append(backend, queue, Resumed(1, 0)) is Ending.DURABLE


async def test_a_full_store_refuses_and_goes_on_when_there_is_room(opened):
    backend = await opened(limits=Limits(max_bytes=1 << 19))
    queue = await new_queue(backend)
    large = replace(EVENTS[0], sequence=1, payload=bytes(1 << 20))

    assert await append(backend, queue, large) is Ending.REFUSED
    assert await backend.tail(queue, 0, 10) == []
    assert await append(backend, queue, Resumed(1, 0)) is Ending.DURABLE
    await backend.close()

    backend = await opened()
    assert await append(backend, queue, replace(large, sequence=2)) is Ending.DURABLE
    assert await backend.tail(queue, 1, 10) == [replace(large, sequence=2)]


async def test_a_database_of_a_newer_hq_is_not_touched(opened, change):
    await (await opened()).close()
    change("UPDATE alembic_version SET version_num = '9999'")

    with pytest.raises(SchemaTooNew, match="9999"):
        await opened()

    change("UPDATE alembic_version SET version_num = ?", REVISION)
    await opened()


async def test_a_batch_that_cannot_be_written_down_does_not_take_its_neighbours_with_it(opened):
    backend = await opened()
    first, second = await new_queue(backend, "a"), await new_queue(backend, "b")
    unwritable = replace(EVENTS[0], sequence=1, at=1 << 70)

    endings = await backend.append([Batch(first, 0, [unwritable]), Batch(second, 0, [Resumed(1, 0)])])

    assert endings == [Ending.REFUSED, Ending.DURABLE]


# Damage.


async def test_a_damaged_journal_row_stops_its_queue_alone(opened, change):
    backend = await opened()
    first, second = await new_queue(backend, "a"), await new_queue(backend, "b")
    for queue in (first, second):
        await append(backend, queue, *EVENTS[:3])
    change("UPDATE journal SET body = substr(body, 1, length(body) - 1) WHERE queue = ?", first)

    with pytest.raises(JournalDamaged):
        await backend.tail(first, 0, 10)
    assert await backend.tail(second, 0, 10) == EVENTS[:3]


async def test_a_missing_journal_row_after_the_mark_is_told(opened, change):
    backend = await opened()
    queue = await new_queue(backend)
    for sequence in (1, 2, 3):
        await append(backend, queue, Resumed(sequence, 0))
    change("DELETE FROM journal WHERE first = 2")

    with pytest.raises(JournalDamaged, match="2"):
        await backend.tail(queue, 0, 10)


async def test_a_damaged_payload_is_told_and_its_neighbours_are_served(opened, change):
    backend = await opened()
    queue = await new_queue(backend)
    await backend.checkpoint(queue, Chunk([row(1), row(2)], [], {}, None), None)
    change("UPDATE messages SET payload = x'00' WHERE sequence = 1")

    with pytest.raises(RowDamaged, match="message 1"):
        await backend.fetch(queue, [RowOf(1)])
    [found] = await backend.fetch(queue, [RowOf(2)])
    assert columns(found) == columns(row(2))


async def test_a_damaged_snapshot_is_told(opened, change):
    backend = await opened()
    queue = await new_queue(backend)
    await backend.checkpoint(queue, Chunk([], [], {}, SNAPSHOT), None)
    change("UPDATE checkpoints SET snapshot = x'00'")

    with pytest.raises(SnapshotDamaged):
        await backend.load(queue)


# Cancellation and deadlines.


async def test_a_cancelled_append_is_not_torn(opened):
    backend = await opened()
    queue = await new_queue(backend)
    endings = []

    async def send():
        endings.append(await append(backend, queue, Resumed(1, 0)))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(send)
        await anyio.lowlevel.checkpoint()
        tasks.cancel_scope.cancel()

    written = await backend.tail(queue, 0, 10)
    assert written == ([Resumed(1, 0)] if endings == [Ending.DURABLE] else [])
    assert await append(backend, queue, Resumed(len(written) + 1, 0)) is Ending.DURABLE


async def patiently(call, *arguments):
    """The answer, however often storage is too slow to give it."""
    for _ in range(1_000):
        try:
            return await call(*arguments)
        except StorageTimeout:
            continue
    return None


async def test_an_append_that_outlasts_its_deadline_is_unknown_and_found_by_the_next_load(opened, path):
    backend = await opened(limits=Limits(deadline_s=0.05, busy_ms=60_000))
    queue = await new_queue(backend)
    other = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    other.execute("BEGIN IMMEDIATE")

    assert await append(backend, queue, Resumed(1, 0)) is Ending.UNKNOWN
    assert await append(backend, queue, Resumed(1, 0)) is Ending.REFUSED, "its fence cannot be read yet"

    other.execute("ROLLBACK")
    other.close()
    assert await patiently(backend.load, queue)
    assert await backend.tail(queue, 0, 10) == [Resumed(1, 0)]
    assert await append(backend, queue, Resumed(1, 0)) is Ending.NOT_OWNER
    assert await append(backend, queue, Resumed(2, 0)) is Ending.DURABLE
