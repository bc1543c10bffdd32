"""Leases: how long they run, what a token is worth, and what is left when they end."""

import pytest

from hq.domain.commands import Complete, Count, Enqueue, Extend, Fail, Receive, Release, Retry
from hq.domain.settings import DAY_MS, Groups


def test_a_completed_message_is_never_received_again(new_queue):
    queue = new_queue()
    queue.enqueue(b"once")
    delivery = queue.take()
    queue.ask(Complete(delivery.message, delivery.token))

    queue.clock.advance(days=365)

    assert queue.receive() == []


def test_a_leased_message_is_not_received_by_another(new_queue):
    queue = new_queue(lease_ms=100)
    queue.enqueue()
    queue.take()

    queue.clock.advance(99)

    assert queue.receive() == []


def test_a_lease_ends_exactly_at_its_end(new_queue):
    queue = new_queue(lease_ms=100)
    message = queue.enqueue()
    assert queue.take().lease_expires_at == queue.clock.now + 100

    queue.clock.advance(100)

    assert queue.take().message == message


@pytest.mark.parametrize(
    ("of_message", "of_receive", "expected"),
    [(None, None, 100), (200, None, 200), (200, 300, 300), (None, 300, 300), (200, 0, 0), (0, None, 0)],
)
def test_a_receive_says_how_long_its_leases_run_else_the_message_else_the_queue(
    new_queue, of_message, of_receive, expected
):
    queue = new_queue(lease_ms=100)
    queue.enqueue(lease_ms=of_message)

    delivery = queue.take(lease_ms=of_receive)

    assert delivery.lease_expires_at - queue.clock.now == expected


def test_a_lease_of_no_length_is_over_at_once_and_costs_an_attempt(new_queue):
    queue = new_queue()
    queue.enqueue()
    queue.take(lease_ms=0)

    assert queue.take().attempts == 2


def test_a_lease_may_run_for_a_day(new_queue):
    queue = new_queue()
    queue.enqueue()

    assert queue.take(lease_ms=DAY_MS).lease_expires_at == queue.clock.now + DAY_MS


@pytest.mark.parametrize("lease_ms", [-1, DAY_MS + 1, 1.5, True])
def test_a_lease_out_of_bounds_is_refused_and_nothing_is_received(new_queue, lease_ms):
    queue = new_queue()
    queue.enqueue()

    assert queue.refusal(Receive(1, lease_ms=lease_ms)) == "invalid_input"
    assert queue.stats() == {"ready": 1, "enqueued": 1}


def test_a_delivery_says_all_its_holder_needs(new_queue):
    queue = new_queue(lease_ms=100)
    enqueued_at = queue.clock.now
    message = queue.enqueue(b"work", content_type="text/plain", headers=(("a", "b"),), priority=3)
    queue.clock.advance(7)

    delivery = queue.take(holder="worker-1")

    assert (delivery.message, delivery.payload, delivery.enqueued_at) == (message, b"work", enqueued_at)
    assert (delivery.receives, delivery.attempts) == (1, 1)
    assert (delivery.options.content_type, delivery.options.headers) == ("text/plain", (("a", "b"),))
    assert queue.get(message).holder == "worker-1"


def test_every_lease_has_a_token_of_its_own_of_128_bits(new_queue):
    queue = new_queue()
    queue.enqueue()
    tokens = [queue.take(lease_ms=0).token for _ in range(5)]

    assert len(set(tokens)) == 5
    assert {len(token) for token in tokens} == {16}


def test_only_the_latest_token_is_good(new_queue):
    queue = new_queue(lease_ms=100)
    queue.enqueue()
    first = queue.take()
    queue.clock.advance(100)
    second = queue.take()

    assert queue.refusal(Complete(first.message, first.token)) == "lease_not_held"
    assert queue.ask(Complete(second.message, second.token)).state == "completed"


def test_a_token_is_good_for_its_own_message_only(new_queue):
    queue = new_queue()
    queue.enqueue()
    queue.enqueue()
    first, second = queue.receive()

    assert queue.refusal(Complete(first.message, second.token)) == "lease_not_held"


@pytest.mark.parametrize(("verb", "state"), [(Complete, "completed"), (Fail, "failed")])
def test_work_that_is_done_late_is_taken_if_nobody_has_received_the_message_since(new_queue, verb, state):
    queue = new_queue(lease_ms=100)
    queue.enqueue()
    delivery = queue.take()
    queue.clock.advance(days=1)

    assert queue.ask(verb(delivery.message, delivery.token)).state == state


@pytest.mark.parametrize("verb", [Complete, Fail])
def test_in_a_fifo_queue_work_that_is_done_late_is_refused(new_queue, verb):
    queue = new_queue(lease_ms=100, groups=Groups.FIFO)
    queue.enqueue()
    delivery = queue.take()
    queue.clock.advance(100)

    assert queue.refusal(verb(delivery.message, delivery.token)) == "lease_expired"


@pytest.mark.parametrize("verb", [Retry, Release, Extend])
def test_what_needs_a_running_lease_is_refused_from_its_end_on(new_queue, verb):
    queue = new_queue(lease_ms=100)
    queue.enqueue()
    delivery = queue.take()
    queue.clock.advance(100)

    assert queue.refusal(verb(delivery.message, delivery.token)) == "lease_expired"


