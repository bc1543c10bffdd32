"""A message that is enqueued in an application's transaction comes when that commits, only then, and once."""

import subprocess
import sys
from contextlib import asynccontextmanager
from uuid import UUID, uuid4

import anyio
import asyncpg
import pytest

import hq
from hq.actors.limits import Limits
from hq.actors.node import Node
from hq.domain.commands import Browse, Complete, Count, Receive
from hq.domain.messages import Options
from hq.domain.settings import Backoff, Rate, RetryPolicy, Settings
from hq.domain.tasks import Scope
from hq.errors import InvalidInput, QueueNotFound
from tests.postgres.applications import APPLICATIONS, RolledBackError, asyncpg_connection, message

WAIT_MS = 10_000


@pytest.fixture
def apply(postgres_url):
    """Commits calls of enqueue in one transaction of an application."""
    return lambda *calls: asyncpg_connection(postgres_url, *calls)


@pytest.fixture
def put(postgres_schema):
    """A call of enqueue for the schema of this test."""
    return lambda payload=b"work", queue="jobs", **options: message(
        queue, payload, schema=postgres_schema, **options
    )


@pytest.fixture
async def node(opened):
    async with Node(await opened()) as node:
        yield node


async def received(node, limit=1, queue="jobs"):
    """So many messages, waited for."""
    deliveries = []
    with anyio.fail_after(WAIT_MS / 1_000):
        while len(deliveries) < limit:
            deliveries += await node.receive(queue, Receive(limit - len(deliveries)), WAIT_MS)
    return deliveries


async def reach(node, queue="jobs", **counts):
    """Return when the queue's stats say this."""
    with anyio.fail_after(WAIT_MS / 1_000):
        while True:
            stats = await node.ask(queue, Count())
            if {name: getattr(stats, name) for name in counts} == counts:
                return


@pytest.mark.parametrize("application", APPLICATIONS.values(), ids=APPLICATIONS)
async def test_what_is_committed_comes_with_its_options(node, put, postgres_url, application):
    await node.create("jobs", Settings())
    calls = [put({"to": "Grüße 😀"}), put("more urgent", priority=5, headers={"a": "b"}, max_attempts=2)]

    tickets = await application(postgres_url, *calls)

    await reach(node, ready=2)
    urgent, plain = await received(node, 2)
    assert (urgent.payload, urgent.options.content_type) == (b"more urgent", "text/plain; charset=utf-8")
    assert (urgent.options.priority, urgent.options.max_attempts) == (5, 2)
    assert dict(urgent.options.headers) == {"a": "b", "hq-ticket": tickets[1]}
    assert plain.payload == '{"to":"Grüße 😀"}'.encode()
    assert dict(plain.options.headers) == {"hq-ticket": tickets[0]}


@pytest.mark.parametrize("application", APPLICATIONS.values(), ids=APPLICATIONS)
async def test_what_is_rolled_back_leaves_nothing(node, apply, put, admin, table, postgres_url, application):
    await node.create("jobs", Settings())
    with pytest.raises(RolledBackError):
        await application(postgres_url, put(b"never"), commit=False)

    await apply(put(b"after it"))

    assert [delivery.payload for delivery in await received(node)] == [b"after it"]
    assert (await node.ask("jobs", Count())).enqueued == 1
    assert await admin.fetchval(f"SELECT count(*) FROM {table('inbox')}") == 0


@pytest.mark.parametrize("application", APPLICATIONS.values(), ids=APPLICATIONS)
async def test_an_unknown_queue_ends_the_transaction(node, put, postgres_url, application):
    await node.create("jobs", Settings())

    with pytest.raises(QueueNotFound, match="there is no queue called nowhere"):
        await application(postgres_url, put(b"with it"), put(queue="nowhere"))

    assert (await node.ask("jobs", Count())).inbox == 0


async def test_nothing_is_seen_before_the_commit_and_nobody_waits_for_it(node, apply, put, postgres_url):
    await node.create("jobs", Settings())
    connection = await asyncpg.connect(postgres_url)
    async with connection.transaction():
        await put(b"first")(connection)
        await apply(put(b"second"))
        assert [delivery.payload for delivery in await received(node)] == [b"second"]
    await connection.close()

    assert [delivery.payload for delivery in await received(node)] == [b"first"]


async def test_every_option_arrives_as_it_was_said(node, apply, put):
    await node.create("jobs", Settings())
    said = {
        "content_type": "image/png", "priority": -3, "concurrency_key": "k", "dedup_key": "d", "dedup_ms": 5,
        "delay_ms": 1, "ttl_ms": 60_000, "max_attempts": 7, "lease_ms": 9_000, "result_ms": 11,
        "retry": RetryPolicy(Backoff.LINEAR, 5, 3, 10, 0),
    }  # fmt: skip

    [ticket] = await apply(put(**said, headers={"x": "\\u0000"}))
    [delivery] = await received(node)

    assert delivery.options == Options(**said, headers=(("x", "\\u0000"), ("hq-ticket", ticket)))


