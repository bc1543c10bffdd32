"""The inbox: read in turns, and left by a row when, and only when, its events are written."""

import anyio
import pytest

from hq.actors.node import Node
from hq.backends.port import Batch, Ending, Retention
from hq.backends.postgres import Limits
from hq.backends.postgres.inbox import PAGE_BYTES, QUEUES, ROWS
from hq.backends.postgres.migrate import printed
from hq.backends.postgres.schema import Schema
from hq.domain.commands import Count, Enqueue, Receive
from hq.domain.events import Claimed, Resumed
from hq.domain.settings import Settings
from hq.errors import HQError
from tests.postgres.applications import asyncpg_connection, message
from tests.postgres.test_faults import FAIL, blocked, new_queue, terminate_all


@pytest.fixture
def put(admin, table):
    """Puts rows into the inbox, as the function would; of which queues."""

    async def put_them(*queues, payload=b"work"):
        await admin.executemany(
            f"INSERT INTO {table('inbox')} (queue, ticket, payload, options) VALUES ($1, '', $2, '{{}}')",
            [(queue, payload) for queue in queues],
        )

    return put_them


@pytest.fixture
def left(admin, table):
    """The queues of the rows that are in the inbox."""

    async def read():
        rows = await admin.fetch(f"SELECT queue FROM {table('inbox')} ORDER BY id")
        return [row["queue"] for row in rows]

    return read


async def ids(backend):
    return [row.id for row in await backend.inbox([])]


@pytest.mark.parametrize("prepared", [True, False])
async def test_rows_leave_with_the_events_that_deal_with_them(opened, put, left, prepared):
    backend = await opened(prepared=prepared)
    queue = await new_queue(backend)
    await put(queue, queue, queue)
    first, second, third = await ids(backend)

    ending = await backend.append([Batch(queue, 0, [Resumed(1, 0)], [first, third])])

    assert ending == [Ending.DURABLE]
    assert await ids(backend) == [second]


async def test_rows_of_a_batch_that_is_not_written_stay(opened, put, left):
    backend = await opened()
    good, bad = await new_queue(backend, "good"), await new_queue(backend, "bad")
    await put(good, bad)
    of_good, of_bad = await ids(backend)

    endings = await backend.append(
        [Batch(good, 0, [Resumed(1, 0)], [of_good]), Batch(bad, 0, [Resumed(7, 0)], [of_bad])]
    )

    assert endings == [Ending.DURABLE, Ending.NOT_OWNER]
    assert await left() == [bad]


async def test_a_batch_of_whose_rows_one_is_gone_is_not_written(opened, put, left):
    backend = await opened()
    queue, other = await new_queue(backend), await new_queue(backend, "other")
    await put(queue, queue, other)
    first, second, third = await ids(backend)
    assert await backend.append([Batch(queue, 0, [Resumed(1, 0)], [first])]) == [Ending.DURABLE]

    endings = await backend.append(
        [Batch(queue, 0, [Resumed(2, 0)], [first, second]), Batch(other, 0, [Resumed(1, 0)], [third])]
    )

    assert endings == [Ending.NOT_OWNER, Ending.DURABLE], "of its neighbour all are there"
    assert await backend.tail(queue, 0, 10) == [Resumed(1, 0)]
    assert await left() == [queue]


async def test_a_former_owner_takes_nothing(opened, put, left):
    first = await opened()
    queue = await new_queue(first)
    await first.append([Batch(queue, 1, [Claimed(1, 0, 1)])])
    await put(queue)
    [row] = await ids(first)
    await first.ownership.fall_silent()
    second = await opened()
    await second.load(queue)
    assert await second.append([Batch(queue, 2, [Claimed(2, 0, 2)])]) == [Ending.DURABLE]

    assert await first.append([Batch(queue, 1, [Resumed(3, 0)], [row])]) == [Ending.NOT_OWNER]
    assert await first.inbox([]) == [], "it may have lapsed, and does not even look"
    assert await second.append([Batch(queue, 2, [Resumed(3, 0)], [row])]) == [Ending.DURABLE]
    assert await left() == []


async def test_a_page_has_the_first_rows_of_every_queue_but_the_busy_ones(opened, put):
    backend = await opened()
    await put(*[1] * (ROWS + 5), 2, 3)

    rows = await backend.inbox([3])

    assert [row.queue for row in rows] == [1] * ROWS + [2]
    assert [row.id for row in rows] == sorted(row.id for row in rows)


async def test_every_queue_has_its_turn(opened, put):
    backend = await opened()
    await put(*range(1, 2 * QUEUES + 2))

    turns = [{row.queue for row in await backend.inbox([])} for _ in range(4)]

    assert [len(turn) for turn in turns] == [QUEUES, QUEUES, 1, QUEUES]
    assert set.union(*turns[:3]) == set(range(1, 2 * QUEUES + 2))


