"""No answer: what can be asked again is, and unknown is never told as refused."""

import socket

import anyio
import pytest

import hq
from hq.client.calls import Patience
from hq.client.remote import remote


async def test_an_enqueue_whose_answer_is_lost_is_stored_once(queue, there, relay):
    relay.answers_to_lose = 1
    accepted = await queue.enqueue("once")

    assert not accepted.duplicate
    [seen] = await there.browse()
    assert (seen.id, seen.payload) == (accepted.id, "once")


async def test_the_key_of_a_request_is_nobodys_business(queue, there):
    async with there.events() as events, queue.events() as told:
        await queue.enqueue("as it is")
        assert "dedup_key" not in (await anext(events)).details
        assert "dedup_key" not in (await anext(told)).details
    for here in (there, queue):
        [seen] = await here.browse()
        assert seen.dedup_key is None
        [held] = await here.receive()
        assert held.dedup_key is None
        await held.release()


async def test_many_whose_answer_is_lost_are_stored_once_each(queue, there, relay):
    relay.answers_to_lose = 1
    told = await queue.enqueue_many(["a", "b", "c"])

    assert [one.duplicate for one in told] == [False] * 3
    assert [seen.payload for seen in await there.browse()] == ["a", "b", "c"]


async def test_an_enqueue_that_never_arrived_is_asked_again(queue, there, relay):
    relay.requests_to_lose = 2
    await queue.enqueue("in the end")
    assert (await there.stats()).enqueued == 1


async def test_a_key_that_may_be_free_again_is_not_enqueued_twice(queue, there, relay):
    relay.answers_to_lose = 1
    with pytest.raises(hq.OutcomeUnknown):
        await queue.enqueue("once", dedup_key="mine")
    assert (await there.stats()).enqueued == 1


async def test_a_key_with_a_long_window_makes_an_enqueue_safe_to_repeat(queue, there, relay):
    relay.answers_to_lose = 1
    await queue.enqueue("once", dedup_key="mine", dedup_ms=600_000)
    assert (await there.stats()).enqueued == 1


async def test_a_completion_that_never_arrived_is_asked_again(queue, there, relay):
    await queue.enqueue("work")
    [message] = await queue.receive()
    relay.requests_to_lose = 1
    assert (await message.complete()).state == "completed"


async def test_a_completion_whose_answer_is_lost_is_unknown_and_not_refused(queue, there, relay):
    await queue.enqueue("work")
    [message] = await queue.receive()
    relay.answers_to_lose = 1
    with pytest.raises(hq.OutcomeUnknown, match="no such message"):
        await message.complete()
    assert (await there.stats()).completed == 1


async def test_many_completions_whose_answer_is_lost_are_unknown_each(queue, there, relay):
    await queue.enqueue_many(["a", "b"])
    messages = await queue.receive(2)
    relay.answers_to_lose = 1
    told = await queue.complete(messages)
    assert [type(one) for one in told] == [hq.OutcomeUnknown] * 2
    assert (await there.stats()).completed == 2


async def test_a_completion_that_came_too_late_is_refused_though_it_was_repeated(queue, there, relay, clock):
    await queue.enqueue("work")
    [message] = await queue.receive()

    async def another_takes_it():
        clock.advance(minutes=1)
        assert len(await there.receive()) == 1

    relay.meanwhile = another_takes_it
    relay.requests_to_lose = 1
    with pytest.raises(hq.LeaseNotHeld):
        await message.complete()
    assert message.lost


@pytest.mark.parametrize("verb", ["retry", "fail", "release"])
async def test_whatever_else_ends_a_lease_is_unknown_when_its_answer_is_lost(queue, there, relay, verb):
    await queue.enqueue("work")
    [message] = await queue.receive()
    relay.answers_to_lose = 1
    with pytest.raises(hq.OutcomeUnknown):
        await getattr(message, verb)()
    assert (await there.stats()).leased == 0


async def test_an_extension_is_asked_again(queue, there, relay, clock):
    await queue.enqueue("work")
    [message] = await queue.receive()
    relay.answers_to_lose = 1
    assert (await message.extend(60_000)).until == clock.now + 60_000


@pytest.mark.parametrize("verb", ["purge", "requeue_dead_letters", "delete_waiting"])
async def test_what_could_do_more_the_second_time_is_not_asked_again(queue, there, relay, verb):
    before = relay.requests
    relay.answers_to_lose = 1
    with pytest.raises(hq.OutcomeUnknown):
        await getattr(queue, verb)()
    assert relay.requests == before + 1


async def test_by_its_id_alone_a_message_is_not_settled_twice(queue, there, relay):
    await queue.enqueue("work")
    [message] = await queue.receive()
    before = relay.requests
    relay.answers_to_lose = 1
    with pytest.raises(hq.OutcomeUnknown):
        await queue.retry(message.id)
    assert relay.requests == before + 1


async def test_a_receive_whose_answer_is_lost_is_not_asked_again(queue, there, relay):
    await queue.enqueue_many(["a", "b"])
    relay.answers_to_lose = 1
    with pytest.raises(hq.OutcomeUnknown):
        await queue.receive()
    assert (await there.stats()).leased == 1


async def test_a_long_poll_that_lost_its_server_goes_on(queue, there, relay):
    relay.requests_to_lose = 2
    found = []
    async with anyio.create_task_group() as tasks:

        async def wait():
            found.extend(await queue.receive(wait_ms=60_000))

        tasks.start_soon(wait)
        with anyio.fail_after(60):
            while relay.requests_to_lose:
                await anyio.lowlevel.checkpoint()
        await there.enqueue("late")
    assert [message.payload for message in found] == ["late"]


async def test_a_look_is_asked_again(queue, there, relay):
    relay.answers_to_lose = 3
    assert (await queue.stats()).ready == 0


async def test_where_nobody_listens_is_told(unused_tcp_port):
    with pytest.raises(hq.Unreachable):
        async with remote(f"http://127.0.0.1:{unused_tcp_port}", patience=Patience(server_s=0.2)):
            pass


@pytest.fixture
def unused_tcp_port():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


@pytest.mark.parametrize("url", ["http://", "http://host:port", "http://host/?a=b", "https://#there"])
async def test_an_address_that_is_none_is_told(url):
    with pytest.raises(hq.UnsupportedUrl):
        async with hq.open(url):
            pass
