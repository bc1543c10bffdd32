"""The journal in the lake: every event once, by the manifest and by a plain look at the directory."""

import pytest

from hq.pipeline.archive import archive, by_spark
from hq.pipeline.store import Place
from tests.pipeline.lakes import lake_at, rows_found, rows_named
from tests.pipeline.marks import spark_test

pytestmark = spark_test

EVENT = ["position", "sequence", "event", "message_id"]


@pytest.fixture
def run(spark, own_server, tmp_path):
    place = Place(own_server.url)

    def once(**options):
        return archive(lake_at(tmp_path / "lake"), place, by_spark(spark, place), **options)

    return once


def test_the_lake_has_every_event_of_a_journal_that_grows(run, own_server, read_from, tmp_path):
    own_server.create("emails")
    own_server.enqueue("emails", range(500))
    first = run(max_rows=200)
    own_server.enqueue("emails", range(300))
    second = run()
    nothing = run()

    wanted = sorted(tuple(row) for row in read_from(own_server).select(*EVENT).collect())
    assert rows_named(tmp_path / "lake", "events", EVENT) == wanted
    assert rows_found(tmp_path / "lake", "events", EVENT) == wanted
    assert (first.rows, second.rows, nothing.rows) == (501, 300, 0)
    assert first.segments > 1
    assert (second.segments, nothing.segments) == (1, 0)
    bounds = own_server.ask("GET", "/journal/bounds")
    assert bounds["archived"] == bounds["last"] == nothing.upto
