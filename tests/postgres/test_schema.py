"""The schema: made once whoever starts, indexed for every statement that is run often, and kept small."""

import json

import anyio
import pytest
from anyio import to_thread

from hq.backends.codec import encode_events
from hq.backends.postgres import PostgresBackend, Shape
from hq.backends.postgres import statements as sql
from hq.backends.postgres.connections import numbered
from hq.backends.postgres.migrate import printed
from hq.backends.postgres.schema import REVISION, Schema
from hq.domain.checkpoint import Chunk, Snapshot
from hq.domain.events import Resumed
from hq.domain.messages import NO_PRIORITY, Options, State
from hq.domain.settings import Settings
from tests.backends.samples import row

STARTING = 6
FAR = 1 << 61
VALUES = {
    "queue": 1, "rank": NO_PRIORITY, "instant": 0, "sequence": 19_000, "until": FAR, "limit": 10,
    "kind": "group", "name": b"a", "lane_rank": 0, "sequences": [1], "state": "failed", "after": 1,
    "since": 1, "positions": [1], "purged": 1, "now": 1, "up_to": 10_000, "node": "n", "scopes": [b""],
    "keys": [b"k"], "kinds": ["group"], "names": [b"a"], "ranks": [0], "heads": [1], "queues": [1],
    "firsts": [1], "lasts": [1], "epochs": [1], "claims": [0], "times": [0], "bodies": [b""], "space": 1,
    "journal": 1,
}  # fmt: skip
# Of each statement, what its plan reads of the large tables.
PLANS = {
    "APPEND": {"journal_queue_first_key"},
    "SHELF_PAGE": {"messages_by_delivery", "messages_by_lane"},
    "SHELF_NEXT": {"messages_by_delivery"},
    "SHELF_BOUNDS": {"messages_by_delivery"},
    "LANE_PAGE": {"messages_by_lane"},
    "ENDS_PAGE": {"messages_by_end"},
    "ENDS_NEXT": {"messages_by_end"},
    "ROWS_OF": {"messages_pkey"},
    "PAYLOADS_OF": {"messages_pkey"},
    "STATE_PAGE": {"messages_by_state"},
    "DELAYED_AFTER": {"messages_by_time"},
    "LEASES": {"messages_by_state"},
    "KEYS_OF": {"dedup_pkey"},
    "TAIL": {"journal_queue_first_key"},
    "JOURNAL_SIZES": {"journal_pkey"},
    "JOURNAL_ROWS": {"journal_pkey"},
    "OLDEST_JOURNAL": {"journal_pkey"},
    "PRUNE_JOURNAL": {"journal_pkey"},
    "REMOVE_ROWS": {"messages_pkey"},
    "TOUCHED": {"messages_pkey", "messages_by_lane"},
    "MARK_LANES": {"messages_pkey", "messages_by_lane"},
    "REMOVE_KEYS": {"dedup_pkey"},
    "PRUNE_PURGED": {"messages_by_state"},
    "PRUNE_KEYS": {"dedup_by_end"},
}
LARGE = {"messages", "journal", "dedup"}
FILL_JOURNAL = """
    INSERT INTO {journal} (queue, first, last, epoch, claimed, at, body)
    SELECT $1, n, n, 0, 0, n, $2 FROM generate_series(1, 20000) n"""
FILL_KEYS = """
    INSERT INTO {dedup} (queue, scope, key, message, until, live, expires_at, as_of)
    SELECT $1, '', n::text::bytea, n, n, n % 2 = 0, NULL, n FROM generate_series(1, 20000) n"""


@pytest.fixture
async def full(opened, admin, table):
    """A schema with much of everything, as the server's statistics know it."""
    backend = await opened()
    queue = (await backend.create("jobs", Settings())).number
    rows = [row(n, Options(priority=n % 3), expires_at=n if n % 2 else None) for n in range(1, 10_001)]
    rows += [row(n, Options(group=f"g{n % 50}"), place=n) for n in range(10_001, 20_001)]
    rows += [row(n, state=State.FAILED) for n in range(20_001, 25_001)]
    rows += [row(n, state=State.LEASED) for n in range(25_001, 26_001)]
    await backend.checkpoint(queue, Chunk(rows, [], {}, None), None)
    body = encode_events(queue, 0, [Resumed(1, 0)])
    await admin.execute(FILL_JOURNAL.format(journal=table("journal")), queue, body)
    await admin.execute(FILL_KEYS.format(dedup=table("dedup")), queue)
    await admin.execute(f"ANALYZE {table('messages')}, {table('journal')}, {table('dedup')}")
    return queue


