"""The journal of a Postgres database, read where it is stored: no row is passed over."""

import asyncio
import tempfile
import threading
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from urllib.parse import urlsplit
from uuid import uuid4

import asyncpg
import pytest

import hq
from hq.backends.codec import encode_events
from hq.backends.postgres.schema import Schema
from hq.domain.events import Resumed
from pyspark_hq.errors import DataLost, HqError, OptionInvalid, Refused, Unreachable
from pyspark_hq.options import Options
from pyspark_hq.stores import Span, open_store
from tests.postgres.cluster import Cluster

PATIENCE_MS = 5_000


class Admin:
    """A connection beside hq's, for tests without a loop."""

    def __init__(self, url: str) -> None:
        self._runner = asyncio.Runner()
        self._connection = self._runner.run(asyncpg.connect(url))

    def fetch(self, statement: str, *values):
        return self._runner.run(self._connection.fetch(statement, *values))

    def close(self) -> None:
        self._runner.run(self._connection.close())
        self._runner.close()


@pytest.fixture
def admin(postgres_url):
    made = Admin(postgres_url)
    yield made
    made.close()


@pytest.fixture
def stored(postgres_url, postgres_schema):
    """Appends of one message each to a queue of the schema."""

    def enqueue(*payloads, queue="emails"):
        with hq.blocking.open(postgres_url, postgres={"schema": postgres_schema}) as system:
            if queue not in {one.name for one in system.queues()}:
                system.create_queue(queue)
            for payload in payloads:
                system.queue(queue).enqueue(payload)

    return enqueue


@pytest.fixture
def options(postgres_url, postgres_schema):
    return Options(url=postgres_url, schema=postgres_schema)


def positions(options, patience_ms=PATIENCE_MS):
    """Those of all events, as a job reads them: bounds first, then up to them."""
    store = open_store(options, patience_ms)
    bounds = store.bounds()
    batches = store.events(Span(bounds.pruned, bounds.last), options.queue, ["position"])
    return [position for batch in batches for position in batch.column("position").to_pylist()]


@contextmanager
def open_append(admin, schema):
    """An append that has its position and is not committed; the end of it is the test's to say."""
    locks, queue = Schema(schema).locks, 1
    admin.fetch("BEGIN")
    admin.fetch(f"SELECT pg_advisory_xact_lock_shared({locks['space']}, {locks['journal']})")
    [(last,)] = admin.fetch(f"SELECT max(last) FROM {schema}.journal WHERE queue = {queue}")
    [(position,)] = admin.fetch(
        f"INSERT INTO {schema}.journal (queue, first, last, epoch, claimed, at, body)"
        " VALUES ($1, $2, $2, 0, 0, 0, $3) RETURNING position",
        queue,
        last + 1,
        encode_events(queue, 0, [Resumed(last + 1, 0)]),
    )
    yield position


@pytest.mark.parametrize("ending", ["COMMIT", "ROLLBACK"])
def test_a_row_that_is_committed_late_is_not_passed_over(
    stored, options, admin, postgres_url, postgres_schema, ending
):
    stored("first")
    watching, read = Admin(postgres_url), []
    with open_append(admin, postgres_schema) as late:
        stored("second", queue="other")
        reader = threading.Thread(target=lambda: read.extend(positions(options)))
        reader.start()
        # Who asks twice whether others still write has seen how far positions go, and waits.
        asked = set()
        while len(asked) < 2 and reader.is_alive():
            asked |= set(
                watching.fetch(
                    "SELECT query_start FROM pg_stat_activity"
                    " WHERE query LIKE '%virtualtransaction%' AND pid <> pg_backend_pid()"
                )
            )
        waited = reader.is_alive()
        admin.fetch(ending)
        reader.join()
    watching.close()

    rows = admin.fetch(f"SELECT position FROM {postgres_schema}.journal ORDER BY 1")
    assert waited
    assert read == [position for (position,) in rows]
    assert (late in read) == (ending == "COMMIT")
    assert max(read) > late


