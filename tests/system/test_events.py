"""Events: what happened is told in its order, once it is durable, from any place on, in every place."""

import anyio
import pytest

import hq


async def some(events, count):
    with anyio.fail_after(60):
        return [await anext(events) for _ in range(count)]


async def kinds_of(events, count):
    return [event.kind for event in await some(events, count)]


LIFE = {"enqueued", "received", "retried", "completed", "failed", "lapsed"}


async def test_the_life_of_a_message_is_told_in_its_order(system, queue, clock):
    async with system.events(kinds=LIFE) as events:
        accepted = await queue.enqueue({"to": "ada"}, priority=3)
        [message] = await queue.receive(holder="h")
        await message.retry(delay_ms=0, error="not now")
        [message] = await queue.receive()
        await message.complete()

        told = await some(events, 5)
    assert [event.kind for event in told] == ["enqueued", "received", "retried", "received", "completed"]
    assert {(event.queue, event.message_id, event.at) for event in told} == {
        ("emails", accepted.id, clock.now)
    }
    assert told[0].details["priority"] == 3
    assert told[1].details["holder"] == "h"
    assert told[2].details["error"] == "not now"


async def test_neither_payload_nor_token_is_told(system, queue):
    async with system.events() as events:
        await queue.enqueue("a secret")
        [message] = await queue.receive()
        told = repr(await some(events, 3))
    assert "secret" not in told
    assert message.token.hex() not in told


async def test_the_seven_of_hydra_are_named(system, queue, clock):
    await queue.configure(max_attempts=2)
    async with system.events(kinds=LIFE) as events:
        await queue.set_schedule("nightly", "x", every_ms=1_000)
        clock.advance(1_000)
        with anyio.fail_after(60):
            [message] = await queue.receive(wait_ms=60_000)
        await message.retry(delay_ms=0)
        [message] = await queue.receive(lease_ms=10)
        await message.fail(error="broken")
        await queue.remove_schedule("nightly")
        await queue.enqueue("y")
        await queue.receive(lease_ms=10)
        clock.advance(10)
        [message] = await queue.receive()
        await message.complete()
        told = [event.hydra for event in await some(events, 10)]
    assert told == [
        ("MESSAGE_SCHEDULED",),
        ("MESSAGE_DEQUEUED",),
        ("MESSAGE_LOCKED",),
        ("MESSAGE_UNLOCKED", "MESSAGE_DEQUEUED"),
        ("MESSAGE_EXPIRED",),
        (),
        ("MESSAGE_DEQUEUED",),
        ("MESSAGE_CLEANED",),
        ("MESSAGE_UNLOCKED", "MESSAGE_DEQUEUED"),
        ("MESSAGE_PROCESSED",),
    ]


async def test_a_queue_tells_of_itself_alone(system, queue):
    other = await system.create_queue("other")
    async with queue.events() as events:
        await other.enqueue("x")
        await queue.pause("for a test")
        [first, second] = await some(events, 2)
    assert (first.kind, second.kind, second.queue) == ("claimed", "paused", "emails")


async def test_a_prefix_ends_at_a_dot(system):
    async with system.events(prefix="mail", kinds=["enqueued"]) as events:
        for name in ("mail", "mailbox", "mail.eu", "other"):
            await (await system.create_queue(name)).enqueue("x")
        told = await some(events, 2)
    assert [event.queue for event in told] == ["mail", "mail.eu"]


async def test_after_an_event_comes_the_next_even_in_the_middle_of_a_batch(system, queue):
    async with system.events(kinds=["enqueued"]) as events:
        accepted = await queue.enqueue_many(["a", "b", "c"])
        told = await some(events, 3)

    for number, event in enumerate(told[:2]):
        async with system.events(after=event.cursor, kinds=["enqueued"]) as events:
            rest = await some(events, 2 - number)
        assert [one.message_id for one in rest] == [one.id for one in accepted[number + 1 :]]


async def test_from_the_beginning_everything_is_told_again(system, queue):
    await queue.enqueue_many(["a", "b"])
    async with queue.events(after="0") as events:
        assert await kinds_of(events, 3) == ["claimed", "enqueued", "enqueued"]


async def test_whoever_gives_up_waiting_misses_nothing(system, queue):
    async with system.events(kinds=["enqueued"]) as events:
        with anyio.move_on_after(0.05):
            await anext(events)
        await queue.enqueue("x")
        assert await kinds_of(events, 1) == ["enqueued"]


async def test_the_iteration_ends_when_the_system_is_closed(system, queue):
    told = []

    async def listen(events):
        told.extend([event.kind async for event in events])

    with anyio.fail_after(60):
        async with system.events(kinds=["enqueued"]) as events, anyio.create_task_group() as tasks:
            tasks.start_soon(listen, events)
            await queue.enqueue("x")
            await anyio.wait_all_tasks_blocked()
            await system.close()
    assert set(told) <= {"enqueued"}


async def test_a_handler_is_called_for_each_and_outlives_its_own_errors(system, queue, until, caplog):
    called = []

    async def handle(event):
        called.append(event.message_id)
        if len(called) == 1:
            raise ValueError("once")

    handler = system.add_event_handler(handle, kinds=["enqueued"])
    await handler.began.wait()
    accepted = await queue.enqueue_many(["a", "b"])

    async def is_done():
        return len(called) == 2

    await until(is_done)
    assert called == [one.id for one in accepted]
    assert "an event handler failed" in caplog.text
    handler.close()


@pytest.mark.parametrize(
    "wrong",
    [
        {"after": "yesterday"},
        {"after": "1.2.3"},
        {"queue": "a", "prefix": "b"},
        {"queue": "a b"},
        {"kinds": ["born"]},
        {"since": "1"},
    ],
)
async def test_what_makes_no_sense_is_refused_at_once(system, wrong):
    with pytest.raises(hq.InvalidInput):
        system.events(**wrong)


async def test_a_place_the_journal_never_had_is_refused(system):
    with pytest.raises(hq.InvalidInput):
        async with system.events(after="1000"):
            pass


async def test_events_are_there_for_threads_too(url):
    def listen():
        with hq.blocking.open(url) as system:
            queue = system.create_queue("emails")
            events = system.events(kinds=["enqueued"])
            accepted = queue.enqueue("x")
            event = next(events)
            events.close()
            return event.message_id == accepted.id

    assert await anyio.to_thread.run_sync(listen)