def test_extend_sets_a_new_end_counted_from_now(new_queue):
    queue = new_queue(lease_ms=100)
    queue.enqueue()
    delivery = queue.take()
    queue.clock.advance(60)
    until = queue.clock.now + 50

    assert queue.ask(Extend(delivery.message, delivery.token, lease_ms=50)).until == until
    queue.clock.advance(49)
    assert queue.receive() == []
    queue.clock.advance(1)
    assert len(queue.receive()) == 1


@pytest.mark.parametrize(("of_message", "expected"), [(None, 100), (200, 200)])
def test_extend_that_names_no_length_takes_the_messages_or_the_queues(new_queue, of_message, expected):
    queue = new_queue(lease_ms=100)
    queue.enqueue(lease_ms=of_message)
    delivery = queue.take(lease_ms=10)

    assert queue.ask(Extend(delivery.message, delivery.token)).until == queue.clock.now + expected


def test_extend_by_nothing_ends_the_lease_now_and_the_attempt_counts(new_queue):
    queue = new_queue()
    queue.enqueue()
    delivery = queue.take()
    queue.ask(Extend(delivery.message, delivery.token, lease_ms=0))

    assert queue.take().attempts == 2


def test_an_extend_out_of_bounds_is_refused_and_the_lease_stays(new_queue):
    queue = new_queue(lease_ms=100)
    queue.enqueue()
    delivery = queue.take()

    assert queue.refusal(Extend(delivery.message, delivery.token, lease_ms=DAY_MS + 1)) == "invalid_input"
    assert queue.get(delivery.message).lease_expires_at == queue.clock.now + 100


def test_release_gives_the_attempt_back_but_not_the_receive(new_queue):
    queue = new_queue(max_attempts=1)
    queue.enqueue()
    for _ in range(3):
        delivery = queue.take()
        queue.ask(Release(delivery.message, delivery.token))

    delivery = queue.take()

    assert (delivery.receives, delivery.attempts) == (4, 1)


def test_a_lease_that_ends_by_itself_costs_an_attempt(new_queue):
    queue = new_queue(lease_ms=100)
    queue.enqueue()
    queue.take()
    queue.clock.advance(100)

    delivery = queue.take()

    assert (delivery.receives, delivery.attempts) == (2, 2)


def test_a_lease_that_ended_is_in_the_messages_record(new_queue):
    queue = new_queue(lease_ms=100)
    queue.enqueue()
    start = queue.clock.now
    queue.take(holder="slow")
    queue.clock.advance(100)

    [attempt] = queue.take().history

    assert (attempt.receives, attempt.holder, attempt.outcome) == (1, "slow", "lapsed")
    assert (attempt.received_at, attempt.ended_at) == (start, start + 100)


def test_leases_survive_a_crash(new_queue):
    queue = new_queue(lease_ms=100)
    queue.enqueue(b"work")
    delivery = queue.take()

    queue.crash()
    queue.clock.advance(99)

    assert queue.receive() == []
    assert queue.ask(Complete(delivery.message, delivery.token)).state == "completed"


def test_by_id_a_message_is_settled_only_while_it_is_leased(new_queue):
    queue = new_queue(lease_ms=100)
    message = queue.enqueue()
    queue.take()
    queue.clock.advance(100)

    assert queue.refusal(Complete(message)) == "lease_not_held"
    queue.take()
    assert queue.ask(Complete(message)).state == "completed"


def test_the_stats_say_when_the_first_lease_ends(new_queue):
    queue = new_queue()
    for lease_ms in (300, 100, 200):
        queue.enqueue(lease_ms=lease_ms)
    queue.receive()

    assert queue.ask(Count()).next_lease_end == queue.clock.now + 100


def test_a_queues_time_never_goes_back(new_queue):
    queue = new_queue(lease_ms=100)
    queue.enqueue()
    queue.enqueue()
    first = queue.take()

    queue.clock.now -= 50

    assert queue.take().lease_expires_at == first.lease_expires_at


def test_many_leases_that_end_at_different_times_come_back_each_at_its_own(new_queue):
    queue = new_queue()
    for lease_ms in (30, 10, 20):
        queue.enqueue(str(lease_ms).encode(), lease_ms=lease_ms)
    queue.receive()

    came_back = []
    for _ in range(3):
        queue.clock.advance(10)
        came_back += [delivery.payload for delivery in queue.receive(lease_ms=1_000)]

    assert came_back == [b"10", b"20", b"30"]


def test_a_receiver_may_ask_for_shorter_tokens_which_are_as_good(new_queue):
    queue = new_queue()
    queue.enqueue()
    [short] = queue.ask(Receive(token_bytes=8))
    assert len(short.token) == 8
    assert queue.refusal(Complete(short.message, short.token + b"\0")) == "lease_not_held"
    assert queue.ask(Complete(short.message, short.token)).state == "completed"


@pytest.mark.parametrize("token_bytes", [7, 17, 0, -8, None, 8.0])
def test_a_token_that_could_be_guessed_is_not_given(new_queue, token_bytes):
    queue = new_queue()
    queue.enqueue()
    assert queue.refusal(Receive(token_bytes=token_bytes)) == "invalid_input"
    assert queue.take().attempts == 1


def test_a_producer_is_told_since_when_its_message_waits(new_queue):
    queue = new_queue()
    queue.clock.advance(5)
    accepted = queue.ask(Enqueue(b"x"))
    assert accepted.enqueued_at == queue.clock.now == queue.take().enqueued_at
