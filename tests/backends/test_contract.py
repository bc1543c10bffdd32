"""What every backend promises: hq/backends/port.py, sentence by sentence. Journal, checkpoint, queues."""

from dataclasses import replace
from typing import get_args

import pytest

from hq.backends.codec import decode_events
from hq.backends.port import Batch, Ending
from hq.domain.checkpoint import Chunk, Snapshot
from hq.domain.events import Claimed, Event, Paused, Resumed
from hq.domain.lookups import SMALL_PAYLOAD, START, Entry, KeyOf, PayloadOf, RowOf, ShelfPage
from hq.domain.messages import LEASED, NO_PRIORITY, PLAIN
from hq.domain.settings import Settings
from hq.errors import QueueExists, QueueNotFound
from tests.backends.samples import EVENTS, FULL_ROW, SETTINGS, SNAPSHOT, TEXT, columns, row

KEY = ("", "key")


def resumed(*sequences):
    """Some small events of these sequences."""
    return [Resumed(sequence, 0) for sequence in sequences]


async def new_queue(backend, name="jobs", settings=SETTINGS):
    return (await backend.create(name, settings)).number


async def append(backend, queue, *events, epoch=0):
    [ending] = await backend.append([Batch(queue, epoch, list(events))])
    return ending


async def write(backend, queue, *rows, gone=(), keys=None, snapshot=None):
    await backend.checkpoint(queue, Chunk(list(rows), list(gone), keys or {}, snapshot), None)


async def fetch(backend, queue, lookup):
    [found] = await backend.fetch(queue, [lookup])
    return found


# Queues.


async def test_a_new_queue_is_listed_with_its_settings_and_nothing_to_wake_for(backend):
    created = await backend.create("jobs", SETTINGS)

    assert await backend.queues() == [created]
    assert (created.name, created.settings, created.wake_at) == ("jobs", SETTINGS, None)


async def test_queues_are_listed_by_number(backend):
    numbers = [await new_queue(backend, name) for name in ("b", "a", "c")]

    assert [listed.number for listed in await backend.queues()] == sorted(numbers)


async def test_a_name_is_taken_once(backend):
    await new_queue(backend)

    with pytest.raises(QueueExists):
        await backend.create("jobs", Settings())


async def test_names_are_told_apart_by_case(backend):
    await new_queue(backend, "jobs")
    await new_queue(backend, "Jobs")

    assert {listed.name for listed in await backend.queues()} == {"jobs", "Jobs"}


async def test_a_dropped_queue_frees_its_name_and_its_number_is_not_used_again(backend):
    first = await new_queue(backend)
    await backend.drop(first)

    second = await new_queue(backend)

    assert second != first
    assert [listed.number for listed in await backend.queues()] == [second]


async def test_the_number_of_the_last_queue_is_not_used_again_once_it_is_dropped(backend):
    numbers = set()
    for _ in range(3):
        numbers.add(await new_queue(backend))
        await backend.drop(max(numbers))

    assert len(numbers) == 3


async def test_a_new_queue_has_nothing_of_a_dropped_one_of_its_name(backend):
    first = await new_queue(backend)
    await append(backend, first, *resumed(1))
    await write(backend, first, row(1), keys={KEY: Entry(1, 2, live=True, expires_at=None, as_of=1)})
    await backend.drop(first)

    second = await new_queue(backend, settings=Settings())

    assert await backend.load(second) == (Snapshot(Settings()), [])
    assert await backend.tail(second, 0, 10) == []
    assert await backend.fetch(second, [RowOf(1), KeyOf(KEY)]) == [None, None]


async def test_a_dropped_queue_is_not_found(backend):
    queue = await new_queue(backend)
    await backend.drop(queue)

    with pytest.raises(QueueNotFound):
        await backend.load(queue)


async def test_dropping_twice_is_dropping_once(backend):
    queue = await new_queue(backend)
    await backend.drop(queue)
    await backend.drop(queue)

    assert await backend.queues() == []


# Append and tail.


async def test_every_kind_of_event_comes_back_as_it_was_written(backend):
    queue = await new_queue(backend)

    assert {type(event) for event in EVENTS} == set(get_args(Event))
    assert await append(backend, queue, *EVENTS, epoch=1) is Ending.DURABLE
    assert await backend.tail(queue, 0, len(EVENTS)) == EVENTS


