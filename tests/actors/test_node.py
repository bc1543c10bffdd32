"""A node from outside: what its callers are promised."""

import anyio
import pytest
from anyio.lowlevel import checkpoint as breathe

from hq.domain.commands import Complete, Count, Enqueue, Get, PauseGroup, Receive, SetSchedule
from hq.domain.messages import Options
from hq.domain.schedules import Schedule
from hq.domain.settings import Settings
from hq.errors import Closed, InvalidInput, LeaseNotHeld, MessageNotFound, QueueExists, QueueNotFound


async def settle():
    """Let every task that can run do so."""
    for _ in range(50):
        await breathe()


async def test_a_message_goes_in_and_out_and_is_completed(node):
    await node.create("jobs", Settings())

    accepted = await node.ask("jobs", Enqueue(b"work"))
    [delivery] = await node.receive("jobs", Receive(), 0)
    await node.ask("jobs", Complete(delivery.message, delivery.token))

    assert delivery.message == accepted.message
    assert delivery.payload == b"work"
    assert await node.receive("jobs", Receive(), 0) == []


async def test_a_refusal_is_raised_to_its_caller_alone(node):
    await node.create("jobs", Settings())
    await node.ask("jobs", Enqueue(b"work"))
    [delivery] = await node.receive("jobs", Receive(), 0)

    with pytest.raises(LeaseNotHeld):
        await node.ask("jobs", Complete(delivery.message, b"some other token"))

    await node.ask("jobs", Complete(delivery.message, delivery.token))


async def test_an_unknown_queue_is_said_to_be_unknown(node):
    with pytest.raises(QueueNotFound):
        await node.ask("nowhere", Count())


async def test_creating_twice_finds_the_queue_and_other_settings_are_refused(node):
    first = await node.create("jobs", Settings())

    assert await node.create("jobs", Settings()) == first
    with pytest.raises(QueueExists):
        await node.create("jobs", Settings(max_attempts=1))


async def test_a_dropped_queue_is_gone_and_its_name_free(node):
    first = await node.create("jobs", Settings())
    await node.ask("jobs", Enqueue(b"work"))

    await node.drop("jobs")

    with pytest.raises(QueueNotFound):
        await node.ask("jobs", Count())
    second = await node.create("jobs", Settings())
    assert second.number != first.number
    assert (await node.ask("jobs", Count())).ready == 0


async def test_a_waiting_receive_gets_what_comes(node):
    await node.create("jobs", Settings())
    received = []

    async def receive():
        received.extend(await node.receive("jobs", Receive(), 10_000))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(receive)
        await settle()
        assert received == []
        await node.ask("jobs", Enqueue(b"work"))

    assert [delivery.payload for delivery in received] == [b"work"]


async def test_waiting_receives_are_served_in_the_order_they_came(node):
    await node.create("jobs", Settings())
    served = []

    async def receive(name):
        deliveries = await node.receive("jobs", Receive(), 10_000)
        served.extend((name, delivery.payload) for delivery in deliveries)

    async with anyio.create_task_group() as tasks:
        for name in "abc":
            tasks.start_soon(receive, name)
            await settle()
        for payload in (b"1", b"2", b"3"):
            await node.ask("jobs", Enqueue(payload))

    assert served == [("a", b"1"), ("b", b"2"), ("c", b"3")]


async def test_a_receive_waits_no_longer_than_it_said(node, clock):
    await node.create("jobs", Settings())
    received = []

    async def receive():
        received.append(await node.receive("jobs", Receive(), 1_000))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(receive)
        await settle()
        clock.advance(999)
        await settle()
        assert received == []
        clock.advance(1)

    assert received == [[]]


async def test_a_delayed_message_wakes_a_waiting_receive_at_its_instant(node, clock):
    await node.create("jobs", Settings())
    received = []

    async def receive():
        received.extend(await node.receive("jobs", Receive(), 10_000))

    async with anyio.create_task_group() as tasks:
        await node.ask("jobs", Enqueue(b"later", Options(delay_ms=500)))
        tasks.start_soon(receive)
        await settle()
        clock.advance(499)
        await settle()
        assert received == []
        clock.advance(1)

    assert [delivery.payload for delivery in received] == [b"later"]


