"""Pruning of a SQLite file: what it leaves in no table, and room given back to the file system."""

import sqlite3

import pytest

from hq.backends.port import Batch, Ending
from hq.backends.retention import STEP_S, Pace
from hq.backends.sqlite import SqliteBackend
from hq.backends.sqlite.pruning import RESERVE_PAGES, RESERVE_PART
from hq.domain.checkpoint import Chunk, Snapshot
from hq.domain.events import Claimed, Resumed
from hq.domain.lookups import END, Entry, KeyOf, SequencePage
from hq.domain.settings import Settings
from hq.domain.tasks import Scope
from tests.backends.pruned import DAY, EVERYTHING, fill, kept, mark, new_queue, prune
from tests.backends.samples import row


@pytest.fixture
async def backend(tmp_path):
    opened = SqliteBackend(tmp_path / "hq.db")
    await opened.open()
    yield opened
    await opened.close()


async def test_a_queue_whose_journal_is_gone_still_knows_its_fence(backend):
    queue, other = await new_queue(backend), await new_queue(backend, "other")
    await backend.append([Batch(queue, 7, [Claimed(1, 0, 7)])])
    await mark(backend, queue, 1, epoch=7)
    await fill(backend, other, [1])
    await prune(backend)
    await backend.close()
    await backend.open()

    refused = await backend.append([Batch(queue, 7, [Resumed(1, 0)]), Batch(queue, 6, [Resumed(2, 0)])])

    assert refused == [Ending.NOT_OWNER, Ending.NOT_OWNER]
    assert await backend.append([Batch(queue, 7, [Resumed(2, 0)])]) == [Ending.DURABLE]


async def test_what_a_dropped_queue_left_goes(backend, tmp_path):
    dropped, other = await new_queue(backend), await new_queue(backend, "other")
    entry = Entry(1, DAY * 9, live=True, expires_at=None, as_of=1)
    for queue in (dropped, other):
        await fill(backend, queue, [1])
        rows = [row(n) for n in range(1, 26)]
        await backend.checkpoint(queue, Chunk(rows, [], {("", "k"): entry}, Snapshot(Settings(), 1)), None)
    await backend.drop(dropped)

    await prune(backend)

    [page] = await backend.fetch(other, [SequencePage(Scope.LIVE, 0, 100)])
    assert (len(page.rows), page.rest) == (25, END)
    assert await backend.fetch(other, [KeyOf(("", "k"))]) == [entry]
    with sqlite3.connect(tmp_path / "hq.db") as file:
        left = [file.execute(f"SELECT count(*) FROM {table} WHERE queue = ?", [dropped]).fetchone()
                for table in ("messages", "dedup", "checkpoints", "journal", "journal_index")]  # fmt: skip
    file.close()
    assert left == [(0,)] * 5


async def test_a_file_that_is_opened_again_is_pruned_again(backend):
    queue = await new_queue(backend)
    await fill(backend, queue, range(1, 4))
    await mark(backend, queue, 3)
    await prune(backend, EVERYTHING)
    await backend.close()
    await backend.open()

    await prune(backend)

    assert await kept(backend) == [(queue, 3)]


async def leave_room(backend, messages=500):
    """Write large messages and take them out again: what SQLite then says of the file."""
    queue = await new_queue(backend)
    sequences = list(range(1, messages + 1))
    await backend.checkpoint(queue, Chunk([row(n, payload=bytes(9_000)) for n in sequences], [], {}, None), 0)
    await backend.checkpoint(queue, Chunk([], sequences, {}, None), 0)
    return await backend.facts()


async def test_free_pages_beyond_a_reserve_are_given_back_in_bounded_steps(backend):
    before = await leave_room(backend)

    first = await backend.prune(DAY, EVERYTHING, 100)
    steps = await prune(backend, EVERYTHING, limit=100)

    after = await backend.facts()
    assert (first, before["freelist_count"] > 1_000) == (100, True)
    assert after["freelist_count"] == max(RESERVE_PAGES, after["page_count"] // RESERVE_PART)
    assert steps == -(-(before["freelist_count"] - RESERVE_PAGES - 100) // 100)


async def test_a_file_that_cannot_give_pages_back_is_pruned_all_the_same(tmp_path):
    with sqlite3.connect(tmp_path / "hq.db") as file:
        file.execute("PRAGMA user_version = 1")
    file.close()
    backend = SqliteBackend(tmp_path / "hq.db")
    await backend.open()
    before = await leave_room(backend)

    assert await backend.prune(DAY, EVERYTHING, 100) == 0
    assert (await backend.facts())["freelist_count"] == before["freelist_count"] > 1_000
    await backend.close()


async def test_all_free_pages_are_given_back_when_told(backend):
    before = await leave_room(backend)

    given = await backend.compact(10_000)

    after = await backend.facts()
    assert (given, after["freelist_count"]) == (before["freelist_count"], 0)
    assert after["page_count"] <= before["page_count"] - given


def test_steps_that_take_long_become_smaller_and_full_ones_that_do_not_larger():
    pace = Pace()
    first = pace.within(1_000)

    pace.took(STEP_S / 10, first)
    larger = pace.within(1_000)
    pace.took(STEP_S / 10, larger - 1)
    as_large = pace.within(1_000)
    pace.took(STEP_S * 2, larger)
    smaller = pace.within(1_000)

    assert (larger, as_large, smaller) == (2 * first, 2 * first, first)
    for _ in range(50):
        pace.took(STEP_S * 2, 1)
    assert pace.within(1_000) == 1
    for _ in range(50):
        pace.took(0, pace.within(1_000))
    assert pace.within(1_000) == 1_000
