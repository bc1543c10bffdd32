"""Dead letters: kept with their reason for a time, and requeued for a new round."""

import pytest

from hq.domain.commands import Browse, Complete, Fail, Requeue, Retry, Wake
from hq.domain.replies import Done
from hq.domain.settings import DAY_MS
from hq.domain.tasks import Scope


def fail(queue, error=None):
    delivery = queue.take()
    queue.ask(Fail(delivery.message, delivery.token, error))
    return delivery


def dead_letters(queue):
    return [seen.message.sequence for seen in queue.ask(Browse(Scope.FAILED))]


def test_a_failed_message_is_kept_with_its_reason_and_error(new_queue):
    queue = new_queue()
    queue.enqueue(b"work")
    message = fail(queue, "broken").message

    kept = queue.get(message)
    assert (kept.payload, kept.reason, kept.error, kept.failed_at) == (
        b"work", "failed", "broken", queue.clock.now,
    )  # fmt: skip
    assert [attempt.error for attempt in kept.history] == ["broken"]


def test_a_failed_message_is_not_received(new_queue):
    queue = new_queue()
    queue.enqueue()
    fail(queue)
    queue.clock.advance(days=1)

    assert queue.receive() == []


def test_a_failed_message_is_kept_for_14_days_by_default(new_queue):
    queue = new_queue()
    queue.enqueue()
    message = fail(queue).message

    queue.clock.advance(14 * DAY_MS - 1)
    assert queue.state_of(message) == "failed"
    queue.clock.advance(1)
    assert queue.state_of(message) == "message_not_found"


def test_a_failed_message_that_was_kept_long_enough_is_swept_and_counted_as_deleted(new_queue):
    queue = new_queue(failed_ms=100)
    queue.enqueue()
    fail(queue)
    queue.clock.advance(100)

    assert queue.ask(Wake()) == Done(1)
    assert queue.stats() == {"deleted": 1, "enqueued": 1}


def test_a_failed_message_does_not_expire(new_queue):
    queue = new_queue()
    queue.enqueue(ttl_ms=10)
    message = fail(queue).message
    queue.clock.advance(10)

    assert queue.state_of(message) == "failed"


def test_dead_letters_are_listed_in_order_of_their_sequence(new_queue):
    queue = new_queue()
    messages = [queue.enqueue(priority=n) for n in range(4)]
    for _ in messages:
        fail(queue)

    assert dead_letters(queue) == messages


def test_a_requeued_message_starts_a_new_round_with_its_record_kept(new_queue):
    queue = new_queue(max_attempts=2)
    queue.enqueue(b"work")
    message = fail(queue, "first round").message
    queue.ask(Requeue(message))

    delivery = queue.take()

    assert (delivery.receives, delivery.attempts, delivery.payload) == (2, 1, b"work")
    assert [attempt.error for attempt in delivery.history] == ["first round"]


def test_a_requeued_message_has_all_its_attempts_again(new_queue):
    queue = new_queue(max_attempts=2)
    message = queue.enqueue()
    fail(queue)
    queue.ask(Requeue(message))

    states = [queue.ask(Retry(message, queue.take().token, delay_ms=0)).state for _ in range(2)]

    assert states == ["ready", "failed"]


@pytest.mark.parametrize("verb", [Complete, Fail, Retry])
def test_a_token_from_before_the_requeue_is_refused(new_queue, verb):
    queue = new_queue()
    queue.enqueue()
    delivery = fail(queue)
    queue.ask(Requeue(delivery.message))

    assert queue.refusal(verb(delivery.message, delivery.token)) == "lease_not_held"


@pytest.mark.parametrize(("of_queue", "of_message"), [(100, None), (None, 100)])
def test_the_time_to_live_of_a_requeued_message_starts_again(new_queue, of_queue, of_message):
    queue = new_queue(ttl_ms=of_queue)
    message = queue.enqueue(ttl_ms=of_message)
    fail(queue)
    queue.clock.advance(days=1)
    queue.ask(Requeue(message))

    queue.clock.advance(99)
    assert queue.state_of(message) == "ready"
    queue.clock.advance(1)
    assert queue.state_of(message) == "message_not_found"


def test_a_requeued_message_is_ready_at_once_whatever_its_delay_was(new_queue):
    queue = new_queue()
    message = queue.enqueue(delay_ms=1_000)
    queue.clock.advance(1_000)
    fail(queue)
    queue.ask(Requeue(message))

    assert queue.take().message == message


def test_a_requeued_message_that_fails_again_is_kept_anew(new_queue):
    queue = new_queue(failed_ms=100)
    message = queue.enqueue()
    fail(queue)
    queue.clock.advance(99)
    queue.ask(Requeue(message))
    fail(queue, "second round")

    queue.clock.advance(99)

    assert queue.get(message).error == "second round"