async def test_batches_follow_each_other(backend):
    queue = await new_queue(backend)

    assert await append(backend, queue, *resumed(1, 2)) is Ending.DURABLE
    assert await append(backend, queue, *resumed(3)) is Ending.DURABLE
    assert await backend.tail(queue, 0, 10) == resumed(1, 2, 3)


@pytest.mark.parametrize("sequence", [1, 2, 4])
async def test_a_batch_that_does_not_follow_the_last_one_is_not_the_owners(backend, sequence):
    queue = await new_queue(backend)
    await append(backend, queue, *resumed(1, 2))

    assert await append(backend, queue, Paused(sequence, 0, "other")) is Ending.NOT_OWNER
    assert await backend.tail(queue, 0, 10) == resumed(1, 2)


async def test_a_batch_of_an_older_epoch_is_not_the_owners(backend):
    queue = await new_queue(backend)
    await append(backend, queue, Claimed(1, 0, 5), epoch=5)

    assert await append(backend, queue, *resumed(2), epoch=4) is Ending.NOT_OWNER
    assert await append(backend, queue, *resumed(2), epoch=5) is Ending.DURABLE


async def test_a_claim_that_comes_second_is_not_the_owners(backend):
    queue = await new_queue(backend)
    await append(backend, queue, Claimed(1, 0, 6), epoch=6)

    assert await append(backend, queue, Claimed(2, 0, 5), epoch=5) is Ending.NOT_OWNER


async def test_each_queue_of_an_append_ends_by_itself(backend):
    first, second, third = [await new_queue(backend, name) for name in "abc"]
    await append(backend, second, Claimed(1, 0, 5), epoch=5)
    batches = [
        Batch(first, 0, resumed(1)),
        Batch(second, 4, resumed(2)),
        Batch(third, 0, resumed(1, 2)),
    ]

    endings = await backend.append(batches)

    assert endings == [Ending.DURABLE, Ending.NOT_OWNER, Ending.DURABLE]
    assert [len(await backend.tail(queue, 0, 10)) for queue in (first, second, third)] == [1, 1, 2]


async def test_a_dropped_queue_does_not_take_its_neighbours_with_it(backend):
    first, second, third = [await new_queue(backend, name) for name in "abc"]
    await backend.drop(second)

    endings = await backend.append([Batch(queue, 0, resumed(1)) for queue in (first, second, third)])

    assert (endings[0], endings[2]) == (Ending.DURABLE, Ending.DURABLE)
    assert endings[1] in {Ending.NOT_OWNER, Ending.REFUSED}
    assert await backend.tail(third, 0, 10) == resumed(1)


async def test_the_tail_begins_after_a_sequence(backend):
    queue = await new_queue(backend)
    for sequence in (1, 2, 3):
        await append(backend, queue, *resumed(sequence))

    assert await backend.tail(queue, 1, 10) == resumed(2, 3)
    assert await backend.tail(queue, 3, 10) == []


@pytest.mark.parametrize("limit", [1, 2, 3, 100])
async def test_the_tail_is_read_to_its_end_whatever_the_limit(backend, limit):
    queue = await new_queue(backend)
    for batch in ((1, 2, 3), (4,), (5, 6)):
        await append(backend, queue, *resumed(*batch))

    read = []
    while events := await backend.tail(queue, len(read), limit):
        read += events

    assert read == resumed(1, 2, 3, 4, 5, 6)


async def test_the_tail_after_the_mark_is_kept_when_the_mark_moves(backend):
    queue = await new_queue(backend)
    await append(backend, queue, *resumed(1, 2))
    await append(backend, queue, *resumed(3, 4))
    await write(backend, queue, snapshot=replace(SNAPSHOT, sequence=2))

    assert await backend.tail(queue, 2, 10) == resumed(3, 4)


# The journal over all queues.


async def test_the_journal_tells_every_batch_of_every_queue_in_order(backend):
    first, second = await new_queue(backend, "a"), await new_queue(backend, "b")
    await append(backend, first, *resumed(1, 2), epoch=3)
    await append(backend, second, *resumed(1), epoch=4)
    await append(backend, first, *resumed(3), epoch=3)

    told = await backend.journal(0, 10)

    assert [(entry.queue, entry.epoch, list(entry.events)) for entry in told] == [
        (first, 3, resumed(1, 2)),
        (second, 4, resumed(1)),
        (first, 3, resumed(3)),
    ]
    positions = [entry.position for entry in told]
    assert positions == sorted(set(positions))


