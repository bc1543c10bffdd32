"""Connections that end, servers that restart, statements that fail: told truly, and healed."""

from contextlib import asynccontextmanager

import anyio
import asyncpg
import pytest

from hq.actors.limits import Limits as ActorLimits
from hq.actors.node import Node
from hq.backends.port import Batch, Ending
from hq.backends.postgres import Limits
from hq.backends.postgres.schema import Schema
from hq.domain.checkpoint import Chunk
from hq.domain.events import Claimed, Resumed
from hq.domain.settings import Settings
from hq.errors import DatabaseReadOnly, StorageError
from tests.backends.samples import row
from tests.postgres.work import Work

ENDED, BETWEEN_S = 40, 0.06
TERMINATE = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'hq'"


async def terminate_all(admin):
    await admin.fetch(f"{TERMINATE} AND datname = current_database()")


async def new_queue(backend, name="jobs"):
    return (await backend.create(name, Settings())).number


async def test_idle_connections_that_were_ended_are_replaced(opened, admin):
    backend = await opened()
    queue = await new_queue(backend)
    await backend.append([Batch(queue, 0, [Resumed(1, 0)])])
    await terminate_all(admin)

    [ending] = await backend.append([Batch(queue, 0, [Resumed(2, 0)])])

    assert ending in {Ending.DURABLE, Ending.UNKNOWN}, "it may be noticed only when it is sent"
    with anyio.fail_after(2):
        await eventually(backend.queues)
        await eventually(backend.load, queue)
    written = await backend.tail(queue, 0, 10)
    assert written == [Resumed(1, 0), Resumed(2, 0)][: len(written)]
    assert len(written) == 2 or ending is Ending.UNKNOWN


async def eventually(call, *arguments):
    """The answer, however often the connection was just lost."""
    while True:
        try:
            return await call(*arguments)
        except StorageError:
            await anyio.lowlevel.checkpoint()


async def test_an_append_whose_connection_is_ended_while_it_runs_is_unknown(opened, admin, table):
    backend = await opened()
    queue = await new_queue(backend)
    endings = []

    async def send():
        endings.extend(await backend.append([Batch(queue, 0, [Resumed(1, 0)])]))

    async with admin.transaction():
        await admin.execute(f"LOCK TABLE {table('journal')} IN EXCLUSIVE MODE")
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(send)
            await blocked(admin)
            await terminate_all(admin)

    assert endings == [Ending.UNKNOWN]
    await eventually(backend.load, queue)
    assert await backend.append([Batch(queue, 1, [Claimed(1, 0, 1)])]) == [Ending.DURABLE]


async def blocked(admin):
    """Return when a statement of hq waits for a lock."""
    # Not pg_stat_activity: it stays as it was when a transaction first asked.
    waiting = (
        "SELECT count(*) FROM pg_locks WHERE NOT granted AND (transactionid ="
        " pg_current_xact_id_if_assigned()::xid OR database ="
        " (SELECT oid FROM pg_database WHERE datname = current_database()))"
    )
    with anyio.fail_after(10):
        while not await admin.fetchval(waiting):
            await anyio.lowlevel.checkpoint()


async def test_an_append_that_commits_late_after_an_unknown_outcome_is_found_or_fenced(opened, admin, table):
    backend = await opened(limits=Limits(deadline_s=0.3))
    queue = await new_queue(backend)
    async with admin.transaction():
        await admin.execute(f"LOCK TABLE {table('journal')} IN EXCLUSIVE MODE")
        [ending] = await backend.append([Batch(queue, 0, [Resumed(1, 0)])])
    assert ending is Ending.UNKNOWN

    await backend.load(queue)
    written = await backend.tail(queue, 0, 10)
    claim = Claimed(len(written) + 1, 0, 1)
    assert await backend.append([Batch(queue, 1, [claim])]) == [Ending.DURABLE]
    assert await backend.append([Batch(queue, 0, [Resumed(1, 0)])]) == [Ending.NOT_OWNER]
    assert await backend.tail(queue, 0, 10) == [*written, claim]


FAIL = """
CREATE FUNCTION {schema}.fail() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF nextval('{schema}.failures') <= {times} THEN
        RAISE EXCEPTION 'injected' USING ERRCODE = '{code}';
    END IF;
    RETURN NEW;
END $$"""


@pytest.mark.parametrize(
    ("code", "times", "ending"),
    [
        ("40001", 2, Ending.DURABLE),
        ("40P01", 2, Ending.DURABLE),
        ("40001", 1_000, Ending.REFUSED),
        ("53100", 1_000, Ending.REFUSED),
        ("57014", 1_000, Ending.REFUSED),
        ("57P01", 1_000, Ending.UNKNOWN),
        ("XX000", 1_000, Ending.UNKNOWN),
    ],
)
async def test_an_error_of_the_server_ends_an_append_as_the_table_says(
    opened, admin, table, postgres_schema, code, times, ending
):
    backend = await opened()
    queue = await new_queue(backend)
    await admin.execute(f"CREATE SEQUENCE {table('failures')}")
    await admin.execute(FAIL.format(schema=postgres_schema, times=times, code=code))
    await admin.execute(
        f"CREATE TRIGGER fails BEFORE INSERT ON {table('journal')} FOR EACH ROW"
        f" EXECUTE FUNCTION {table('fail')}()"
    )

    assert await backend.append([Batch(queue, 0, [Resumed(1, 0)])]) == [ending]
    expected = [Resumed(1, 0)] if ending is Ending.DURABLE else []
    assert await backend.tail(queue, 0, 10) == expected, "it was written once, or not at all"


