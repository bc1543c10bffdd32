"""What came of a message: its progress, its result, its error, awaited by whoever enqueued it."""

import anyio
import pytest

import hq
from hq.testing import FrozenClock, SeededChance


async def test_a_producer_awaits_the_result(queue):
    accepted = await queue.enqueue("work", result_ms=60_000)
    outcomes = []

    async def await_it():
        outcomes.append(await queue.outcome(accepted, wait_ms=60_000))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(await_it)
        [message] = await queue.receive(wait_ms=1_000)
        await message.complete(result={"sent": [1, None]})

    [outcome] = outcomes
    assert (outcome.id, outcome.state, outcome.is_over) == (accepted.id, "completed", True)
    assert outcome.result == {"sent": [1, None]}
    assert await queue.outcome(accepted.id) == outcome


async def test_several_await_the_same_message_and_others_wait_on(queue):
    first, other = [await queue.enqueue(n, result_ms=1_000) for n in (1, 2)]
    over = []

    async def await_it(accepted):
        over.append((await queue.outcome(accepted, wait_ms=60_000)).id)

    async with anyio.create_task_group() as tasks:
        for accepted in (first, first, other):
            tasks.start_soon(await_it, accepted)
        [message] = await queue.receive()
        await message.complete()
        with anyio.fail_after(60):
            while len(over) < 2:
                await anyio.lowlevel.checkpoint()
        assert over == [first.id, first.id]
        tasks.cancel_scope.cancel()


async def test_a_wait_ends_with_how_far_it_is(queue, clock, until):
    accepted = await queue.enqueue("work")
    [message] = await queue.receive()
    await message.report({"percent": 40})
    outcomes = []

    async def await_it():
        outcomes.append(await queue.outcome(accepted, wait_ms=5_000))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(await_it)

        async def is_over():
            clock.advance(1_000)
            return bool(outcomes)

        await until(is_over)

    assert (outcomes[0].state, outcomes[0].progress) == ("leased", {"percent": 40})


async def test_a_dead_letter_is_told_with_its_error(system):
    queue = await system.create_queue("once", max_attempts=1)
    accepted = await queue.enqueue("work")
    [message] = await queue.receive()

    await message.retry(error="no such address")

    outcome = await queue.outcome(accepted, wait_ms=60_000)
    assert (outcome.state, outcome.error, outcome.attempts) == ("failed", "no such address", 1)


async def test_nothing_is_kept_of_a_message_nobody_asked_about(queue):
    accepted = await queue.enqueue("work")
    [message] = await queue.receive()
    await message.complete(result=1)

    with pytest.raises(hq.MessageNotFound):
        await queue.outcome(accepted)


@pytest.mark.parametrize("ending", ["delete", "purge", "drop"])
async def test_who_awaits_a_message_that_goes_is_told(system, queue, ending):
    accepted = await queue.enqueue("work", result_ms=1_000)
    told = []

    async def await_it():
        try:
            await queue.outcome(accepted, wait_ms=60_000)
        except hq.HQError as error:
            told.append(type(error))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(await_it)
        await anyio.wait_all_tasks_blocked()
        match ending:
            case "delete":
                await queue.delete(accepted.id)
            case "purge":
                await queue.purge()
            case "drop":
                await system.delete_queue(queue.name)

    assert told == [hq.QueueNotFound if ending == "drop" else hq.MessageNotFound]


async def test_closing_does_not_wait_for_who_awaits(url):
    async with hq.open(url, clock=FrozenClock()) as system:
        queue = await system.create_queue("emails")
        accepted = await queue.enqueue("work")
        async with anyio.create_task_group() as tasks:
            errors = []

            async def await_it():
                try:
                    await queue.outcome(accepted, wait_ms=60_000)
                except hq.Closed as error:
                    errors.append(error)

            tasks.start_soon(await_it)
            await anyio.wait_all_tasks_blocked()
            await system.close()
        assert len(errors) == 1


async def test_a_result_survives_a_restart(tmp_path, clock):
    path = tmp_path / "hq.db"
    async with hq.open(path, clock=clock, chance=SeededChance()) as system:
        queue = await system.create_queue("emails")
        kept, forgotten = [await queue.enqueue(n, result_ms=ms) for n, ms in ((1, 10_000), (2, 1_000))]
        first, second = await queue.receive(2)
        await first.complete(result="x" * 20_000)
        await second.complete(result=2)
    clock.advance(seconds=2)
    async with hq.open(path, clock=clock, chance=SeededChance()) as system:
        queue = system.queue("emails")
        assert (await queue.outcome(kept)).result == "x" * 20_000
        with pytest.raises(hq.MessageNotFound):
            await queue.outcome(forgotten)


async def test_the_next_attempt_finds_the_progress(queue):
    await queue.enqueue("work")
    [message] = await queue.receive()
    assert message.progress is None
    await message.report([1, 2])
    await message.release()

    [message] = await queue.receive()
    assert message.progress == [1, 2]


@pytest.mark.parametrize("wrong", [(1, 2), {1: 2}, float("nan"), object()])
async def test_what_json_would_change_is_no_result(queue, wrong):
    await queue.enqueue("work", result_ms=1_000)
    [message] = await queue.receive()

    for verb in (message.report, lambda value: message.complete(result=value)):
        with pytest.raises(hq.InvalidInput):
            await verb(wrong)
    assert message.state == "leased"


async def test_only_so_many_may_await(clock):
    async with hq.open("memory:", clock=clock, limits=hq.Limits(waiters=1)) as system:
        queue = await system.create_queue("emails")
        accepted = await queue.enqueue("work")
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(lambda: queue.outcome(accepted.id, wait_ms=1_000))
            await anyio.wait_all_tasks_blocked()
            with pytest.raises(hq.Overloaded):
                await queue.outcome(accepted.id, wait_ms=1_000)
            assert (await queue.outcome(accepted.id)).state == "ready"
            tasks.cancel_scope.cancel()


def test_a_thread_awaits_the_result():
    with hq.blocking.open("memory:") as system:
        queue = system.create_queue("emails")
        accepted = queue.enqueue("work", result_ms=60_000)
        [message] = queue.receive()
        message.report(1)
        assert queue.outcome(accepted).progress == 1
        message.complete(result=[2])
        assert queue.outcome(accepted, wait_ms=1_000).result == [2]
