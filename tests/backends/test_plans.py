"""Every lookup is a range of an index, and no page costs more because of what comes before it."""

import sqlite3

import pytest

from hq.backends.sqlite import SqliteBackend
from hq.backends.sqlite import statements as sql
from hq.domain.checkpoint import Chunk
from hq.domain.lookups import END, START, Bounds, LanePage, ShelfPage
from hq.domain.messages import NO_PRIORITY, LaneId, Options
from hq.domain.settings import Settings
from tests.backends.samples import row

FAR = 1 << 61
VALUES = {
    "queue": 1, "rank": 1, "instant": 1, "sequence": 1, "until": 1, "limit": 1, "kind": "group", "name": "a",
    "lane_rank": 0, "sequences": "[1]", "state": "waiting", "after": 1, "since": 1, "positions": "[1]",
    "purged": 1, "now": 1, "up_to": 1,
}  # fmt: skip
BY_PRIMARY_KEY = "PRIMARY KEY (queue=? AND sequence=?)"
PLANS = {
    "SHELF_PAGE": ["messages_by_delivery (queue=? AND rank=? AND (available_at,sequence)>(?,?) AND availab",
                   "messages_by_lane (queue=? AND lane_kind=? AND lane_name=? AND lane_rank=?"],
    "SHELF_NEXT": ["messages_by_delivery (queue=? AND rank=? AND (available_at,sequence)>(?,?))"],
    "LANE_PAGE": ["messages_by_lane (queue=? AND lane_kind=? AND lane_name=? AND lane_rank=? AND (place,"],
    "ENDS_PAGE": ["messages_by_end (queue=? AND (ends_at,sequence)>(?,?) AND ends_at<?)"],
    "ENDS_NEXT": ["messages_by_end (queue=? AND (ends_at,sequence)>(?,?))"],
    "SHELF_BOUNDS": ["messages_by_delivery (queue=? AND rank>?)",
                     "messages_by_delivery (queue=? AND rank=?)"],
    "ROWS_OF": [BY_PRIMARY_KEY],
    "PAYLOADS_OF": [BY_PRIMARY_KEY],
    "STATE_PAGE": ["messages_by_state (queue=? AND state=? AND sequence>?)"],
    "DELAYED_AFTER": ["messages_by_time (queue=? AND available_at>?)"],
    "LEASES": ["messages_by_state (queue=? AND state=?)"],
    "TAIL_INDEXED": ["PRIMARY KEY (queue=? AND first>?)", "INTEGER PRIMARY KEY (rowid=?)"],
    "TAIL_WALKED": ["INTEGER PRIMARY KEY (rowid>?)"],
    "JOURNAL_ROWS": ["INTEGER PRIMARY KEY (rowid=?)"],
    "REMOVE_ROWS": [BY_PRIMARY_KEY],
    "TOUCH_STORED": [BY_PRIMARY_KEY],
    "UNMARK": [BY_PRIMARY_KEY],
    "MARK": [BY_PRIMARY_KEY],
    "NOTE_HEADS": ["messages_by_lane (queue=? AND lane_kind=? AND lane_name=? AND lane_rank=?)"],
    "PRUNE_KEYS": ["dedup_by_end (until<?)"],
    "PRUNE_PURGED": ["messages_by_state (queue=? AND state=? AND sequence<?)"],
}  # fmt: skip


@pytest.fixture
async def backend(tmp_path):
    opened = SqliteBackend(tmp_path / "hq.db")
    await opened.open()
    yield opened
    await opened.close()


@pytest.fixture
def file(backend, tmp_path):
    connection = sqlite3.connect(tmp_path / "hq.db")
    connection.execute(sql.TOUCHED_TABLE)
    yield connection
    connection.close()


@pytest.mark.parametrize("name", PLANS)
async def test_a_statement_reads_ranges_of_indexes_and_sorts_nothing(file, name):
    plan = [step[3] for step in file.execute(f"EXPLAIN QUERY PLAN {getattr(sql, name)}", VALUES)]

    for expected in PLANS[name]:
        assert any(expected in step for step in plan), plan
    assert not any("TEMP B-TREE" in step for step in plan), plan
    assert not any(
        step.startswith(("SCAN messages", "SCAN m", "SCAN journal", "SCAN dedup")) for step in plan
    ), plan


async def test_the_keys_of_a_batch_are_searched_one_by_one(file):
    plan = [step[3] for step in file.execute(f"EXPLAIN QUERY PLAN {sql.keys_of(2)}", ["", "a", "", "b", 1])]

    assert any("PRIMARY KEY (queue=? AND scope=? AND key=?)" in step for step in plan), plan


async def test_a_blocked_group_of_many_rows_hides_nothing_and_is_not_walked(backend, file):
    queue = (await backend.create("jobs", Settings())).number
    blocked = [row(n, Options(group="blocked"), place=0) for n in range(1, 20_001)]
    free = [row(20_001, Options(group="free"), place=0), row(20_002)]
    await backend.checkpoint(queue, Chunk([*blocked, *free], [], {}, None), None)

    [bounds, page] = await backend.fetch(queue, [Bounds(), ShelfPage(NO_PRIORITY, START, FAR, 10)])

    assert bounds.shelves == {NO_PRIORITY: (0, 1)}
    assert [found.sequence for found in page.rows] == [1, 20_001, 20_002]
    assert file.execute("SELECT count(*) FROM messages WHERE marked").fetchone() == (3,)
    steps = []
    file.set_progress_handler(lambda: steps.append(1), 1_000)
    values = {**VALUES, "rank": NO_PRIORITY, "instant": -1, "sequence": -1, "until": FAR, "limit": 10}
    assert len(file.execute(sql.SHELF_PAGE, values).fetchall()) == 3
    assert len(steps) < 5, "thousands of steps of SQLite's machine for three rows"


async def test_a_page_deep_in_a_crowd_of_one_instant_is_not_walked_to(backend, file):
    queue = (await backend.create("jobs", Settings())).number
    await backend.checkpoint(queue, Chunk([row(n) for n in range(1, 20_001)], [], {}, None), None)

    steps = []
    file.set_progress_handler(lambda: steps.append(1), 1_000)
    values = {**VALUES, "rank": NO_PRIORITY, "instant": 0, "sequence": 19_990, "until": FAR, "limit": 3}
    assert len(file.execute(sql.SHELF_PAGE, values).fetchall()) == 3
    assert len(steps) < 5, "the crowd before the key was walked"


async def test_the_lane_of_a_blocked_group_goes_on_from_its_first_row(backend):
    queue = (await backend.create("jobs", Settings())).number
    rows = [row(n, Options(group="a"), place=n) for n in range(1, 6)]
    await backend.checkpoint(queue, Chunk(rows, [], {}, None), None)

    [shelf] = await backend.fetch(queue, [ShelfPage(NO_PRIORITY, START, FAR, 10)])
    [lane] = await backend.fetch(queue, [LanePage(LaneId("group", "a", 0), shelf.lanes[0], 10)])

    assert [found.sequence for found in (*shelf.rows, *lane.rows)] == [1, 2, 3, 4, 5]
    assert lane.rest == END
