"""The mailbox, the timer, chance and the clock by themselves."""

import asyncio

import anyio
import pytest

from hq.actors.chance import SystemChance
from hq.actors.clock import SystemClock
from hq.actors.mailbox import Envelope, Mailbox
from hq.actors.timers import Timers
from hq.domain.commands import Complete, Enqueue
from hq.errors import Closed, Overloaded
from tests.actors.test_node import settle


def envelope(command):
    return Envelope(command, asyncio.get_running_loop().create_future())


async def test_a_full_mailbox_refuses_and_still_takes_what_makes_room():
    mailbox = Mailbox(2, lambda: None)
    mailbox.put(envelope(Enqueue(b"1")))
    mailbox.put(envelope(Enqueue(b"2")))

    with pytest.raises(Overloaded):
        mailbox.put(envelope(Enqueue(b"3")))
    mailbox.put(envelope(Complete(1)))

    assert [type(one.command) for one in mailbox.take(10)] == [Enqueue, Enqueue, Complete]


async def test_what_is_put_back_comes_first_again():
    mailbox = Mailbox(10, lambda: None)
    for payload in (b"1", b"2", b"3"):
        mailbox.put(envelope(Enqueue(payload)))

    mailbox.put_back(mailbox.take(2))

    assert [one.command.payload for one in mailbox.take(10)] == [b"1", b"2", b"3"]


async def test_everyone_in_a_mailbox_is_answered_at_its_end():
    mailbox = Mailbox(10, lambda: None)
    waiting = [envelope(Enqueue(b"1")), envelope(Enqueue(b"2"))]
    for one in waiting:
        mailbox.put(one)

    mailbox.answer_all(Closed())

    assert [type(one.reply.exception()) for one in waiting] == [Closed, Closed]


async def test_the_timer_rings_each_number_once_at_its_earliest_wish(clock):
    rung = []
    timers = Timers(clock, lambda number: rung.append((number, clock.now - start)))
    start = clock.now
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(timers.run)
        await settle()
        timers.set(1, start + 100)
        timers.set(2, start + 50)
        await settle()
        timers.set(1, start + 20)
        timers.set(1, start + 70)
        timers.set(3, start + 30)
        timers.set(3, None)
        for _ in range(12):
            clock.advance(10)
            await settle()
        tasks.cancel_scope.cancel()

    assert rung == [(1, 20), (2, 50)]


def test_tokens_differ_across_blocks():
    chance = SystemChance()

    tokens = [chance.token() for _ in range(1_000)]

    assert len(set(tokens)) == 1_000
    assert {len(token) for token in tokens} == {16}
    assert {chance.between(1, 3) for _ in range(200)} == {1, 2, 3}


async def test_the_clock_never_goes_back_and_waits_for_instants():
    clock = SystemClock()
    before = clock.now

    await clock.until(before + 2)

    assert clock.now >= before + 2
    await clock.until(before)
