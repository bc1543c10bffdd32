"""The janitor: what is kept no longer goes by itself, and nobody else waits for it."""

import logging

import anyio
import pytest
from anyio.lowlevel import checkpoint as breathe

from hq.actors.janitor import MAX_REST_MS
from hq.actors.limits import Limits
from hq.actors.node import Node
from hq.backends.memory import MemoryBackend
from hq.backends.port import Retention
from hq.backends.sqlite import SqliteBackend
from hq.domain.commands import Complete, Count, Enqueue, Purge, Receive
from hq.domain.lookups import SequencePage
from hq.domain.settings import DAY_MS, Settings
from hq.domain.tasks import Scope
from hq.errors import Closed

MINUTE_MS = 60_000
# Nothing is kept longer than it must be.
NOTHING = {"journal_ms": 0, "prune_every_ms": MINUTE_MS, "checkpoint_ms": 1_000}


async def settle():
    """Let every task that can run do so."""
    for _ in range(500):
        await breathe()


async def pass_time(clock, ms):
    clock.advance(ms)
    await settle()


async def work(node, count, name="jobs"):
    for number in range(count):
        await node.ask(name, Enqueue(b"%d" % number))
        [delivery] = await node.receive(name, Receive(), 0)
        await node.ask(name, Complete(delivery.message, delivery.token))


class Watched(MemoryBackend):
    """Tells how it is pruned, takes its time for it, and fails when told."""

    def __init__(self, clock):
        super().__init__()
        self.clock = clock
        self.pruned_at = []
        self.left = 0
        self.step_ms = 0
        self.trouble = []

    async def prune(self, now, _retention, _limit):
        self.pruned_at.append(now)
        self.clock.advance(self.step_ms)
        if self.trouble:
            raise self.trouble.pop()
        self.left -= 1
        return max(0, self.left + 1)


@pytest.fixture
def watched(clock):
    return Watched(clock)


async def test_the_journal_is_pruned_at_an_interval_until_nothing_is_left(new_node, backend, clock):
    async with new_node(**NOTHING, prune=2) as node:
        await node.create("jobs", Settings())
        await work(node, 20)
        await pass_time(clock, 1_000)
        full = len(await backend.journal(0, 1_000))

        await pass_time(clock, MINUTE_MS)

        assert full > 40
        assert len(await backend.journal(0, 1_000)) == 1
        await work(node, 1)
        assert (await node.ask("jobs", Count())).completed == 21


async def test_what_no_checkpoint_has_is_kept(new_node, backend, clock):
    limits = {**NOTHING, "checkpoint_ms": 9 * DAY_MS, "idle_ms": 9 * DAY_MS}
    async with new_node(**limits) as node:
        await node.create("jobs", Settings())
        await work(node, 5)
        await pass_time(clock, DAY_MS)

        journal = await backend.journal(0, 1_000)

    assert [event.sequence for entry in journal for event in entry.events] == list(range(1, 17))


async def test_a_week_and_a_gibibyte_of_the_journal_are_kept(new_node, backend, clock):
    async with new_node() as node:
        await node.create("jobs", Settings())
        await work(node, 5)
        await pass_time(clock, 7 * DAY_MS - MINUTE_MS)
        young = len(await backend.journal(0, 1_000))
        await pass_time(clock, 2 * MINUTE_MS)

        assert young > 10
        assert len(await backend.journal(0, 1_000)) < 10
    assert Limits().journal_bytes == 1 << 30


async def test_a_journal_over_its_bytes_goes_however_young(new_node, backend, clock):
    async with new_node(prune_every_ms=5_000, checkpoint_ms=1_000, journal_bytes=10_000) as node:
        await node.create("jobs", Settings())
        for _ in range(5):
            await node.ask("jobs", Enqueue(bytes(9_000)))
        await pass_time(clock, 1_000)
        await pass_time(clock, 4_000)

        assert 0 < len(await backend.journal(0, 1_000)) < 3
        assert (await node.ask("jobs", Count())).ready == 5


async def test_purged_rows_go(new_node, backend, clock):
    async with new_node(**NOTHING) as node:
        number = (await node.create("jobs", Settings())).number
        for _ in range(3):
            await node.ask("jobs", Enqueue(b"x"))
        await pass_time(clock, 1_000)
        [page] = await backend.fetch(number, [SequencePage(Scope.LIVE, 0, 10)])
        await node.ask("jobs", Purge())
        await pass_time(clock, 1_000)

        await pass_time(clock, MINUTE_MS)

        assert len(page.rows) == 3
        [page] = await backend.fetch(number, [SequencePage(Scope.LIVE, 0, 10)])
        assert page.rows == []