async def test_the_journal_is_read_on_from_a_position(backend):
    queue = await new_queue(backend)
    for sequence in range(1, 6):
        await append(backend, queue, *resumed(sequence))
    everything = await backend.journal(0, 10)

    assert await backend.journal(everything[1].position, 2) == everything[2:4]
    assert await backend.journal(everything[-1].position, 2) == []


async def test_journal_rows_hold_the_events_of_the_journal(backend):
    queue, other = await new_queue(backend, "a"), await new_queue(backend, "b")
    await append(backend, queue, *EVENTS)
    await append(backend, other, *resumed(1, 2))
    await append(backend, queue, *resumed(len(EVENTS) + 1), epoch=1_000)

    rows = await backend.journal_rows(0, 1_000, 10)

    assert [
        (
            row.position,
            row.queue,
            row.epoch,
            decode_events(row.queue, row.epoch, row.first, row.last, row.body),
        )
        for row in rows
    ] == [(*entry[:3], list(entry.events)) for entry in await backend.journal(0, 10)]
    first, second, third = rows
    assert await backend.journal_rows(first.position, second.position, 10) == [second]
    assert await backend.journal_rows(first.position, third.position, 1) == [second]
    assert await backend.journal_rows(third.position, 1_000, 10) == []


async def test_the_journal_says_how_far_so_many_events_reach(backend):
    queue = await new_queue(backend)
    assert await backend.journal_reach(0, 5) == 0
    for sequences in ((1, 2), (3,), (4, 5, 6)):
        await append(backend, queue, *resumed(*sequences))
    first, second, third = [entry.position for entry in await backend.journal(0, 10)]

    assert [await backend.journal_reach(0, events) for events in (1, 2, 3, 5, 6, 7)] == [
        first, first, second, second, third, third,
    ]  # fmt: skip
    assert [await backend.journal_reach(second, events) for events in (1, 3)] == [third, third]
    assert await backend.journal_reach(third, 1) == third


async def test_what_was_not_written_is_not_in_the_journal(backend):
    queue = await new_queue(backend)
    await append(backend, queue, *resumed(2))

    assert await backend.journal(0, 10) == []


# Checkpoint and load.


async def test_a_new_queue_is_loaded_from_nothing(backend):
    queue = await new_queue(backend)

    assert await backend.load(queue) == (Snapshot(SETTINGS), [])


async def test_a_snapshot_comes_back_as_it_was_written(backend):
    queue = await new_queue(backend)
    await write(backend, queue, snapshot=SNAPSHOT)

    loaded, _ = await backend.load(queue)

    assert loaded == SNAPSHOT


async def test_what_is_loaded_is_a_copy(backend):
    queue = await new_queue(backend)
    await write(backend, queue, row(1, state=LEASED), snapshot=SNAPSHOT)
    loaded, [lease] = await backend.load(queue)
    loaded.moves.clear()
    loaded.schedules["nightly"].next_at = 0
    lease.attempts = 99

    again, [lease] = await backend.load(queue)

    assert (again, lease.attempts) == (SNAPSHOT, 0)


async def test_a_chunk_without_a_snapshot_stores_its_rows_and_leaves_the_mark(backend):
    queue = await new_queue(backend)
    await write(backend, queue, snapshot=SNAPSHOT)
    await write(backend, queue, row(1))

    assert (await backend.load(queue)).snapshot == SNAPSHOT
    assert columns(await fetch(backend, queue, RowOf(1))) == columns(row(1))


async def test_a_load_brings_the_rows_of_all_leases_and_no_other(backend):
    queue = await new_queue(backend)
    await write(backend, queue, row(1), row(2, state=LEASED, lease_expires_at=9), row(3, state=LEASED))
    await write(backend, queue, row(3), snapshot=SNAPSHOT)

    _, leases = await backend.load(queue)

    assert [columns(lease) for lease in leases] == [columns(row(2, state=LEASED, lease_expires_at=9))]


async def test_a_checkpoint_tells_the_list_of_queues_its_settings_and_when_to_wake(backend):
    queue = await new_queue(backend, settings=Settings())
    await backend.checkpoint(queue, Chunk([], [], {}, SNAPSHOT), 77)

    [listed] = await backend.queues()

    assert (listed.settings, listed.wake_at) == (SETTINGS, 77)