async def test_a_statement_that_the_server_gives_up_in_time_is_refused(opened, admin, table):
    async with setting(admin, "statement_timeout", "'200ms'"):
        backend = await opened()
        queue = await new_queue(backend)
        async with admin.transaction():
            await admin.execute(f"LOCK TABLE {table('journal')} IN EXCLUSIVE MODE")
            assert await backend.append([Batch(queue, 0, [Resumed(1, 0)])]) == [Ending.REFUSED]

    assert await backend.tail(queue, 0, 10) == []
    assert await backend.append([Batch(queue, 0, [Resumed(1, 0)])]) == [Ending.DURABLE]


async def test_an_append_that_a_deadlock_is_broken_with_is_tried_again(opened, admin, table, postgres_schema):
    backend = await opened()
    queue = await new_queue(backend)
    locks = Schema(postgres_schema).locks
    endings = []

    async def send():
        endings.extend(await backend.append([Batch(queue, 0, [Resumed(1, 0)])]))

    async with anyio.create_task_group() as tasks:
        transaction = admin.transaction()
        await transaction.start()
        await admin.execute(
            f"INSERT INTO {table('journal')} (queue, first, last, epoch, claimed, at, body)"
            f" VALUES ({queue}, 1, 1, 0, 0, 0, '')"
        )
        tasks.start_soon(send)
        await blocked(admin)
        # hq looks first whether it waits in a circle.
        await admin.execute("SET LOCAL deadlock_timeout = '10s'")
        await admin.execute(f"SELECT pg_advisory_xact_lock({locks['space']}, {locks['journal']})")
        await transaction.rollback()

    assert endings == [Ending.DURABLE]
    assert await backend.tail(queue, 0, 10) == [Resumed(1, 0)]


@asynccontextmanager
async def setting(admin, name, value):
    """A setting of the database for whoever connects meanwhile."""
    database = await admin.fetchval("SELECT current_database()")
    await admin.execute(f"ALTER DATABASE {database} SET {name} = {value}")
    try:
        yield
    finally:
        await admin.execute(f"ALTER DATABASE {database} RESET {name}")


async def test_a_server_that_takes_no_writes_refuses_and_says_why(opened, admin):
    backend = await opened()
    queue = await new_queue(backend)
    async with setting(admin, "default_transaction_read_only", "on"):
        await terminate_all(admin)
        await eventually_read_only(backend)
        assert await backend.append([Batch(queue, 0, [Resumed(1, 0)])]) == [Ending.REFUSED]
    await terminate_all(admin)
    await eventually(backend.load, queue)
    assert await backend.append([Batch(queue, 0, [Resumed(1, 0)])]) == [Ending.DURABLE]


async def eventually_read_only(backend):
    with anyio.fail_after(5):
        while True:
            try:
                await backend.create("other", Settings())
            except DatabaseReadOnly:
                return
            except StorageError:
                await anyio.lowlevel.checkpoint()


async def test_a_checkpoint_ended_at_each_statement_is_whole_or_not_at_all(opened, admin, table):
    backend = await opened()
    queue = await new_queue(backend)
    written = 0
    for number in range(1, 15):
        chunk = Chunk([row(number)], [number - 1], {}, None)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(attempt, backend, queue, chunk)
            for _ in range(number * 3):
                await anyio.lowlevel.checkpoint()
            await terminate_all(admin)
        await eventually(backend.load, queue)
        rows = await admin.fetch(f"SELECT sequence FROM {table('messages')}")
        assert [one["sequence"] for one in rows] in ([], [number - 1], [number], [written])
        written = rows[0]["sequence"] if rows else 0


async def attempt(backend, queue, chunk):
    try:
        await backend.checkpoint(queue, chunk, None)
    except StorageError:
        return


@pytest.mark.slow
async def test_a_node_keeps_its_word_while_its_connections_are_ended_again_and_again(opened, admin):
    backend = await opened()
    limits = ActorLimits(head=5, chunk=5, checkpoint_events=40, loads=1_000)
    with anyio.fail_after(60):
        async with Node(backend, limits=limits) as node:
            await node.create("jobs", Settings(max_attempts=None, lease_ms=200))
            work = Work(node, "jobs")
            async with anyio.create_task_group() as tasks:
                work.start(tasks)
                ended = 0
                while ended < ENDED or len(work.completed) < ENDED:
                    await admin.execute(f"SELECT pg_sleep({BETWEEN_S})")
                    await terminate_all(admin)
                    ended += 1
                work.stopping = True
            await work.drain()


async def test_a_database_without_room_for_connections_is_waited_for(
    opened, admin, postgres_url, postgres_schema
):
    backend = await opened()
    queue = await new_queue(backend)
    name = await admin.fetchval("SELECT current_database()")
    await admin.execute("CREATE ROLE few LOGIN CONNECTION LIMIT 1")
    await admin.execute(f"GRANT ALL ON SCHEMA {postgres_schema} TO few")
    try:
        taken = await asyncpg.connect(postgres_url.replace("postgres@", "few@"))
        with pytest.raises(StorageError, match="53300"):
            await opened(url=postgres_url.replace("postgres@", "few@"), limits=Limits(connect_s=0.3))
        await taken.close()
    finally:
        await admin.execute(f"REVOKE ALL ON SCHEMA {postgres_schema} FROM few")
        await admin.execute("DROP ROLE few")
    assert (name, await backend.append([Batch(queue, 0, [Resumed(1, 0)])])) == (name, [Ending.DURABLE])