async def test_a_receiver_that_went_away_takes_nothing(node):
    await node.create("jobs", Settings())
    with anyio.CancelScope() as gone:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(node.receive, "jobs", Receive(), 10_000)
            await settle()
            gone.cancel()

    await node.ask("jobs", Enqueue(b"work"))

    [delivery] = await node.receive("jobs", Receive(), 0)
    assert delivery.attempts == 1


async def test_a_lease_that_ends_gives_the_message_to_a_waiting_receive(node, clock):
    await node.create("jobs", Settings(lease_ms=100))
    await node.ask("jobs", Enqueue(b"work"))
    await node.receive("jobs", Receive(), 0)
    received = []

    async def receive():
        received.extend(await node.receive("jobs", Receive(), 10_000))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(receive)
        await settle()
        clock.advance(100)

    assert [delivery.receives for delivery in received] == [2]


async def test_everything_is_there_when_a_node_is_opened_again(new_node):
    async with new_node() as node:
        await node.create("jobs", Settings())
        for number in range(5):
            await node.ask("jobs", Enqueue(b"%d" % number))
        [first, _] = await node.receive("jobs", Receive(2), 0)
        await node.ask("jobs", Complete(first.message, first.token))

    async with new_node() as node:
        stats = await node.ask("jobs", Count())
        payloads = [delivery.payload for delivery in await node.receive("jobs", Receive(10), 0)]

    assert (stats.ready, stats.leased, stats.completed) == (3, 1, 1)
    assert payloads == [b"2", b"3", b"4"]


async def test_a_closed_node_says_so(new_node):
    async with new_node() as node:
        await node.create("jobs", Settings())

    with pytest.raises(Closed):
        await node.ask("jobs", Count())


async def test_closing_answers_who_waits_with_nothing(new_node):
    received = []

    async def receive(node):
        received.append(await node.receive("jobs", Receive(), 10_000))

    async with anyio.create_task_group() as tasks, new_node() as node:
        await node.create("jobs", Settings())
        tasks.start_soon(receive, node)
        await settle()

    assert received == [[]]


async def test_an_idle_queue_sleeps_and_wakes_when_its_time_comes(new_node, clock):
    async with new_node(idle_ms=1_000) as node:
        await node.create("jobs", Settings(lease_ms=50_000))
        await node.ask("jobs", Enqueue(b"short", Options(ttl_ms=20_000)))
        await settle()
        clock.advance(1_000)
        await settle()
        assert node.directory.awake() == []

        clock.advance(19_000)
        await settle()

        assert (await node.ask("jobs", Count())).expired == 1


async def test_a_schedule_ticks(node, clock):
    await node.create("jobs", Settings())
    await node.ask("jobs", SetSchedule(Schedule("minutely", "every 60000", b"tick"), clock.now + 60_000))
    for _ in range(3):
        clock.advance(minutes=1)
        await settle()

    assert (await node.ask("jobs", Count())).ready == 3


async def test_a_failed_message_moves_to_the_dead_letter_queue_once(node, clock):
    await node.create("dead", Settings())
    await node.create("jobs", Settings(max_attempts=1, lease_ms=10, dead_letter_queue="dead"))
    await node.ask("jobs", Enqueue(b"poison"))
    await node.receive("jobs", Receive(), 0)
    clock.advance(10)
    await settle()

    [moved] = await node.receive("dead", Receive(10), 0)
    stats = await node.ask("jobs", Count())

    assert moved.payload == b"poison"
    assert moved.origin_id is not None
    assert (stats.failed, stats.moving, stats.moved) == (0, 0, 1)


async def test_a_move_to_a_queue_that_is_not_there_stays_in_the_dead_letters(node, clock):
    await node.create("jobs", Settings(max_attempts=1, lease_ms=10, dead_letter_queue="nowhere"))
    await node.ask("jobs", Enqueue(b"poison"))
    await node.receive("jobs", Receive(), 0)
    clock.advance(10)
    await settle()

    stats = await node.ask("jobs", Count())
    assert (stats.failed, stats.moving) == (1, 0)


@pytest.fixture
async def chain(node):
    """The dead letters of a go to b, those of b to c; c keeps its own."""
    await node.create("a", Settings(dead_letter_queue="b"))
    await node.create("b", Settings(dead_letter_queue="c"))
    await node.create("c", Settings())
    return node