# Rows and keys.


@pytest.mark.parametrize("written", [FULL_ROW, row(1), row(2, payload=b"")], ids=["full", "bare", "empty"])
async def test_a_row_comes_back_as_it_was_written(backend, written):
    queue = await new_queue(backend)
    await write(backend, queue, written.row())

    assert columns(await fetch(backend, queue, RowOf(written.sequence))) == columns(written)


async def test_a_row_that_is_written_again_is_replaced(backend):
    queue = await new_queue(backend)
    await write(backend, queue, row(1, payload=b"old"))
    changed = row(1, payload=b"new", state=LEASED, receives=1, attempts=1, as_of=9, history=())

    await write(backend, queue, changed.row())

    assert columns(await fetch(backend, queue, RowOf(1))) == columns(changed)


async def test_a_row_that_is_written_without_a_payload_keeps_the_one_it_had(backend):
    queue = await new_queue(backend)
    await write(backend, queue, row(1, payload=b"kept"))
    await write(backend, queue, row(1, payload=None, receives=1, as_of=2))

    found = await fetch(backend, queue, RowOf(1))

    assert (found.payload, found.receives, found.as_of) == (b"kept", 1, 2)


async def test_an_empty_payload_is_a_payload(backend):
    queue = await new_queue(backend)
    await write(backend, queue, row(1, payload=b"old"))
    await write(backend, queue, row(1, payload=b""))

    assert (await fetch(backend, queue, RowOf(1))).payload == b""


async def test_a_large_payload_is_in_no_row_and_comes_when_asked_for(backend):
    queue = await new_queue(backend)
    small, large = bytes(SMALL_PAYLOAD), bytes(SMALL_PAYLOAD + 1)
    await write(backend, queue, row(1, payload=small), row(2, payload=large))
    await write(backend, queue, row(3, payload=large, state=LEASED))

    page = await fetch(backend, queue, ShelfPage(NO_PRIORITY, START, 9, 9))
    alone = [await fetch(backend, queue, RowOf(sequence)) for sequence in (1, 2, 3)]
    [lease] = (await backend.load(queue)).leases

    assert [found.payload for found in (*page.rows, *alone, lease)] == [small, None, small, None, None, None]
    found = await backend.fetch(queue, [PayloadOf(2), PayloadOf(9), PayloadOf(1)])
    assert found == [large, None, small]


async def test_what_is_gone_is_not_found_and_may_be_gone_twice(backend):
    queue = await new_queue(backend)
    await write(backend, queue, row(1), row(2))
    await write(backend, queue, gone=[1])
    await write(backend, queue, gone=[1, 99])

    assert await fetch(backend, queue, RowOf(1)) is None
    assert await fetch(backend, queue, RowOf(2)) is not None


async def test_what_was_fetched_is_a_copy(backend):
    queue = await new_queue(backend)
    await write(backend, queue, row(1))
    (await fetch(backend, queue, RowOf(1))).payload = b"changed"

    assert (await fetch(backend, queue, RowOf(1))).payload == b"payload"


@pytest.mark.parametrize("expires_at", [None, 7])
async def test_a_key_is_held_replaced_and_freed(backend, expires_at):
    queue = await new_queue(backend)
    key = (TEXT, TEXT)
    first = Entry(1, 2, live=True, expires_at=expires_at, as_of=1)
    second = Entry(3, 4, live=False, expires_at=None, as_of=5)

    seen = []
    for entry in (first, second, None):
        await write(backend, queue, keys={key: entry})
        seen.append(await fetch(backend, queue, KeyOf(key)))

    assert seen == [first, second, None]


async def test_a_key_is_found_in_its_own_scope_only(backend):
    queue = await new_queue(backend)
    await write(backend, queue, keys={("a", "key"): Entry(1, 2, live=True, expires_at=None, as_of=1)})

    assert await backend.fetch(queue, [KeyOf(KEY), KeyOf(("b", "key"))]) == [None, None]


async def test_queues_do_not_see_each_others_rows_and_keys(backend):
    first, second = await new_queue(backend, "a"), await new_queue(backend, "b")
    await write(backend, first, row(1, PLAIN), keys={KEY: Entry(1, 2, live=True, expires_at=None, as_of=1)})

    assert await backend.fetch(second, [RowOf(1), KeyOf(KEY)]) == [None, None]