async def test_order_within_a_queue_is_that_of_the_inbox(node, apply, put):
    await node.create("jobs", Settings())

    await apply(*[put(str(number)) for number in range(50)])

    deliveries = await received(node, 50)
    assert [delivery.payload for delivery in deliveries] == [b"%d" % number for number in range(50)]


async def test_a_duplicate_is_taken_out_and_told(node, apply, put):
    await node.create("jobs", Settings())
    await apply(put(dedup_key="once"))
    [first] = await received(node)

    [ticket] = await apply(put(dedup_key="once"))
    await reach(node, inbox=0)

    assert (await node.ask("jobs", Count())).enqueued == 1
    told = [event for entry in await node.journal(0, 100) for event in entry.events]
    [event] = [event for event in told if type(event).__name__ == "Duplicated"]
    assert (event.message, event.ticket) == (first.message, ticket)


async def test_a_full_queue_leaves_them_in_the_inbox_in_their_order(node, apply, put):
    await node.create("jobs", Settings(capacity=1))
    await apply(put(b"1"), put(b"2"), put(b"3"))
    await reach(node, ready=1, inbox=2)

    for expected in (b"1", b"2", b"3"):
        [delivery] = await received(node)
        assert delivery.payload == expected
        await node.ask("jobs", Complete(delivery.message, delivery.token))
    assert (await node.ask("jobs", Count())).inbox == 0


async def test_a_rate_lets_them_in_one_by_one(node, apply, put):
    await node.create("jobs", Settings(enqueue_rate=Rate(20)))

    await apply(put(b"1"), put(b"2"), put(b"3"))

    assert [delivery.payload for delivery in await received(node, 3)] == [b"1", b"2", b"3"]


async def test_a_full_queue_holds_back_no_other(node, apply, put):
    await node.create("jobs", Settings(capacity=1))
    await node.create("other", Settings())

    await apply(*[put(b"too many")] * 3, put(b"through", queue="other"))

    assert [delivery.payload for delivery in await received(node, queue="other")] == [b"through"]


async def test_a_sleeping_queue_is_woken(opened, apply, put):
    async with Node(await opened(), limits=Limits(idle_ms=1)) as node:
        await node.create("jobs", Settings())
        await node.ask("jobs", Count())
        with anyio.fail_after(10):
            while node.directory.awake():
                await anyio.lowlevel.checkpoint()

        await apply(put(b"wake up"))

        with anyio.fail_after(10):
            while not node.directory.awake():
                await anyio.lowlevel.checkpoint()
        assert [delivery.payload for delivery in await received(node)] == [b"wake up"]


async def test_what_was_committed_while_nobody_served_comes_later(opened, apply, put):
    backend = await opened()
    await backend.create("jobs", Settings())
    await backend.close()

    await apply(put(b"early"))

    async with Node(await opened()) as node:
        assert [delivery.payload for delivery in await received(node)] == [b"early"]


@pytest.mark.parametrize(
    ("payload", "options", "reason"),
    [
        (b"large", {}, "payload_too_large"),
        (b"x", '{"priority": 99999}', "invalid_input"),
        (b"x", '{"delay_ms": "soon"}', "invalid_input"),
        (b"x", '{"retry": {"bakcoff": "fixed"}}', "invalid_input"),
        (b"x", '{"headers": {"a": 1}}', "invalid_input"),
        (b"x", '{"group": "a", "concurrency_key": "b"}', "invalid_input"),
        (b"x", f'{{"delay_ms": 1{"0" * 400}}}', "invalid_input"),
        (b"x", f'{{"headers": {"[" * 3_000}{"]" * 3_000}}}', "invalid_input"),
    ],
)
async def test_what_no_queue_could_take_becomes_a_dead_letter(node, admin, table, payload, options, reason):
    await node.create("jobs", Settings(max_payload_bytes=4))

    ticket = await admin.fetchval(
        f"SELECT {table('enqueue')}('jobs', $1::bytea, $2::text::jsonb)", payload, options or "{}"
    )

    await reach(node, failed=1, inbox=0)
    [seen] = await node.ask("jobs", Browse(Scope.FAILED))
    assert (seen.message.reason, seen.message.payload) == (reason, payload)
    assert dict(seen.message.options.headers) == {"hq-ticket": ticket}


@pytest.mark.parametrize(
    ("call", "code"),
    [
        ("'nowhere', 'x'::bytea", "HQ001"),
        ("NULL, 'x'::bytea", "HQ001"),
        ("'jobs', NULL::bytea", "HQ002"),
        ("'jobs', 'x'::bytea, '[]'", "HQ002"),
        ("'jobs', 'x'::bytea, '{\"prioritty\": 1}'", "HQ002"),
        ("'jobs', 'x'::text, 'true'", "HQ002"),
        ("'jobs', 'x'::bytea, jsonb_build_object('dedup_key', repeat('x', 600000))", "HQ002"),
        ("'jobs', convert_to(repeat('x', 67108865), 'UTF8')", "HQ003"),
    ],
)
async def test_the_sql_function_refuses_what_it_can_tell(node, admin, table, call, code):
    await node.create("jobs", Settings())

    with pytest.raises(asyncpg.PostgresError) as refused:
        await admin.fetchval(f"SELECT {table('enqueue')}({call})")

    assert refused.value.sqlstate == code