@pytest.mark.parametrize("target", ["a", "b", "c"])
async def test_dead_letters_that_would_come_back_are_refused(chain, target):
    with pytest.raises(InvalidInput, match="come back"):
        await chain.configure("c", Settings(dead_letter_queue=target))

    settings = {row.name: row.settings for row in await chain.queues()}
    assert settings["c"] == Settings()


@pytest.mark.parametrize("target", ["a", "b", "c", "new"])
async def test_a_queue_whose_dead_letters_would_come_back_is_not_made(chain, target):
    await chain.configure("c", Settings(dead_letter_queue="new"))

    with pytest.raises(InvalidInput, match="come back"):
        await chain.create("new", Settings(dead_letter_queue=target))

    assert [row.name for row in await chain.queues()] == ["a", "b", "c"]


async def test_dead_letters_may_go_where_others_already_go(chain):
    await chain.create("new", Settings(dead_letter_queue="b"))
    await chain.configure("a", Settings(dead_letter_queue="c"))

    targets = {row.name: row.settings.dead_letter_queue for row in await chain.queues()}
    assert targets == {"a": "c", "b": "c", "c": None, "new": "b"}


async def test_a_receive_over_a_prefix_serves_the_least_recently_served_first(node):
    for name in ("mail.a", "mail.b", "mails"):
        await node.create(name, Settings())
        await node.ask(name, Enqueue(name.encode()))
        await node.ask(name, Enqueue(name.encode()))

    served = [(await node.receive_under("mail", Receive(), 0))[0] for _ in range(5)]

    assert served == ["mail.a", "mail.b", "mail.a", "mail.b", ""]


async def test_a_receive_over_a_prefix_waits_for_any_of_its_queues(node):
    for name in ("mail.a", "mail.b"):
        await node.create(name, Settings())
    served = []

    async def receive():
        served.append(await node.receive_under("mail", Receive(), 10_000))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(receive)
        await settle()
        await node.ask("mail.b", Enqueue(b"work"))

    [(name, [delivery])] = served
    assert (name, delivery.payload) == ("mail.b", b"work")


async def test_a_read_of_what_is_gone_is_refused(node):
    await node.create("jobs", Settings())

    with pytest.raises(MessageNotFound):
        await node.ask("jobs", Get(1))


async def test_commands_for_many_queues_go_side_by_side(node):
    names = [f"q.{number}" for number in range(20)]
    for name in names:
        await node.create(name, Settings())

    async with anyio.create_task_group() as tasks:
        for name in names:
            tasks.start_soon(node.ask, name, Enqueue(name.encode(), Options(group="g")))
            tasks.start_soon(node.ask, name, PauseGroup("h"))

    assert [(await node.ask(name, Count())).ready for name in names] == [1] * 20


async def test_more_commands_than_a_batch_holds_are_all_answered_though_none_writes(new_node):
    async with new_node(batch=3) as node:
        await node.create("jobs", Settings())
        number = node.number("jobs")
        await node.post(number, Count())

        replies = [node.post(number, Receive()) for _ in range(10)]

        await settle()
        assert [reply.done() and reply.result() for reply in replies] == [[]] * 10


async def test_more_bytes_than_a_batch_holds_are_all_answered_though_none_is_written(new_node):
    async with new_node(batch_bytes=3) as node:
        await node.create("jobs", Settings(dedup_ms=10_000))
        number = node.number("jobs")
        first = await node.post(number, Enqueue(b"work", Options(dedup_key="same")))

        replies = [node.post(number, Enqueue(b"work", Options(dedup_key="same"))) for _ in range(10)]

        await settle()
        assert [reply.done() and reply.result().message for reply in replies] == [first.message] * 10


async def test_commands_behind_more_cancelled_ones_than_a_batch_holds_are_answered(new_node):
    async with new_node(batch=3) as node:
        await node.create("jobs", Settings())
        number = node.number("jobs")
        await node.post(number, Count())

        replies = [node.post(number, Receive()) for _ in range(10)]
        for reply in replies[:7]:
            reply.cancel()

        await settle()
        assert [reply.done() and reply.result() for reply in replies[7:]] == [[]] * 3
