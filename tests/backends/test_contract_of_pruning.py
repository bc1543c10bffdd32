"""What every backend promises of pruning: what is kept no longer goes in bounded steps, nothing else does."""

import pytest

from hq.backends.port import Batch, Ending, Retention
from hq.domain.checkpoint import Chunk
from hq.domain.events import Claimed, Enqueued, Resumed
from hq.domain.lookups import START, Entry, KeyOf, RowOf, ShelfPage
from hq.domain.messages import FAILED, LEASED, MOVING, NO_PRIORITY, PLAIN, Options
from hq.domain.tasks import Scope
from hq.errors import JournalPruned
from tests.backends.pruned import DAY, EVERYTHING, NOTHING, fill, kept, mark, new_queue, prune
from tests.backends.samples import row

# The journal.


async def test_nothing_after_a_mark_is_pruned(backend):
    queue = await new_queue(backend)
    await fill(backend, queue, range(1, 7))
    await mark(backend, queue, 3)

    await prune(backend)

    assert await kept(backend) == [(queue, 4), (queue, 5), (queue, 6)]
    assert await backend.tail(queue, 3, 10) == [Resumed(4, 0), Resumed(5, 0), Resumed(6, 0)]


async def test_the_last_position_is_kept_so_that_positions_go_on(backend):
    queue = await new_queue(backend)
    await fill(backend, queue, range(1, 4))
    [*_, last] = await backend.journal(0, 10)
    await mark(backend, queue, 3)

    await prune(backend)
    await fill(backend, queue, [4])

    assert [entry.position for entry in await backend.journal(0, 10)] == [last.position, last.position + 1]


async def test_what_is_young_and_within_its_bytes_is_kept(backend):
    queue = await new_queue(backend)
    await fill(backend, queue, [1, 2], at=DAY - 1_000)
    await fill(backend, queue, [3, 4], at=DAY)
    await mark(backend, queue, 4)

    await prune(backend, Retention(keep_ms=500, keep_bytes=1 << 30))

    assert await kept(backend) == [(queue, 3), (queue, 4)]


async def test_what_is_over_the_bytes_goes_however_young(backend):
    queue = await new_queue(backend)
    await fill(backend, queue, range(1, 11), at=DAY)
    await mark(backend, queue, 10)

    await prune(backend, Retention(keep_ms=DAY, keep_bytes=50))

    assert 0 < len(await kept(backend)) < 10
    assert (await kept(backend))[-1] == (queue, 10)


async def test_a_reader_left_behind_is_told_where_the_journal_begins(backend):
    queue = await new_queue(backend)
    await fill(backend, queue, range(1, 6))
    await mark(backend, queue, 4)
    await prune(backend)

    [first] = await backend.journal(0, 10)
    with pytest.raises(JournalPruned) as told:
        await backend.journal(1, 10)
    for after in (0, 1):
        with pytest.raises(JournalPruned):
            await backend.journal_rows(after, first.position, 10)
    [row] = await backend.journal_rows(first.position - 1, first.position, 10)
    assert row.position == first.position
    with pytest.raises(JournalPruned):
        await backend.tail(queue, 1, 10)

    assert told.value.first == first.position


async def test_the_journal_goes_oldest_first_in_bounded_steps(backend):
    queue = await new_queue(backend)
    await fill(backend, queue, range(1, 31))
    await mark(backend, queue, 30)

    assert await backend.prune(DAY, NOTHING, 10) == 10
    assert (await kept(backend))[0] == (queue, 11)
    assert await prune(backend) == 2, "what is left but the last, in tens"


async def test_a_step_takes_few_entries_if_they_are_large(backend):
    queue = await new_queue(backend)
    for sequence in range(1, 9):
        event = Enqueued(sequence, 0, bytes(1 << 20), PLAIN, NO_PRIORITY, 0, None, None, 0)
        await backend.append([Batch(queue, 0, [event])])
    await mark(backend, queue, 8)

    assert 0 < await backend.prune(DAY, NOTHING, 1_000) < 7
    await prune(backend)
    assert await kept(backend) == [(queue, 8)]


