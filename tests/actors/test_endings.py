"""How an append ends is what its callers are told, and never more."""

import anyio
import pytest

from hq.backends.port import Ending
from hq.domain.commands import Browse, Count, Enqueue, Get, PauseGroup, Receive
from hq.domain.events import Claimed
from hq.domain.messages import Options
from hq.domain.settings import Settings
from hq.domain.tasks import Scope
from hq.errors import HQError, MessageNotFound, NotOwner, NotStored, OutcomeUnknown
from tests.actors.scripted import ScriptedBackend
from tests.actors.test_node import settle


@pytest.fixture
def backend():
    return ScriptedBackend()


@pytest.fixture
async def jobs(node):
    await node.create("jobs", Settings())
    await node.ask("jobs", Count())
    return node


class Calls:
    """Calls made side by side, and how each ended."""

    def __init__(self, node, tasks=None):
        self.node, self.tasks = node, tasks
        self.ended = {}

    async def call(self, name, command):
        self.tasks.start_soon(self._call, name, command)
        await settle()

    async def call_all(self, commands):
        """Together, so that they are decided together; returns when all have ended."""
        async with anyio.create_task_group() as tasks:
            for name, command in enumerate(commands):
                tasks.start_soon(self._call, name, command)

    async def _call(self, name, command):
        try:
            self.ended[name] = await self.node.ask("jobs", command)
        except HQError as error:
            self.ended[name] = type(error)


async def test_nobody_is_told_anything_before_it_is_durable(jobs, backend):
    async with anyio.create_task_group() as tasks:
        calls = Calls(jobs, tasks)
        backend.hold()
        await calls.call("enqueue", Enqueue(b"work"))
        await calls.call("receive", Receive())
        await calls.call("read", Count())
        await calls.call("refusal", Get(99))
        assert calls.ended == {}

        backend.let_go()

    assert calls.ended["read"].leased == 1
    assert calls.ended["refusal"] is MessageNotFound


async def test_what_comes_while_an_append_is_under_way_goes_with_the_next_one(jobs, backend):
    appends = backend.appends
    async with anyio.create_task_group() as tasks:
        calls = Calls(jobs, tasks)
        backend.hold()
        for number in range(20):
            await calls.call(number, Enqueue(b"work"))
        backend.let_go()

    assert backend.appends - appends == 2


@pytest.mark.parametrize(
    ("ending", "told", "behind"),
    [
        (Ending.REFUSED, NotStored, NotStored),
        (Ending.NOT_OWNER, NotOwner, NotOwner),
        (Ending.UNKNOWN, OutcomeUnknown, NotStored),
    ],
)
async def test_an_append_that_does_not_end_well_is_told_as_it_is(jobs, backend, ending, told, behind):
    async with anyio.create_task_group() as tasks:
        calls = Calls(jobs, tasks)
        backend.hold()
        backend.script.append(ending)
        await calls.call("first", Enqueue(b"first"))
        await calls.call("behind", Enqueue(b"behind"))
        backend.let_go()

    assert calls.ended == {"first": told, "behind": behind}
    assert (await jobs.ask("jobs", Count())).ready == 0


async def test_what_is_unknown_may_have_been_written(jobs, backend):
    backend.written_when_unknown = True
    backend.script.append(Ending.UNKNOWN)

    with pytest.raises(OutcomeUnknown):
        await jobs.ask("jobs", Enqueue(b"work"))

    assert (await jobs.ask("jobs", Count())).ready == 1


async def test_a_new_life_claims_the_queue_before_it_serves(jobs, backend):
    backend.script.append(Ending.REFUSED)
    with pytest.raises(NotStored):
        await jobs.ask("jobs", Enqueue(b"work"))
    await jobs.ask("jobs", Enqueue(b"more"))

    events = await backend.tail(jobs.number("jobs"), 0, 100)

    assert [event.epoch for event in events if isinstance(event, Claimed)] == [1, 2]
    assert [event.sequence for event in events] == list(range(1, len(events) + 1))


async def test_a_receive_that_waits_outlives_a_lost_life(jobs, backend):
    received = []

    async def receive():
        received.extend(await jobs.receive("jobs", Receive(), 10_000))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(receive)
        await settle()
        backend.script.append(Ending.REFUSED)
        with pytest.raises(NotStored):
            await jobs.ask("jobs", PauseGroup("lost"))
        await jobs.ask("jobs", Enqueue(b"work"))

    assert [delivery.payload for delivery in received] == [b"work"]


async def test_what_was_not_decided_when_storage_failed_is_decided_by_the_next_life(jobs, backend):
    backend.fetches.append(False)
    calls = Calls(jobs)
    with anyio.fail_after(5):
        await calls.call_all([Enqueue(b"%d" % n, Options(dedup_key=str(n))) for n in range(3)])

    assert not backend.fetches, "it was asked"
    assert [calls.ended[n].duplicate for n in range(3)] == [False] * 3
    assert (await jobs.ask("jobs", Count())).ready == 3


async def test_storage_that_fails_in_the_middle_of_a_command_makes_that_one_unknown_and_no_other(
    jobs, backend
):
    backend.fetches.append(False)
    calls = Calls(jobs)
    with anyio.fail_after(5):
        await calls.call_all([Enqueue(b"before"), Browse(Scope.LIVE), Enqueue(b"after")])

    assert not backend.fetches, "it was asked"
    assert calls.ended[0] is NotStored
    assert calls.ended[1] is OutcomeUnknown
    assert calls.ended[2].duplicate is False


async def test_a_receiver_that_goes_while_its_append_is_under_way_gives_the_attempt_back(jobs, backend):
    await jobs.ask("jobs", Enqueue(b"work"))
    backend.hold()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(jobs.ask, "jobs", Receive())
        await settle()
        tasks.cancel_scope.cancel()
    backend.let_go()
    await settle()

    [delivery] = await jobs.receive("jobs", Receive(), 0)

    assert (delivery.receives, delivery.attempts) == (2, 1)