async def test_a_page_is_no_larger_than_its_bound_but_for_one_row(opened, put):
    backend = await opened()
    await put(1, 1, payload=bytes(PAGE_BYTES // 2 + 1))
    await put(2, payload=bytes(PAGE_BYTES + 1))

    assert [row.queue for row in await backend.inbox([])] == [1]
    assert [row.queue for row in await backend.inbox([1])] == [2]


async def test_what_a_dropped_queue_had_in_the_inbox_is_pruned(opened, put, left):
    backend = await opened()
    dropped, kept = await new_queue(backend, "dropped"), await new_queue(backend, "kept")
    await put(dropped, kept, dropped)
    await backend.drop(dropped)

    while await backend.prune(0, Retention(1 << 60, 1 << 60), 1):
        pass

    assert await left() == [kept]


def test_the_printed_migration_has_the_function():
    printed_once = printed(Schema("other"))

    assert 'CREATE FUNCTION "other".enqueue' in printed_once
    assert 'REVOKE ALL ON FUNCTION "other".enqueue(text, bytea, jsonb) FROM PUBLIC' in printed_once
    assert "hq." not in printed_once


# Through a whole node.


@pytest.fixture
def commit(postgres_url, postgres_schema):
    """Enqueues payloads in one transaction of an application."""
    return lambda *payloads: asyncpg_connection(
        postgres_url, *[message("jobs", payload, schema=postgres_schema) for payload in payloads]
    )


async def all_taken(node, count):
    """The payloads of the queue once so many, at least, were taken in and none is left."""
    with anyio.fail_after(20):
        while True:
            try:
                stats = await node.ask("jobs", Count())
            except HQError:
                continue
            if stats.enqueued >= count and not stats.inbox:
                break
    return [one.payload for one in await node.receive("jobs", Receive(100), 0)]


@pytest.mark.parametrize("code", ["57P01", "53100", "XX000"])
async def test_appends_that_fail_or_whose_outcome_is_unknown_lose_and_double_nothing(
    opened, commit, admin, table, postgres_schema, code
):
    async with Node(await opened()) as node:
        await node.create("jobs", Settings())
        await node.ask("jobs", Enqueue(b"0"))
        await admin.execute(f"CREATE SEQUENCE {table('failures')}")
        await admin.execute(FAIL.format(schema=postgres_schema, times=3, code=code))
        await admin.execute(
            f"CREATE TRIGGER fails BEFORE INSERT ON {table('journal')} FOR EACH ROW"
            f" EXECUTE FUNCTION {table('fail')}()"
        )

        await commit(b"1", b"2", b"3")

        assert await all_taken(node, 4) == [b"0", b"1", b"2", b"3"]
        assert await admin.fetchval(f"SELECT last_value FROM {table('failures')}") > 3


async def test_an_append_that_commits_after_it_was_given_up_has_taken_its_rows_once(
    opened, commit, admin, table
):
    async with Node(await opened(limits=Limits(deadline_s=0.3))) as node:
        await node.create("jobs", Settings())
        await node.ask("jobs", Enqueue(b"0"))
        async with admin.transaction():
            await admin.execute(f"LOCK TABLE {table('journal')} IN EXCLUSIVE MODE")
            await commit(b"1", b"2")
            await blocked(admin)
            await given_up(admin)

        assert await all_taken(node, 3) == [b"0", b"1", b"2"]


async def given_up(admin):
    """Return when hq has given a blocked append up, and the next one is blocked as well."""
    waiting = (
        "SELECT count(*) FROM pg_locks WHERE NOT granted AND database ="
        " (SELECT oid FROM pg_database WHERE datname = current_database())"
    )
    with anyio.fail_after(10):
        while await admin.fetchval(waiting) < 2:
            await anyio.lowlevel.checkpoint()


async def test_connections_that_are_ended_lose_and_double_nothing(opened, commit, admin):
    async with Node(await opened()) as node:
        await node.create("jobs", Settings())
        await node.ask("jobs", Enqueue(b"0"))

        for number in range(1, 21):
            await commit(b"%d" % number)
            await terminate_all(admin)

        assert await all_taken(node, 21) == [b"%d" % number for number in range(21)]


async def test_a_node_that_takes_over_takes_what_the_former_has_not(opened, commit):
    first = await opened()
    async with Node(first) as stopped:
        await stopped.create("jobs", Settings())
        await commit(b"1")
        [delivery] = await stopped.receive("jobs", Receive(), 5_000)
        assert delivery.payload == b"1"
        await first.ownership.fall_silent()

        async with Node(await opened()) as node:
            await commit(b"2", b"3")
            assert await all_taken(node, 3) == [b"2", b"3"]