async def test_it_waits_an_interval_before_and_between(watched, clock, new_node):
    start = clock.now
    async with new_node(watched, prune_every_ms=1_000):
        await settle()
        for _ in range(3):
            await pass_time(clock, 1_000)

    assert watched.pruned_at == [start + 1_000, start + 2_000, start + 3_000]


async def test_between_two_steps_others_have_their_turn(watched, clock, new_node):
    async with new_node(watched, prune_every_ms=1_000) as node:
        await node.create("jobs", Settings())
        await node.ask("jobs", Enqueue(b"x"))
        watched.left = 1_000_000
        clock.advance(1_000)
        with anyio.fail_after(60):
            await node.ask("jobs", Enqueue(b"y"))
        assert 0 < len(watched.pruned_at) < 1_000


@pytest.mark.parametrize(("step_ms", "rest_ms"), [(10, 40), (1_000, MAX_REST_MS)])
async def test_it_rests_after_each_step(watched, clock, new_node, step_ms, rest_ms):
    watched.step_ms = step_ms
    async with new_node(watched, prune_every_ms=1_000):
        await settle()
        watched.left = 3
        await pass_time(clock, 1_000)
        begun = clock.now

        await pass_time(clock, rest_ms - 1)
        resting = len(watched.pruned_at)
        await pass_time(clock, 1)

        assert (resting, watched.pruned_at[1:]) == (1, [begun + rest_ms])


async def test_a_step_that_fails_is_told_and_taken_again_at_the_next_interval(
    watched, clock, new_node, caplog
):
    watched.trouble = [KeyError("a bug"), OSError("no room")]
    async with new_node(watched, prune_every_ms=1_000) as node:
        await settle()
        watched.left = 1
        for _ in range(4):
            await pass_time(clock, 1_000)
        await node.create("jobs", Settings())
        await node.ask("jobs", Enqueue(b"the node goes on"))

    assert watched.left < 0
    told = [record for record in caplog.records if record.name == "hq.janitor"]
    assert [record.levelno for record in told] == [logging.ERROR, logging.ERROR]
    assert all(record.exc_info for record in told)


async def test_a_node_that_closes_does_not_wait_for_all_to_be_pruned(watched, clock, new_node):
    with anyio.fail_after(60):
        async with new_node(watched, prune_every_ms=1_000):
            await settle()
            watched.left = 1_000_000
            clock.advance(1_000)
            await breathe()


@pytest.fixture
async def file(tmp_path):
    opened = SqliteBackend(tmp_path / "hq.db")
    await opened.open()
    yield opened
    await opened.close()


async def purge_much(node, file, clock):
    """Store many bytes and purge them; how many pages the file then has."""
    await node.create("jobs", Settings())
    async with anyio.create_task_group() as tasks:
        for _ in range(200):
            tasks.start_soon(node.ask, "jobs", Enqueue(bytes(40_000)))
    await node.ask("jobs", Purge())
    clock.advance(1_000)
    with anyio.fail_after(10):
        while await file.unsettled():
            await breathe()
    return (await file.facts())["page_count"]


async def test_a_file_shrinks_by_itself(file, clock):
    async with Node(file, clock=clock, limits=Limits(**NOTHING)) as node:
        largest = await purge_much(node, file, clock)
        clock.advance(MINUTE_MS)
        with anyio.fail_after(10):
            while (await file.facts())["page_count"] > largest // 2:
                await breathe()


async def test_all_room_is_given_back_when_told(file, clock):
    async with Node(file, clock=clock, limits=Limits(**NOTHING)) as node:
        await purge_much(node, file, clock)
        while await file.prune(clock.now + 1, Retention(0, 0), 1_000):
            await breathe()
        reserve = (await file.facts())["freelist_count"]

        await node.compact("jobs")

        assert (reserve > 100, (await file.facts())["freelist_count"]) == (True, 0)
    with pytest.raises(Closed):
        await node.compact("jobs")


async def test_memory_has_no_room_to_give_back(node):
    await node.create("jobs", Settings())
    await node.compact("jobs")
