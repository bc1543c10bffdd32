"""What every backend promises of lookups: each range in its order, from a key on, and where it goes on."""

import pytest

from hq.domain.checkpoint import Chunk
from hq.domain.lookups import (
    END,
    START,
    Ahead,
    Bounds,
    DelayedAfter,
    EndsPage,
    Entry,
    FoundBounds,
    KeyOf,
    LanePage,
    RowOf,
    SequencePage,
    ShelfPage,
)
from hq.domain.messages import FAILED, LEASED, MOVING, NO_PRIORITY, LaneId, Options
from hq.domain.settings import Settings
from hq.domain.tasks import Scope
from tests.backends.samples import row

FAR = 1 << 61


@pytest.fixture
async def queue(backend):
    return (await backend.create("jobs", Settings())).number


@pytest.fixture
def store(backend, queue):
    """Write rows of one chunk; sequences may be gone."""

    async def write(*rows, gone=()):
        await backend.checkpoint(queue, Chunk(list(rows), list(gone), {}, None), None)

    return write


@pytest.fixture
def find(backend, queue):
    """The answer to one lookup."""

    async def fetch(lookup):
        [found] = await backend.fetch(queue, [lookup])
        return found

    return fetch


def sequences(page):
    return [found.sequence for found in page.rows]


def grouped(sequence, group, place=0, **columns):
    return row(sequence, Options(group=group), place=place, **columns)


def keyed(sequence, key, place=0, **columns):
    priority = columns.pop("priority", None)
    return row(sequence, Options(concurrency_key=key, priority=priority), place=place, **columns)


def ranked(sequence, priority, **columns):
    return row(sequence, Options(priority=priority), **columns)


def group_lane(name):
    return LaneId("group", name, 0)


# Bounds.


async def test_of_nothing_there_are_no_bounds(find):
    assert await find(Bounds()) == FoundBounds({}, END)


async def test_bounds_are_the_first_key_of_each_shelf_and_of_what_ends(store, find):
    await store(
        ranked(1, 5, available_at=30),
        ranked(2, 5, available_at=20),
        row(3, available_at=40, expires_at=90),
        row(4, state=FAILED, kept_until=80),
        ranked(5, 7, state=LEASED),
    )

    assert await find(Bounds()) == FoundBounds({5: (20, 2), NO_PRIORITY: (40, 3)}, (80, 4))


# Shelves.


async def test_a_shelf_is_read_in_order_of_available_at_and_sequence(store, find):
    await store(*(row(sequence, available_at=at) for sequence, at in ((1, 9), (2, 5), (3, 9), (4, 1))))

    page = await find(ShelfPage(NO_PRIORITY, START, FAR, 10))

    assert (sequences(page), page.rest) == ([4, 2, 1, 3], END)