async def test_statements_that_are_run_often_read_ranges_of_indexes(full, admin, postgres_schema):
    for name, wanted in PLANS.items():
        statement, names = numbered(getattr(sql, name), Schema(postgres_schema))
        values = [{**VALUES, "queue": full, "queues": [full]}[parameter] for parameter in names]
        custom = await admin.fetchval(f"EXPLAIN (FORMAT JSON) {statement}", *values)
        # After some runs Postgres may settle on a plan for any values.
        await admin.execute(f"SET plan_cache_mode = force_generic_plan; PREPARE often AS {statement}")
        unknown = ", ".join(["NULL"] * len(names))
        generic = await admin.fetchval(f"EXPLAIN (FORMAT JSON) EXECUTE often({unknown})")
        await admin.execute("DEALLOCATE often; RESET plan_cache_mode")

        for plan in (custom, generic):
            steps = list(steps_of(json.loads(plan)[0]["Plan"]))
            walked = {step["Relation Name"] for step in steps if step["Node Type"] == "Seq Scan"}
            assert not walked & LARGE, (name, plan)
            assert wanted <= {step.get("Index Name") for step in steps}, (name, plan)


def steps_of(plan):
    yield plan
    for step in plan.get("Plans", ()):
        yield from steps_of(step)


async def test_of_many_that_start_at_once_one_migrates_and_all_find_the_same(
    postgres_url, postgres_schema, admin
):
    backends = [PostgresBackend(postgres_url, shape=Shape(schema=postgres_schema)) for _ in range(STARTING)]

    with anyio.fail_after(20):
        async with anyio.create_task_group() as tasks:
            for backend in backends:
                tasks.start_soon(backend.migrate)

    revisions = await admin.fetch(f"SELECT version_num FROM {postgres_schema}.alembic_version")
    assert [tuple(one) for one in revisions] == [(REVISION,)]


async def test_what_is_printed_makes_the_same_schema(postgres_url, postgres_schema, opened, admin):
    await admin.execute(await to_thread.run_sync(printed, Schema(postgres_schema)))

    backend = await opened()

    await backend.create("jobs", Settings())
    assert [one.name for one in await backend.queues()] == ["jobs"]


async def test_tables_that_change_are_vacuumed_soon_and_have_room_in_their_pages(
    opened, admin, postgres_schema
):
    await opened()
    found = await admin.fetch(
        "SELECT relname, reloptions FROM pg_class WHERE relnamespace = $1::regnamespace AND relkind = 'r'",
        postgres_schema,
    )
    options = {name: dict(one.split("=") for one in given or ()) for name, given in found}

    for name in ("messages", "dedup", "queues", "checkpoints"):
        assert float(options[name]["autovacuum_vacuum_scale_factor"]) <= 0.02, name
    assert float(options["journal"]["autovacuum_vacuum_scale_factor"]) <= 0.05
    for name in ("messages", "dedup", "queues", "checkpoints", "nodes"):
        assert int(options[name]["fillfactor"]) <= 90, name
    assert "fillfactor" not in options["journal"], "its rows never change"


async def test_a_row_that_is_rewritten_again_and_again_stays_in_its_page(opened, admin, table):
    backend = await opened()
    queue = (await backend.create("jobs", Settings())).number
    for mark in range(200):
        await backend.checkpoint(queue, Chunk([], [], {}, Snapshot(Settings(), sequence=mark)), mark)
    await backend.close()

    for name in ("checkpoints", "queues", "nodes"):
        assert await admin.fetchval("SELECT pg_relation_size($1::regclass)", table(name)) <= 8 * 8_192, name