async def test_a_journal_that_is_within_its_bounds_is_left_alone(backend):
    queue = await new_queue(backend)
    await fill(backend, queue, range(1, 4))
    await mark(backend, queue, 3)

    assert await backend.prune(DAY, EVERYTHING, 10) == 0
    assert len(await kept(backend)) == 3


async def test_one_queue_behind_its_mark_keeps_what_came_after_it(backend):
    first, second = await new_queue(backend), await new_queue(backend, "other")
    for sequence in (1, 2):
        await fill(backend, first, [sequence])
        await fill(backend, second, [sequence])
    await mark(backend, first, 2)
    await mark(backend, second, 1)

    await prune(backend)

    assert await kept(backend) == [(second, 2)]
    assert await backend.tail(second, 1, 10) == [Resumed(2, 0)]


async def test_what_a_dropped_queue_wrote_goes_by_age_too(backend):
    dropped, other = await new_queue(backend), await new_queue(backend, "other")
    await fill(backend, dropped, [1, 2])
    await fill(backend, other, [1])
    await mark(backend, other, 1)
    await backend.drop(dropped)

    await prune(backend, EVERYTHING)
    assert len(await kept(backend)) == 3

    await prune(backend)
    assert await kept(backend) == [(other, 1)]


async def test_a_pruned_journal_is_read_on_from_a_position_and_tells_its_bounds(backend):
    queue = await new_queue(backend)
    await fill(backend, queue, range(1, 6))
    everything = await backend.journal(0, 10)
    await mark(backend, queue, 2)
    await prune(backend)

    bounds = await backend.bounds()

    assert await backend.journal(everything[3].position, 10) == everything[4:]
    assert await backend.journal(everything[1].position, 10) == everything[2:]
    assert (bounds.first, bounds.last) == (everything[2].position, everything[4].position)


async def test_a_pruned_queue_is_appended_to_and_loaded_as_before(backend):
    queue, other = await new_queue(backend), await new_queue(backend, "other")
    await backend.append([Batch(queue, 7, [Claimed(1, 0, 7), Resumed(2, 0)])])
    await mark(backend, queue, 2, epoch=7)
    await fill(backend, other, [1])
    await prune(backend)

    refused = await backend.append([Batch(queue, 7, [Resumed(2, 0)]), Batch(queue, 6, [Resumed(3, 0)])])

    assert refused == [Ending.NOT_OWNER, Ending.NOT_OWNER]
    assert await backend.unsettled() == [other]
    assert await backend.append([Batch(queue, 7, [Resumed(3, 0)])]) == [Ending.DURABLE]
    assert (await backend.load(queue)).snapshot.sequence == 2
    assert await backend.tail(queue, 2, 10) == [Resumed(3, 0)]
    assert await backend.unsettled() == [queue, other]


# The archive.

UNARCHIVED = NOTHING._replace(unarchived_bytes=1 << 30)


async def test_what_is_not_archived_is_kept_whatever_its_age(backend):
    queue = await new_queue(backend)
    await fill(backend, queue, range(1, 6))
    entries = await backend.journal(0, 10)
    await mark(backend, queue, 5)

    await prune(backend, UNARCHIVED)
    assert len(await kept(backend)) == 5

    assert await backend.archived(entries[2].position) == entries[2].position
    await prune(backend, UNARCHIVED)
    assert await kept(backend) == [(queue, 4), (queue, 5)]


async def test_what_is_archived_is_known_and_never_goes_back(backend):
    queue = await new_queue(backend)
    await fill(backend, queue, [1, 2])
    assert (await backend.bounds()).archived == 0

    assert [await backend.archived(upto) for upto in (2, 1, 0)] == [2, 2, 2]
    assert (await backend.bounds()).archived == 2


