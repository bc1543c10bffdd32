"""A connection lost at any statement, before it or after: told truly, whole or not at all, and healed."""

import anyio
import pytest

from hq.backends.port import Batch, Ending
from hq.backends.postgres import Term
from hq.domain.checkpoint import Chunk, Snapshot
from hq.domain.events import Claimed, Resumed
from hq.domain.lookups import START, Bounds, KeyOf, PayloadOf, RowOf, ShelfPage
from hq.domain.messages import NO_PRIORITY, Options
from hq.domain.settings import Settings
from hq.errors import StorageError
from tests.backends.samples import columns, row
from tests.postgres.severed import Severed, When
from tests.postgres.wire import listening

# More than any verb sends.
MOST = 40
EVERYWHERE = pytest.mark.parametrize("when", When)
FAR = 1 << 61
LOOKUPS = [Bounds(), ShelfPage(NO_PRIORITY, START, FAR, 10), RowOf(1), PayloadOf(1), KeyOf(("", "a"))]


@pytest.fixture
async def line(postgres_url, tmp_path):
    """The relay before the server. Ask for it before `opened`."""
    relay = Severed(postgres_url)
    async with listening(tmp_path, postgres_url, relay.serve) as relay.reached_at:
        yield relay


@pytest.fixture
async def backend(line, opened):
    # No heartbeat comes between.
    return await opened(url=line.reached_at, term=Term(time_s=600, margin_s=2))


async def at_each_statement(line, when, act, check):
    """Sever at an act's first statement, then at its second, until it ends untouched; how many it has."""
    for statement in range(1, MOST):
        line.arm(statement, when)
        ending = None
        try:
            ending = await act(statement)
        except StorageError as error:
            ending = error
        severed = line.severed
        line.disarm()
        with anyio.fail_after(1):
            await check(statement, ending, severed)
        if not severed:
            return statement - 1
    raise AssertionError("it never ends")


@EVERYWHERE
async def test_an_append(line, backend, when):
    queue = (await backend.create("jobs", Settings())).number
    written, unheard = [], []

    async def append(_):
        [ending] = await backend.append([Batch(queue, 0, [Resumed(len(written) + 1, 0)])])
        return ending

    async def check(_, ending, severed):
        before = list(written)
        written[:] = await backend.tail(queue, 0, 100)
        assert ending is (Ending.UNKNOWN if severed else Ending.DURABLE), "lost, nobody can say what it was"
        assert written[: len(before)] == before
        unheard.append(written[len(before) :] == [Resumed(len(before) + 1, 0)])

    await at_each_statement(line, when, append, check)
    # The driver asks a new connection for types first. Of what it is sent, one statement is the append.
    assert unheard[:-1].count(True) == (when is When.AFTER)
    assert unheard[-1]


@EVERYWHERE
async def test_a_load_and_a_claim(line, backend, when):
    queue = (await backend.create("jobs", Settings())).number
    await backend.checkpoint(queue, Chunk([row(1)], [], {}, Snapshot(Settings(), sequence=7)), None)
    epoch = 0

    async def claim(_):
        loaded = await backend.load(queue)
        assert await backend.tail(queue, loaded.snapshot.sequence, 100) == claims()
        return await backend.append([Batch(queue, epoch + 1, [Claimed(8 + epoch, 0, epoch + 1)])])

    def claims():
        return [Claimed(7 + number, 0, number) for number in range(1, epoch + 1)]

    async def check(_, ending, severed):
        nonlocal epoch
        assert ending == [Ending.DURABLE] or severed
        epoch = len(await backend.tail(queue, 7, 100))
        assert await backend.tail(queue, 7, 100) == claims()

    assert await at_each_statement(line, when, claim, check) >= 5


@EVERYWHERE
async def test_a_fetch(line, backend, when):
    queue = (await backend.create("jobs", Settings())).number
    rows = [row(1), row(2, Options(priority=3))]
    await backend.checkpoint(queue, Chunk(rows, [], {}, None), None)

    async def fetch(_):
        bounds, page, one, payload, key = await backend.fetch(queue, LOOKUPS)
        return bounds, [columns(found) for found in page.rows], columns(one), payload, key

    expected = await fetch(0)

    async def check(_, found, severed):
        assert found == expected or (severed and isinstance(found, StorageError))

    assert await at_each_statement(line, when, fetch, check) >= 5


@EVERYWHERE
async def test_a_checkpoint(line, backend, when):
    queue = (await backend.create("jobs", Settings())).number
    await backend.checkpoint(queue, Chunk([row(1, Options(group="a"))], [], {}, None), None)
    before = 1

    async def write(statement):
        key = {("", str(statement)): (statement + 1, FAR, True, None, statement + 1)}
        rows = [row(statement + 1, Options(group="a"))]
        snapshot = Snapshot(Settings(), sequence=statement + 1)
        await backend.checkpoint(queue, Chunk(rows, [before], key, snapshot), None)

    async def check(statement, ending, severed):
        nonlocal before
        mark = (await backend.load(queue)).snapshot.sequence
        [old, new, key] = await backend.fetch(
            queue, [RowOf(before), RowOf(statement + 1), KeyOf(("", str(statement)))]
        )
        is_written = mark == statement + 1
        assert [old is None, new is not None, key is not None] == [is_written] * 3, "whole or not at all"
        assert is_written or severed
        assert isinstance(ending, StorageError) if severed else ending is None
        if is_written:
            before = statement + 1

    assert await at_each_statement(line, when, write, check) >= 8


@EVERYWHERE
async def test_the_making_of_a_queue(line, backend, when):
    async def make(statement):
        return await backend.create(f"q{statement}", Settings(max_attempts=statement))

    async def check(statement, made, severed):
        found = [one for one in await backend.queues() if one.name == f"q{statement}"]
        assert all(one.settings == Settings(max_attempts=statement) for one in found), "whole or not at all"
        assert isinstance(made, StorageError) if severed else found == [made]

    assert await at_each_statement(line, when, make, check) >= 4
