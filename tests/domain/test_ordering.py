"""Order: higher priority first, then what was available first, then what was enqueued first."""

import random

import pytest

from hq.domain.commands import Fail, Receive, Release, Requeue, Retry


def enqueue_each(queue, payloads, **options):
    for payload in payloads:
        queue.enqueue(payload.encode(), **options)


def test_messages_come_in_the_order_they_were_enqueued(new_queue):
    queue = new_queue()
    enqueue_each(queue, "abcdefg")

    assert queue.received(3) + queue.received(1) + queue.received() == "abcdefg"


def test_a_higher_priority_comes_first_and_none_comes_last(new_queue):
    queue = new_queue()
    for payload, priority in ((b"n", None), (b"m", -5), (b"z", 0), (b"p", 7), (b"l", -(1 << 15))):
        queue.enqueue(payload, priority=priority)

    assert queue.received() == "pzmln"


def test_within_a_priority_the_one_that_was_available_first_comes_first(new_queue):
    queue = new_queue()
    queue.enqueue(b"late", delay_ms=20)
    queue.enqueue(b"early", delay_ms=10)
    queue.clock.advance(15)
    queue.enqueue(b"now")
    queue.clock.advance(5)

    assert [delivery.payload for delivery in queue.receive()] == [b"early", b"now", b"late"]


def test_priority_comes_before_age(new_queue):
    queue = new_queue()
    queue.enqueue(b"o", priority=1)
    queue.clock.advance(days=1)
    queue.enqueue(b"y", priority=2)

    assert queue.received() == "yo"


def test_a_delayed_message_of_high_priority_holds_nobody_up(new_queue):
    queue = new_queue()
    queue.enqueue(b"h", priority=9, delay_ms=10)
    queue.enqueue(b"l")

    assert queue.received() == "l"


@pytest.mark.parametrize(("of_queue", "of_message", "expected"), [(50, None, 50), (50, 20, 20), (50, 0, 0)])
def test_a_message_is_received_from_the_instant_its_delay_is_over(new_queue, of_queue, of_message, expected):
    queue = new_queue(delay_ms=of_queue)
    message = queue.enqueue(delay_ms=of_message)
    if expected:
        queue.clock.advance(expected - 1)
        assert (queue.receive(), queue.state_of(message)) == ([], "delayed")
        queue.clock.advance(1)

    assert queue.state_of(message) == "ready"
    assert queue.take().message == message


def test_a_released_message_keeps_its_place(new_queue):
    queue = new_queue()
    enqueue_each(queue, "abc")
    queue.clock.advance(50)
    delivery = queue.take()
    queue.ask(Release(delivery.message, delivery.token))

    assert queue.received() == "abc"


def test_a_message_whose_lease_ended_keeps_its_place(new_queue):
    queue = new_queue(lease_ms=100)
    enqueue_each(queue, "abc")
    queue.take()
    queue.clock.advance(100)

    assert queue.received() == "abc"


def test_a_retried_message_moves_to_when_it_is_available_again(new_queue):
    queue = new_queue()
    enqueue_each(queue, "ab")
    queue.clock.advance(10)
    delivery = queue.take()
    queue.ask(Retry(delivery.message, delivery.token, delay_ms=10))
    queue.clock.advance(5)
    enqueue_each(queue, "c")
    queue.clock.advance(5)
    enqueue_each(queue, "d")

    assert queue.received() == "bcad"


def test_a_retry_does_not_change_the_priority(new_queue):
    queue = new_queue()
    queue.enqueue(b"h", priority=1)
    enqueue_each(queue, "abc")
    delivery = queue.take()
    queue.ask(Retry(delivery.message, delivery.token, delay_ms=10))
    queue.clock.advance(10)

    assert queue.received() == "habc"


def test_a_requeued_message_comes_after_those_that_were_available_before(new_queue):
    queue = new_queue()
    enqueue_each(queue, "abc")
    delivery = queue.take()
    queue.ask(Fail(delivery.message, delivery.token))
    queue.clock.advance(1)
    queue.ask(Requeue(delivery.message))

    assert queue.received() == "bca"


def test_a_receive_gives_at_most_what_it_asks_for(new_queue):
    queue = new_queue()
    enqueue_each(queue, "abcde")

    assert [len(queue.receive(2)) for _ in range(4)] == [2, 2, 1, 0]


@pytest.mark.parametrize("limit", [0, -1, 1_001, True, 1.0, 2.5, "3", None])
def test_a_receive_of_too_few_or_too_many_is_refused(new_queue, limit):
    queue = new_queue()
    queue.enqueue()

    assert queue.refusal(Receive(limit)) == "invalid_input"
    assert queue.stats() == {"ready": 1, "enqueued": 1}


def test_messages_with_a_concurrency_key_are_in_the_same_order_as_all_others(new_queue):
    queue = new_queue()
    for payload, options in (
        (b"a", {"concurrency_key": "k"}),
        (b"b", {}),
        (b"c", {"concurrency_key": "k", "priority": 5}),
        (b"d", {"concurrency_key": "j", "delay_ms": 10}),
        (b"e", {"priority": 5}),
        (b"f", {"concurrency_key": "k"}),
    ):
        queue.enqueue(payload, **options)
    queue.clock.advance(10)

    assert queue.received() == "ceabfd"


@pytest.mark.parametrize("seed", range(3))
def test_a_long_backlog_comes_in_exact_order(new_queue, seed):
    chance = random.Random(seed)
    queue = new_queue()
    expected = []
    for _ in range(30):
        priority, delay_ms = chance.choice([None, 0, 1]), chance.choice([0, 0, 5, 10])
        queue.clock.advance(chance.choice([0, 1]))
        message = queue.enqueue(priority=priority, delay_ms=delay_ms)
        rank = -1 if priority is None else priority
        expected.append((-rank, queue.clock.now + delay_ms, message))
    queue.clock.advance(10)

    came = []
    while deliveries := queue.receive(chance.randint(1, 5)):
        came += [delivery.message for delivery in deliveries]

    assert came == [message for *_, message in sorted(expected)]
