"""The inbox is asked once for all queues, as often as it is used, and gives each queue a row at a time."""

import logging
from collections import Counter

import pytest
from anyio.lowlevel import checkpoint as breathe

from hq.actors.inbox import EVERY_MS, FAILED_MS, QUIET_AFTER_MS, QUIET_MS
from hq.backends.port import Ending, InboxRow
from hq.domain.commands import Complete, Count, Receive, TakeIn
from hq.domain.events import Claimed
from hq.domain.messages import Options
from hq.domain.settings import Settings
from hq.errors import DatabaseUnreachable
from tests.actors.scripted import ScriptedBackend


class Inboxed(ScriptedBackend):
    """A memory backend with an inbox: rows leave it with the batch that names them."""

    has_inbox = True

    def __init__(self):
        super().__init__()
        self.rows = {}
        self.reads = 0
        self.trouble = []

    def commit(self, queue, *payloads, **options):
        for payload in payloads:
            row = max(self.rows, default=0) + 1
            self.rows[row] = InboxRow(row, queue, TakeIn(f"ticket {row}", payload, Options(**options)))

    async def inbox(self, busy):
        self.reads += 1
        if self.trouble:
            raise self.trouble.pop()
        return [row for row in self.rows.values() if row.queue not in busy]

    async def append(self, batches):
        endings = await super().append(batches)
        for batch, ending in zip(batches, endings, strict=True):
            is_late = ending is Ending.UNKNOWN and self.written_when_unknown
            for row in batch.taken if ending is Ending.DURABLE or is_late else ():
                del self.rows[row]
        return endings


@pytest.fixture
def backend():
    return Inboxed()


async def pass_time(clock, ms, step_ms=5):
    for _ in range(0, ms, step_ms):
        clock.advance(step_ms)
        for _ in range(50):
            await breathe()


async def jobs(node, **settings):
    return (await node.create("jobs", Settings(**settings))).number


async def payloads(node, limit=10):
    return [delivery.payload for delivery in await node.receive("jobs", Receive(limit), 0)]


async def test_what_was_committed_is_taken_in_its_order(node, backend, clock):
    backend.commit(await jobs(node), b"1", b"2", b"3")

    await pass_time(clock, EVERY_MS + 20)

    assert await payloads(node) == [b"1", b"2", b"3"]
    assert backend.rows == {}


async def test_rows_under_way_are_not_given_twice(node, backend, clock):
    number = await jobs(node)
    await node.ask("jobs", Count())
    backend.commit(number, b"1", b"2")
    backend.hold()
    await pass_time(clock, 10 * EVERY_MS)
    backend.commit(number, b"3")
    await pass_time(clock, 10 * EVERY_MS)
    backend.let_go()
    await pass_time(clock, 2 * EVERY_MS)

    assert await payloads(node) == [b"1", b"2", b"3"]
    events = Counter(type(event) for entry in await node.journal(0, 100) for event in entry.events)
    assert events[Claimed] == 1, "no append was refused"


@pytest.mark.parametrize("ending", [Ending.REFUSED, Ending.NOT_OWNER, Ending.UNKNOWN])
async def test_what_an_append_did_not_take_is_taken_by_the_next_life(node, backend, clock, ending):
    number = await jobs(node)
    await node.ask("jobs", Count())
    backend.commit(number, b"1", b"2")
    backend.script.append(ending)

    await pass_time(clock, 1_000)

    assert await payloads(node) == [b"1", b"2"]


async def test_what_an_append_took_without_saying_so_is_not_taken_again(node, backend, clock):
    number = await jobs(node)
    await node.ask("jobs", Count())
    backend.commit(number, b"1", b"2")
    backend.script.append(Ending.UNKNOWN)
    backend.written_when_unknown = True

    await pass_time(clock, 1_000)

    assert await payloads(node) == [b"1", b"2"]


async def test_a_full_queue_takes_them_as_room_is_made(node, backend, clock):
    backend.commit(await jobs(node, capacity=1), b"1", b"2")
    await pass_time(clock, 2 * EVERY_MS)
    [first] = await node.receive("jobs", Receive(5), 0)
    await pass_time(clock, 2 * EVERY_MS)
    assert len(backend.rows) == 1

    await node.ask("jobs", Complete(first.message, first.token))
    await pass_time(clock, 2 * EVERY_MS)

    assert (first.payload, await payloads(node)) == (b"1", [b"2"])


async def test_a_node_that_closes_leaves_what_there_is_no_room_for(new_node, backend, clock):
    async with new_node() as node:
        backend.commit(await jobs(node, capacity=1), b"1", b"2")
        await pass_time(clock, 2 * EVERY_MS)

    assert [row.command.payload for row in backend.rows.values()] == [b"2"]


async def test_it_is_asked_less_often_when_nothing_comes(node, backend, clock):
    number = await jobs(node)
    await pass_time(clock, QUIET_AFTER_MS)
    before = backend.reads
    await pass_time(clock, 10 * QUIET_MS)
    quiet = backend.reads - before

    backend.commit(number, b"used")
    await pass_time(clock, QUIET_MS)
    before = backend.reads
    await pass_time(clock, 10 * QUIET_MS)

    assert quiet == 10
    assert backend.reads - before == 10 * QUIET_MS // EVERY_MS


@pytest.mark.parametrize("trouble", [DatabaseUnreachable(), ZeroDivisionError()])
async def test_trouble_with_it_stops_nothing_else(node, backend, clock, caplog, trouble):
    number = await jobs(node)
    backend.trouble.append(trouble)
    with caplog.at_level(logging.CRITICAL, "hq.inbox"):
        await pass_time(clock, EVERY_MS)
        assert backend.trouble == []
        backend.commit(number, b"later")
        await pass_time(clock, FAILED_MS + 2 * EVERY_MS)

    assert await payloads(node) == [b"later"]


async def test_a_backend_without_one_is_not_asked(new_node, backend, clock):
    backend.has_inbox = False

    async with new_node():
        await pass_time(clock, 1_000)

    assert backend.reads == 0