async def test_a_shelf_is_read_on_from_a_key_page_by_page(store, find):
    await store(*(row(sequence, available_at=sequence // 2) for sequence in range(1, 8)))

    read, key = [], START
    while key != END:
        page = await find(ShelfPage(NO_PRIORITY, key, FAR, 2))
        assert len(page.rows) <= 2
        read += sequences(page)
        key = page.rest

    assert read == [1, 2, 3, 4, 5, 6, 7]


async def test_a_shelf_is_read_from_the_key_itself_on(store, find):
    await store(*(row(sequence, available_at=3) for sequence in (1, 2, 3)))

    assert sequences(await find(ShelfPage(NO_PRIORITY, (3, 2), FAR, 10))) == [2, 3]


async def test_a_shelf_is_read_up_to_an_instant_and_says_what_comes_after_it(store, find):
    await store(*(row(sequence, available_at=at) for sequence, at in ((1, 4), (2, 5), (3, 6), (4, 7))))

    page = await find(ShelfPage(NO_PRIORITY, START, 5, 10))

    assert (sequences(page), page.rest) == ([1, 2], (6, 3))


async def test_a_shelf_has_waiting_rows_of_its_own_priority_only(store, find):
    await store(
        ranked(1, 0), ranked(2, 1), row(3), ranked(4, 0, state=LEASED), ranked(5, 0, state=FAILED),
        ranked(6, 0, state=MOVING), ranked(7, -1),
    )  # fmt: skip

    assert sequences(await find(ShelfPage(0, START, FAR, 10))) == [1]


async def test_an_unknown_shelf_is_empty(find):
    page = await find(ShelfPage(3, START, FAR, 10))

    assert (page.rows, page.rest) == ([], END)


# Lanes and marks.


async def test_only_the_first_row_of_a_lane_is_on_its_shelf(store, find):
    await store(grouped(1, "a", 7), grouped(2, "a", 3), grouped(3, "b", 9), row(4), keyed(5, "a"))

    assert sequences(await find(ShelfPage(NO_PRIORITY, START, FAR, 10))) == [2, 3, 4, 5]


async def test_a_shelf_tells_for_each_row_where_its_lane_goes_on(store, find):
    await store(grouped(1, "a", 7), grouped(2, "a", 3), grouped(3, "b"), row(4))

    page = await find(ShelfPage(NO_PRIORITY, START, FAR, 10))

    assert dict(zip(sequences(page), page.lanes, strict=True)) == {
        2: Ahead(7, 1, NO_PRIORITY, 0), 3: END, 4: END,
    }  # fmt: skip


async def test_the_first_row_of_a_group_is_on_the_shelf_of_its_own_priority(store, find):
    first = row(1, Options(group="a", priority=1), place=0)
    second = row(2, Options(group="a", priority=9), place=0)
    await store(first, second)

    assert await find(Bounds()) == FoundBounds({1: (0, 1)}, END)


async def test_a_concurrency_key_has_a_lane_for_each_priority(store, find):
    await store(keyed(1, "k", priority=1), keyed(2, "k", priority=9), keyed(3, "k", priority=9))

    assert await find(Bounds()) == FoundBounds({1: (0, 1), 9: (0, 2)}, END)
    assert sequences(await find(LanePage(LaneId("key", "k", 9), START, 10))) == [2, 3]


async def test_a_group_and_a_key_of_one_name_are_two_lanes(store, find):
    await store(grouped(1, "a"), keyed(2, "a"))

    assert sequences(await find(ShelfPage(NO_PRIORITY, START, FAR, 10))) == [1, 2]


async def test_a_row_with_a_group_but_no_place_is_in_no_lane(store, find):
    await store(row(1, Options(group="a")), row(2, Options(group="a")))

    assert sequences(await find(ShelfPage(NO_PRIORITY, START, FAR, 10))) == [1, 2]
    assert sequences(await find(LanePage(group_lane("a"), START, 10))) == []


async def test_rows_without_a_group_that_have_a_place_are_in_the_empty_group(store, find):
    await store(row(1, place=0), row(2, place=0), grouped(3, ""))

    assert sequences(await find(LanePage(group_lane(""), START, 10))) == [1, 2, 3]


@pytest.mark.parametrize("change", ["gone", "leased", "failed", "moving"])
async def test_when_the_first_row_of_a_lane_no_longer_waits_the_next_is_on_the_shelf(store, find, change):
    await store(grouped(1, "a"), grouped(2, "a"), grouped(3, "a"))

    if change == "gone":
        await store(gone=[1])
    else:
        await store(grouped(1, "a", state={"leased": LEASED, "failed": FAILED, "moving": MOVING}[change]))

    page = await find(ShelfPage(NO_PRIORITY, START, FAR, 10))
    assert (sequences(page), page.lanes) == ([2], [Ahead(0, 3, NO_PRIORITY, 0)])


async def test_a_row_that_comes_to_stand_before_the_first_takes_its_place_on_the_shelf(store, find):
    await store(grouped(2, "a", 5))
    await store(grouped(1, "a", 3))

    assert sequences(await find(ShelfPage(NO_PRIORITY, START, FAR, 10))) == [1]


async def test_a_row_that_waits_again_in_the_first_place_is_on_the_shelf_again(store, find):
    await store(grouped(1, "a", state=LEASED), grouped(2, "a"))
    await store(grouped(1, "a", available_at=50))

    page = await find(ShelfPage(NO_PRIORITY, START, FAR, 10))

    assert (sequences(page), page.lanes) == ([1], [Ahead(0, 2, NO_PRIORITY, 0)])


async def test_a_lane_is_read_in_order_of_place_and_sequence_whenever_its_rows_are_available(store, find):
    await store(
        grouped(1, "a", 9), grouped(2, "a", 4, available_at=1_000), grouped(3, "a", 4), grouped(4, "b", 0),
        grouped(5, "a", 1, state=LEASED),
    )  # fmt: skip

    page = await find(LanePage(group_lane("a"), START, 10))

    assert (sequences(page), page.rest) == ([2, 3, 1], END)


async def test_a_lane_is_read_on_from_a_key_page_by_page(store, find):
    await store(*(grouped(sequence, "a", sequence // 2) for sequence in range(1, 8)))

    first = await find(LanePage(group_lane("a"), START, 3))
    second = await find(LanePage(group_lane("a"), first.rest, 3))
    third = await find(LanePage(group_lane("a"), second.rest, 3))

    assert [sequences(page) for page in (first, second, third)] == [[1, 2, 3], [4, 5, 6], [7]]
    assert [page.rest[:2] for page in (first, second, third)] == [(2, 4), (3, 7), END]


async def test_what_comes_next_in_a_lane_is_told_with_its_priority_and_when_it_is_available(store, find):
    await store(
        grouped(1, "a", 0),
        row(2, Options(group="a", priority=9), place=4, available_at=70),
    )
    ahead = Ahead(4, 2, 9, 70)

    assert (await find(LanePage(group_lane("a"), START, 1))).rest == ahead
    assert (await find(ShelfPage(NO_PRIORITY, START, FAR, 10))).lanes == [ahead]


async def test_an_unknown_lane_is_empty(find):
    page = await find(LanePage(group_lane("nobody"), START, 10))

    assert (page.rows, page.rest) == ([], END)


# What ends.


async def test_what_ends_is_read_in_order_of_its_end(store, find):
    await store(
        row(1, expires_at=30),
        row(2, state=FAILED, expires_at=5, kept_until=20),
        row(3),
        row(4, state=LEASED, expires_at=10),
        row(5, state=MOVING, expires_at=10, kept_until=10),
        grouped(6, "a", expires_at=20),
        grouped(7, "a", expires_at=15),
    )

    page = await find(EndsPage(START, FAR, 10))

    assert (sequences(page), page.rest) == ([7, 2, 6, 1], END)


async def test_what_ends_is_read_from_a_key_up_to_an_instant_page_by_page(store, find):
    await store(*(row(sequence, expires_at=10 * sequence) for sequence in range(1, 7)))

    first = await find(EndsPage((20, 2), 50, 2))
    second = await find(EndsPage(first.rest, 50, 10))

    assert [sequences(page) for page in (first, second)] == [[2, 3], [4, 5]]
    assert (first.rest, second.rest) == ((40, 4), (60, 6))


# By sequence.


async def test_a_scope_is_read_in_order_of_sequence(store, find):
    await store(
        row(4), row(2, state=LEASED), row(3, state=FAILED), row(1, state=MOVING), row(5, state=FAILED)
    )  # fmt: skip

    live = await find(SequencePage(Scope.LIVE, 0, 10))
    failed = await find(SequencePage(Scope.FAILED, 0, 10))

    assert (sequences(live), sequences(failed)) == ([2, 4], [3, 5])
    assert (live.rest, failed.rest) == (END, END)


async def test_a_scope_is_read_on_after_a_sequence_page_by_page(store, find):
    await store(*(row(sequence) for sequence in range(1, 8, 2)))

    page = await find(SequencePage(Scope.LIVE, 1, 2))

    assert (sequences(page), page.rest[1]) == ([3, 5], 7)
    assert sequences(await find(SequencePage(Scope.LIVE, 5, 2))) == [7]


# Counting, and several at once.


async def test_delayed_rows_are_counted_after_an_instant(store, find):
    await store(
        row(1, available_at=10), row(2, available_at=11), row(3, available_at=12),
        row(4, available_at=12, state=LEASED), row(5, available_at=12, state=FAILED),
        grouped(6, "a", available_at=12), grouped(7, "a", available_at=12),
    )  # fmt: skip

    assert await find(DelayedAfter(10, 0)) == 4


async def test_delayed_rows_that_were_last_changed_before_a_purge_are_not_counted(store, find):
    await store(
        *(row(sequence, available_at=10, as_of=as_of) for sequence, as_of in ((1, 4), (2, 5), (3, 6)))
    )

    assert await find(DelayedAfter(0, 5)) == 2


async def test_lookups_are_answered_in_their_order(backend, queue, store):
    await store(row(1), row(2, available_at=9))
    lookups = [RowOf(2), DelayedAfter(5, 0), RowOf(3), KeyOf(("", "k")), RowOf(1), RowOf(2)]

    found = await backend.fetch(queue, lookups)

    assert [getattr(answer, "sequence", answer) for answer in found] == [2, 1, None, None, 1, 2]


async def test_rows_have_their_payload_on_every_page(store, find):
    await store(grouped(1, "a", payload=b"work", expires_at=9))
    await store(grouped(1, "a", payload=None, expires_at=9, as_of=5))
    lookups = [
        ShelfPage(NO_PRIORITY, START, FAR, 1),
        LanePage(group_lane("a"), START, 1),
        EndsPage(START, FAR, 1),
        SequencePage(Scope.LIVE, 0, 1),
    ]

    assert [[found.payload for found in (await find(page)).rows] for page in lookups] == [[b"work"]] * 4


async def test_a_key_outlives_its_row(backend, queue, store, find):
    entry = Entry(1, 99, live=False, expires_at=None, as_of=1)
    await backend.checkpoint(queue, Chunk([row(1)], [], {("", "k"): entry}, None), None)
    await store(gone=[1])

    assert await find(KeyOf(("", "k"))) == entry
