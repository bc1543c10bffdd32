"""Work on many messages at once: requeue, move and delete as tasks, with a rate, progress and cancel."""

from functools import partial

import pytest

import hq

SLOW = hq.Rate(1, per_ms=1_000)


async def fill(queue, count=3, **options):
    await queue.enqueue_many([hq.Outgoing(str(number), **options) for number in range(count)])


async def fail(queue, count=3, **options):
    await fill(queue, count, **options)
    for message in await queue.receive(count):
        await message.fail()


async def payloads(queue):
    return [seen.payload for seen in await queue.browse(limit=1_000)]


async def counts(queue):
    stats = await queue.stats()
    return stats.ready, stats.failed, stats.deleted, stats.moved


@pytest.fixture
def done(until):
    """Wait until a queue has no task left and nothing on its way."""

    async def wait(queue):
        async def ended():
            return not await queue.tasks() and not (await queue.stats()).moving

        await until(ended)

    return wait


async def test_all_dead_letters_come_back(queue, done):
    await fail(queue)

    await queue.requeue_dead_letters()
    await done(queue)

    assert await counts(queue) == (3, 0, 0, 0)


async def test_dead_letters_of_a_group_or_a_reason_come_back(system, done):
    queue = await system.create_queue("jobs", groups="label")
    await fail(queue, 1, group="a")
    await fail(queue, 1, group="b")
    await fill(queue, 1, max_attempts=1)
    for message in await queue.receive():
        await message.retry()

    await queue.requeue_dead_letters(group="b")
    await done(queue)
    assert [seen.group for seen in await queue.browse()] == ["b"]

    await queue.requeue_dead_letters(reason="attempts")
    await done(queue)
    assert [seen.group for seen in await queue.dead_letters()] == ["a"]


async def test_what_waits_moves_to_another_queue_in_its_order(system, queue, done):
    other = await system.create_queue("other")
    accepted = await queue.enqueue("first", priority=3)
    await fill(queue)

    await queue.move_waiting("other")
    await done(queue)

    assert (await payloads(queue), await payloads(other)) == ([], ["first", "0", "1", "2"])
    [moved] = await other.peek()
    assert (moved.origin_id, moved.priority) == (accepted.id, 3)


async def test_more_messages_than_a_step_takes_all_move(system, queue, done):
    other = await system.create_queue("other")
    await fill(queue, 150)

    await queue.move_waiting("other")
    await done(queue)

    assert (await counts(queue), (await other.stats()).ready) == ((0, 0, 0, 150), 150)


async def test_what_waits_in_a_group_moves(system, queue, done):
    other = await system.create_queue("other")
    await fill(queue, 1, group="a")
    await fill(queue, 2, group="b")

    await queue.move_waiting("other", group="b")
    await done(queue)

    assert ((await queue.stats()).ready, (await other.stats()).ready) == (1, 2)


async def test_dead_letters_move_and_can_be_received_there(system, queue, done):
    other = await system.create_queue("other")
    await fail(queue)
    await fill(queue, 1)

    await queue.move_dead_letters("other", reason="failed")
    await done(queue)

    assert (await counts(queue), await payloads(other)) == ((1, 0, 0, 3), ["0", "1", "2"])


@pytest.mark.parametrize("verb", ["move_waiting", "move_dead_letters"])
async def test_a_move_needs_another_queue_that_is_there(system, queue, verb):
    await fill(queue)
    with pytest.raises(hq.QueueNotFound):
        await getattr(queue, verb)("nowhere")
    with pytest.raises(hq.InvalidInput, match="itself"):
        await getattr(queue, verb)("emails")
    with pytest.raises(hq.InvalidInput, match="queue name"):
        await getattr(queue, verb)(None)
    assert await counts(queue) == (3, 0, 0, 0)


async def test_what_waits_is_deleted_and_leases_and_dead_letters_stay(queue, done):
    await fail(queue, 1)
    await fill(queue, 4, group="a")
    await fill(queue, 2, group="b")
    await queue.receive()

    await queue.delete_waiting(group="a")
    await done(queue)
    assert await counts(queue) == (2, 1, 3, 0)

    await queue.delete_waiting()
    await done(queue)
    assert ((await queue.stats()).leased, await counts(queue)) == (1, (0, 1, 5, 0))


async def test_dead_letters_are_deleted(queue, done):
    await fail(queue, 2, group="a")
    await fail(queue, 1, group="b")
    await fill(queue, 1)

    await queue.delete_dead_letters(group="a", reason="failed")
    await done(queue)

    assert await counts(queue) == (1, 1, 2, 0)


async def test_a_task_goes_at_its_rate_and_tells_how_far_it_came(queue, clock, until):
    await fail(queue)
    number = await queue.requeue_dead_letters(group=None, reason="failed", rate=SLOW)

    async def advanced(count):
        [task] = await queue.tasks()
        return task.done == count

    await until(partial(advanced, 1))
    clock.advance(seconds=1)
    await until(partial(advanced, 2))

    [task] = await queue.tasks()
    assert (task.number, task.kind, task.reason, task.rate) == (number, "requeue", "failed", SLOW)
    assert (task.scope, task.target, task.group) == ("failed", None, None)
    assert 0 < task.percent < 100


async def test_a_cancelled_task_stops_and_says_how_many_it_took(system, queue, until):
    await system.create_queue("other")
    await fill(queue)
    number = await queue.move_waiting("other", rate=SLOW)

    async def begun():
        [task] = await queue.tasks()
        return task.done == 1

    await until(begun)

    assert await queue.cancel_task(number) == 1
    assert (await queue.tasks(), (await queue.stats()).ready) == ([], 2)
    with pytest.raises(hq.TaskNotFound):
        await queue.cancel_task(number)


async def test_a_task_goes_on_when_the_system_is_opened_again(tmp_path, clock, until):
    async with hq.open(tmp_path / "hq.db", clock=clock) as system:
        queue = await system.create_queue("emails")
        await fail(queue, 4)
        await queue.requeue_dead_letters(rate=hq.Rate(2, per_ms=1_000, burst=2))
    clock.advance(seconds=1)

    async with hq.open(tmp_path / "hq.db", clock=clock) as system:
        queue = system.queue("emails")

        async def ended():
            return (await queue.stats()).ready == 4

        await until(ended)


@pytest.mark.parametrize(
    "wrong", [{"rate": 5}, {"group": 5}, {"group": "x" * 200}, {"reason": 5}, {"reason": ["failed"]}]
)
async def test_a_filter_or_rate_of_the_wrong_kind_is_refused(queue, wrong):
    with pytest.raises(hq.InvalidInput):
        await queue.requeue_dead_letters(**wrong)
    assert await queue.tasks() == []


@pytest.mark.parametrize("number", ["1", None, [1], -1, 1.0])
async def test_a_task_is_named_by_its_number(queue, number):
    with pytest.raises(hq.InvalidInput):
        await queue.cancel_task(number)