async def test_more_than_the_bound_of_what_is_not_archived_goes_and_is_told(backend, caplog):
    queue = await new_queue(backend)
    await fill(backend, queue, range(1, 11))
    await mark(backend, queue, 10)

    await prune(backend, NOTHING._replace(unarchived_bytes=50))

    assert 0 < len(await kept(backend)) < 10
    [*_, told] = caplog.records
    assert told.levelname == "ERROR"
    assert "pruned before it was archived" in told.message
    assert told.last == (await backend.bounds()).first - 1


async def test_events_of_a_range_are_counted(backend):
    queue = await new_queue(backend)
    await fill(backend, queue, range(1, 4))
    await backend.append([Batch(queue, 0, [Resumed(4, 0), Resumed(5, 0)])])
    positions = [entry.position for entry in await backend.journal(0, 10)]

    assert await backend.journal_count(0, positions[-1]) == 5
    assert await backend.journal_count(positions[1], positions[3]) == 3
    assert await backend.journal_count(positions[3], positions[3]) == 0

    await mark(backend, queue, 2)
    await prune(backend)
    with pytest.raises(JournalPruned):
        await backend.journal_count(0, positions[-1])


# Keys and purges.


async def test_a_key_goes_when_nobody_holds_it_and_its_window_is_over(backend):
    queue = await new_queue(backend)
    over = Entry(1, DAY, live=False, expires_at=None, as_of=1)
    keys = {
        ("", "over"): over,
        ("", "held"): over._replace(live=True),
        ("", "later"): over._replace(until=DAY + 1),
    }
    await backend.checkpoint(queue, Chunk([], [], keys, None), None)

    await prune(backend, EVERYTHING)

    found = await backend.fetch(queue, [KeyOf(key) for key in keys])
    assert [entry is not None for entry in found] == [False, True, True]


async def test_rows_and_keys_older_than_a_purge_go_and_newer_ones_stay(backend):
    queue = await new_queue(backend)
    rows = [
        row(1), row(2, as_of=100), row(3, state=LEASED), row(4, state=FAILED, as_of=49),
        row(5, state=FAILED, as_of=51), row(6, state=MOVING), *(row(n) for n in range(10, 45)),
    ]  # fmt: skip
    keys = {("", str(n)): Entry(n, DAY * 9, live=True, expires_at=None, as_of=n) for n in (1, 99, 100)}
    await backend.checkpoint(queue, Chunk(rows, [], keys, None), None)
    await mark(backend, queue, 200, purged={Scope.LIVE: 100, Scope.FAILED: 50})

    steps = await prune(backend, EVERYTHING)

    assert steps > 3, "in bounded steps"
    left = await backend.fetch(queue, [RowOf(item.sequence) for item in rows])
    assert [found.sequence for found in left if found] == [2, 5, 6]
    found = await backend.fetch(queue, [KeyOf(key) for key in keys])
    assert [entry is not None for entry in found] == [False, False, True]


async def test_a_purged_row_that_stands_for_its_lane_stays_while_others_are_behind_it(backend):
    queue = await new_queue(backend)
    grouped = [row(n, Options(group="a"), place=0) for n in (1, 2)]
    newer = row(101, Options(group="a"), place=0, available_at=0)
    alone = [row(n, Options(group="b"), place=0) for n in (3, 4)]
    await backend.checkpoint(queue, Chunk([*grouped, newer, *alone], [], {}, None), None)
    await mark(backend, queue, 200, purged={Scope.LIVE: 100, Scope.FAILED: 0})

    await prune(backend, EVERYTHING)

    [page] = await backend.fetch(queue, [ShelfPage(NO_PRIORITY, START, DAY, 10)])
    assert [(found.sequence, lane[:2]) for found, lane in zip(page.rows, page.lanes, strict=True)] == [
        (1, (0, 101))
    ]


async def test_what_was_purged_again_goes_again(backend):
    queue = await new_queue(backend)
    for purge in (100, 200):
        await backend.checkpoint(queue, Chunk([row(purge - 1)], [], {}, None), None)
        await mark(backend, queue, purge, purged={Scope.LIVE: purge, Scope.FAILED: 0})
        await prune(backend, EVERYTHING)

        assert await backend.fetch(queue, [RowOf(purge - 1)]) == [None]