def test_a_connection_that_is_lost_between_pages_is_made_anew(stored, options, admin):
    stored(*["x" * 500_000] * 10)
    store = open_store(options, PATIENCE_MS)
    bounds = store.bounds()
    batches = store.events(Span(0, bounds.last), None, ["position"])
    found = next(batches).column("position").to_pylist()
    admin.fetch("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'hq'")
    rest = [position for batch in batches for position in batch.column("position").to_pylist()]

    assert rest
    assert found + rest == positions(options)


def test_a_user_who_may_only_read_reads(stored, options, admin, postgres_schema):
    stored(*range(3))
    reader = f"reader_{uuid4().hex[:8]}"
    admin.fetch(f"CREATE ROLE {reader} LOGIN")
    admin.fetch(f"GRANT USAGE ON SCHEMA {postgres_schema} TO {reader}")
    for kind in ("TABLES", "SEQUENCES"):
        admin.fetch(f"GRANT SELECT ON ALL {kind} IN SCHEMA {postgres_schema} TO {reader}")
    where = urlsplit(options.url)
    place = f"{reader}@{where.netloc.rpartition('@')[2]}"

    found = positions(replace(options, url=where._replace(netloc=place).geturl()))

    admin.fetch(f"DROP OWNED BY {reader}")
    admin.fetch(f"DROP ROLE {reader}")
    assert found == positions(options)


def test_a_range_that_is_pruned_fails_loudly(stored, options, admin, postgres_schema):
    stored(*range(6))
    admin.fetch(f"DELETE FROM {postgres_schema}.journal WHERE position <= 3")
    admin.fetch(f"UPDATE {postgres_schema}.store SET pruned_to = 3")
    store = open_store(options, PATIENCE_MS)

    with pytest.raises(DataLost, match="is no longer kept; what there is begins at 4"):
        next(store.events(Span(0, store.bounds().last), None, ["position"]))
    assert store.bounds().pruned == 3
    assert positions(options)[0] == 4


def test_a_position_that_was_never_written_is_not_taken_for_pruned(stored, options, admin, postgres_schema):
    stored()
    admin.fetch(f"SELECT nextval('{postgres_schema}.journal_position')")
    stored(1)
    assert open_store(options, PATIENCE_MS).bounds().pruned == 0
    assert min(positions(options)) > 1


def test_what_is_wrong_is_said_in_one_sentence(stored, options, admin, postgres_url, postgres_schema):
    stored(1)

    def told(error, **changed):
        where = Options(**{"url": postgres_url, "schema": postgres_schema, **changed})
        with pytest.raises(error) as said:
            positions(where, patience_ms=1_000)
        return str(said.value)

    missing = f"no_such_{uuid4().hex[:8]}"
    assert "option schema: a schema is named by small letters" in told(OptionInvalid, schema="Bad")
    assert f"schema {missing} is no database of hq" in told(Refused, schema=missing)
    assert "there is no queue 'no-such' in postgresql://" in told(Refused, queue="no-such")
    assert "can be read over http alone" in told(OptionInvalid, table="messages", queue="emails")
    assert "cannot be reached" in told(Unreachable, url="postgresql://me:secret@127.0.0.1:1/hq")
    assert "secret" not in told(Unreachable, url="postgresql://me:secret@127.0.0.1:1/hq")
    assert "does not exist" in told(HqError, url=postgres_url.replace("/hq_test_", "/no_"))
    admin.fetch(f"UPDATE {postgres_schema}.alembic_version SET version_num = '9999'")
    assert "has revision 9999, this hq reads 0003: install the hq that wrote it" in told(HqError)


@pytest.mark.slow
def test_a_standby_is_refused(postgres_schema):
    cluster = Cluster(Path(tempfile.mkdtemp(prefix="hq-standby-")))
    try:
        cluster.make(wal_level="replica")
        cluster.stop("fast")
        (cluster.folder / "standby.signal").touch()
        cluster.start()
        with pytest.raises(Refused, match="is on a standby, which cannot tell what is still being written"):
            open_store(Options(url=cluster.url()), PATIENCE_MS).bounds()
    finally:
        cluster.remove()