async def test_the_sql_function_takes_json_text_and_bytes(node, admin, table):
    await node.create("jobs", Settings())

    function = table("enqueue")
    tickets = [
        await admin.fetchval(f"SELECT {function}('jobs', {call})")
        for call in (
            "jsonb_build_object('a', 1)",
            "'a literal', NULL",
            "'\\x00ff'::bytea, '{\"content_type\": \"image/png\"}'",
            "payload => 'named'::text, options => '{\"delay_ms\": 1}'",
        )
    ]

    assert [
        (delivery.payload, delivery.options.content_type) for delivery in await received(node, len(tickets))
    ] == [
        (b'{"a": 1}', "application/json"),
        (b"a literal", "text/plain; charset=utf-8"),
        (b"\x00\xff", "image/png"),
        (b"named", "text/plain; charset=utf-8"),
    ]
    assert len({UUID(ticket) for ticket in tickets}) == len(tickets)


@asynccontextmanager
async def as_role(admin, url, schema, *grants):
    """A connection as a role of an application, with only these rights."""
    role = f"app_{uuid4().hex}"
    await admin.execute(f"CREATE ROLE {role}; GRANT USAGE ON SCHEMA {schema} TO {role}")
    for grant in grants:
        await admin.execute(f"GRANT {grant} TO {role}")
    connection = await asyncpg.connect(url)
    try:
        await connection.execute(f"SET ROLE {role}")
        yield connection
    finally:
        await connection.close()
        await admin.execute(f"DROP OWNED BY {role}; DROP ROLE {role}")


async def test_a_role_needs_no_more_than_to_execute_the_function(
    node, put, admin, postgres_url, postgres_schema, table
):
    await node.create("jobs", Settings())
    execute = f"EXECUTE ON FUNCTION {table('enqueue')}(text, bytea, jsonb)"

    async with as_role(admin, postgres_url, postgres_schema, execute) as connection:
        with pytest.raises(asyncpg.InsufficientPrivilegeError):
            await connection.fetchval(f"SELECT count(*) FROM {table('inbox')}")
        await put(b"allowed")(connection)

    assert [delivery.payload for delivery in await received(node)] == [b"allowed"]


async def test_the_function_is_not_led_astray_by_a_search_path(node, put, admin, postgres_schema):
    await node.create("jobs", Settings())
    await admin.execute(
        f"CREATE FUNCTION {postgres_schema}.gen_random_uuid() RETURNS uuid LANGUAGE sql"
        " AS $$ SELECT '00000000-0000-0000-0000-000000000000'::uuid $$;"
        f" SET search_path = {postgres_schema}, pg_catalog"
    )
    assert (await admin.fetchval("SELECT gen_random_uuid()")).int == 0

    assert UUID(await put()(admin)).int != 0


async def test_a_role_that_was_granted_nothing_may_not(node, put, admin, postgres_url, postgres_schema):
    await node.create("jobs", Settings())

    async with as_role(admin, postgres_url, postgres_schema) as connection:
        with pytest.raises(asyncpg.InsufficientPrivilegeError):
            await put()(connection)


@pytest.mark.parametrize(
    "call",
    [
        {"payload": float("nan")},
        {"prioritty": 1},
        {"priority": 1 << 20},
        {"headers": {"hq-ticket": "mine"}},
        {"headers": {f"h{number}": "" for number in range(64)}},
        {"headers": {"a": "nul \0"}},
        {"dedup_key": "nul \0"},
        {"group": "\ud800"},
        {"queue": "nul \0"},
    ],
)
async def test_what_is_wrong_is_told_before_anything_is_sent(node, put, admin, call):
    await node.create("jobs", Settings())

    async with admin.transaction():
        with pytest.raises(InvalidInput):
            await put(**call)(admin)
        assert await admin.fetchval("SELECT 1") == 1, "the transaction goes on"


async def test_what_is_no_connection_is_told(put):
    with pytest.raises(InvalidInput, match="not by a str"):
        put()("postgresql://")


UNUSED = """
import sys
import hq
try:
    hq.transactional.enqueue(object(), "jobs", b"work")
except hq.InvalidInput:
    print(sorted({"asyncpg", "psycopg"} & set(sys.modules)))
"""


def test_a_library_that_the_application_does_not_use_is_not_imported():
    ran = subprocess.run(
        [sys.executable, "-c", UNUSED], capture_output=True, text=True, timeout=60, check=True
    )

    assert ran.stdout == "[]\n"


async def test_the_stats_of_a_system_have_the_inbox(postgres_url):
    async with hq.open(postgres_url) as system:
        queue = await system.create_queue("inboxed", capacity=1)
        await queue.enqueue("fills it")
        await asyncpg_connection(postgres_url, message("inboxed", "waits"))

        with anyio.fail_after(10):
            while (await queue.stats()).inbox != 1:
                await anyio.lowlevel.checkpoint()
        await system.delete_queue("inboxed")
