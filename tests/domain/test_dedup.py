"""Deduplication: one message per key, while it lives and for the window after its enqueue."""

import pytest

from hq.domain.commands import (
    Complete,
    Delete,
    DeleteByKey,
    Enqueue,
    Fail,
    Purge,
    Replace,
    Requeue,
    Retry,
    Wake,
)
from hq.domain.messages import Options
from hq.domain.replies import Accepted
from hq.domain.settings import DedupScope
from hq.domain.tasks import Scope


def enqueue(queue, key="key", **options):
    return queue.ask(Enqueue(b"again", Options(dedup_key=key, **options)))


def is_free(queue, key="key", **options):
    """Whether a key is free; a message that finds out is deleted again."""
    accepted = enqueue(queue, key, **options, dedup_ms=0)
    if not accepted.duplicate:
        queue.ask(Delete(accepted.message))
    return not accepted.duplicate


def fail(queue):
    delivery = queue.take()
    queue.ask(Fail(delivery.message, delivery.token))
    return delivery.message


def test_a_duplicate_stores_nothing_and_names_the_first_message(new_queue):
    queue = new_queue()
    first = queue.enqueue(b"first", dedup_key="key")

    assert enqueue(queue) == Accepted(first, duplicate=True)
    assert (queue.stats(), queue.received()) == ({"ready": 1, "enqueued": 1}, "first")


def test_every_duplicate_gets_the_same_answer(new_queue):
    queue = new_queue()
    first = enqueue(queue).message

    assert {enqueue(queue).message for _ in range(5)} == {first}


def test_different_keys_are_different_messages(new_queue):
    queue = new_queue()

    assert not enqueue(queue, "a").duplicate
    assert not enqueue(queue, "b").duplicate


def test_messages_without_a_key_are_never_duplicates(new_queue):
    queue = new_queue()
    queue.enqueue(b"same")
    queue.enqueue(b"same")

    assert queue.stats() == {"ready": 2, "enqueued": 2}


def test_without_a_window_the_key_is_free_when_the_message_is_completed(new_queue):
    queue = new_queue()
    enqueue(queue)
    delivery = queue.take()
    assert enqueue(queue).duplicate

    queue.ask(Complete(delivery.message, delivery.token))

    assert is_free(queue)


def test_the_key_holds_as_long_as_the_message_lives_whatever_the_window(new_queue):
    queue = new_queue(dedup_ms=10)
    enqueue(queue)
    delivery = queue.take()
    queue.ask(Retry(delivery.message, delivery.token, delay_ms=100))
    queue.clock.advance(99)

    assert not is_free(queue)


@pytest.mark.parametrize(("of_queue", "of_message", "expected"), [(50, None, 50), (50, 20, 20), (0, 30, 30)])
def test_the_key_holds_for_the_window_after_the_enqueue_though_the_message_is_completed(
    new_queue, of_queue, of_message, expected
):
    queue = new_queue(dedup_ms=of_queue)
    first = enqueue(queue, dedup_ms=of_message).message
    queue.ask(Complete(queue.take().message))

    queue.clock.advance(expected - 1)
    assert enqueue(queue) == Accepted(first, duplicate=True)
    queue.clock.advance(1)
    assert is_free(queue)


def test_a_message_may_shorten_its_queues_window_to_nothing(new_queue):
    queue = new_queue(dedup_ms=50)
    enqueue(queue, dedup_ms=0)
    queue.ask(Complete(queue.take().message))

    assert is_free(queue)


def test_a_duplicate_does_not_make_the_window_longer(new_queue):
    queue = new_queue(dedup_ms=50)
    enqueue(queue)
    queue.ask(Complete(queue.take().message))
    queue.clock.advance(49)
    enqueue(queue)

    queue.clock.advance(1)

    assert is_free(queue)


def test_a_deleted_message_holds_its_key_for_the_window_only(new_queue):
    queue = new_queue(dedup_ms=50)
    queue.ask(Delete(enqueue(queue).message))

    assert not is_free(queue)
    queue.clock.advance(50)
    assert is_free(queue)


def test_a_failed_message_holds_its_key_for_the_window_only(new_queue):
    queue = new_queue(dedup_ms=50)
    enqueue(queue)
    fail(queue)

    assert not is_free(queue)
    queue.clock.advance(50)
    assert is_free(queue)


def test_a_requeued_message_takes_its_key_again_if_it_is_free(new_queue):
    queue = new_queue()
    first = enqueue(queue).message
    fail(queue)
    queue.ask(Requeue(first))

    assert enqueue(queue) == Accepted(first, duplicate=True)


def test_a_requeued_message_takes_its_key_again_within_its_own_window(new_queue):
    queue = new_queue(dedup_ms=50)
    first = enqueue(queue).message
    fail(queue)
    queue.ask(Requeue(first))
    queue.clock.advance(50)

    assert enqueue(queue) == Accepted(first, duplicate=True)


def test_a_requeued_message_goes_without_its_key_if_another_holds_it(new_queue):
    queue = new_queue()
    first = enqueue(queue).message
    fail(queue)
    second = enqueue(queue).message
    queue.ask(Requeue(first))

    assert enqueue(queue) == Accepted(second, duplicate=True)
    assert queue.stats()["ready"] == 2


def test_a_message_that_went_without_its_key_frees_nobody_elses(new_queue):
    queue = new_queue()
    first = enqueue(queue).message
    fail(queue)
    second = enqueue(queue).message
    queue.ask(Requeue(first))
    queue.ask(Delete(first))

    assert enqueue(queue) == Accepted(second, duplicate=True)


def test_an_expired_message_frees_its_key_though_nobody_has_met_it_yet(new_queue):
    queue = new_queue()
    enqueue(queue, ttl_ms=10)
    queue.clock.advance(9)
    assert enqueue(queue).duplicate

    queue.clock.advance(1)

    assert is_free(queue)


def test_an_expired_message_holds_its_key_for_the_rest_of_its_window(new_queue):
    queue = new_queue(dedup_ms=50)
    first = enqueue(queue, ttl_ms=10).message
    queue.clock.advance(49)
    assert enqueue(queue) == Accepted(first, duplicate=True)

    queue.clock.advance(1)

    assert is_free(queue)


def test_a_leased_message_keeps_its_key_past_its_expiry(new_queue):
    queue = new_queue(lease_ms=100)
    enqueue(queue, ttl_ms=10)
    delivery = queue.take()
    queue.clock.advance(50)

    assert not is_free(queue)
    assert queue.ask(Complete(delivery.message, delivery.token)).state == "completed"


def test_a_dead_letter_that_is_dropped_does_not_take_the_key_of_another_with_it(new_queue):
    queue = new_queue(failed_ms=10)
    enqueue(queue)
    fail(queue)
    second = enqueue(queue).message
    queue.clock.advance(10)
    queue.ask(Wake())

    assert enqueue(queue) == Accepted(second, duplicate=True)


def test_purging_what_lives_frees_every_key(new_queue):
    queue = new_queue(dedup_ms=1_000)
    enqueue(queue, "completed")
    queue.ask(Complete(queue.take().message))
    enqueue(queue, "failed")
    fail(queue)
    enqueue(queue, "ready")

    queue.ask(Purge())

    assert all(is_free(queue, key) for key in ("completed", "failed", "ready"))


def test_purging_dead_letters_frees_no_key(new_queue):
    queue = new_queue(dedup_ms=1_000)
    enqueue(queue)
    fail(queue)
    queue.ask(Purge(Scope.FAILED))

    assert not is_free(queue)


def test_keys_taken_after_a_purge_hold(new_queue):
    queue = new_queue()
    enqueue(queue)
    queue.ask(Purge())
    second = enqueue(queue).message

    assert enqueue(queue) == Accepted(second, duplicate=True)


def test_a_key_is_unique_in_the_queue_whatever_the_group(new_queue):
    queue = new_queue()
    first = enqueue(queue, group="a").message

    assert enqueue(queue, group="b") == Accepted(first, duplicate=True)


def test_a_key_may_be_unique_per_group_if_the_queue_says_so(new_queue):
    queue = new_queue(dedup_scope=DedupScope.GROUP)
    first, second = (enqueue(queue, group=group).message for group in "ab")

    assert enqueue(queue, group="a") == Accepted(first, duplicate=True)
    assert enqueue(queue, group="b") == Accepted(second, duplicate=True)
    assert not enqueue(queue).duplicate


def test_a_duplicate_is_told_even_when_the_queue_is_full(new_queue):
    queue = new_queue(capacity=1)
    first = enqueue(queue).message

    assert enqueue(queue) == Accepted(first, duplicate=True)


def test_keys_survive_a_crash(new_queue):
    queue = new_queue(dedup_ms=50)
    first = enqueue(queue).message
    queue.ask(Complete(queue.take().message))

    queue.crash()

    assert enqueue(queue) == Accepted(first, duplicate=True)


def test_replace_gives_the_waiting_message_a_new_payload_and_leaves_the_rest(new_queue):
    queue = new_queue()
    message = queue.enqueue(b"old", dedup_key="key", priority=3, delay_ms=10)
    before = queue.get(message)

    assert queue.ask(Replace("key", b"new")).message == message
    after = queue.get(message)
    assert (after.payload, after.options, after.available_at) == (b"new", before.options, before.available_at)


def test_a_replaced_payload_is_what_is_received(new_queue):
    queue = new_queue()
    queue.enqueue(b"1", dedup_key="key")
    for payload in (b"2", b"3"):
        queue.ask(Replace("key", payload))

    assert queue.received() == "3"


def test_a_replaced_payload_comes_again_after_a_lease_that_ended(new_queue):
    queue = new_queue(lease_ms=100)
    queue.enqueue(b"old", dedup_key="key")
    queue.ask(Replace("key", b"new"))
    queue.take()
    queue.clock.advance(100)

    assert queue.received() == "new"


def test_the_payload_of_a_failed_message_cannot_be_replaced(new_queue):
    queue = new_queue(dedup_ms=1_000)
    message = queue.enqueue(b"old", dedup_key="key")
    fail(queue)

    assert queue.refusal(Replace("key", b"new"))
    assert queue.get(message).payload == b"old"


def test_a_replacement_that_is_too_large_is_refused(new_queue):
    queue = new_queue(max_payload_bytes=3)
    message = queue.enqueue(b"old", dedup_key="key")

    assert queue.refusal(Replace("key", b"long")) == "payload_too_large"
    assert queue.get(message).payload == b"old"


def test_a_message_in_its_window_but_gone_cannot_be_replaced_or_deleted_by_key(new_queue):
    queue = new_queue(dedup_ms=1_000)
    enqueue(queue)
    queue.ask(Complete(queue.take().message))

    assert queue.refusal(Replace("key", b"new")) == "message_not_found"
    assert queue.refusal(DeleteByKey("key")) == "message_not_found"


def test_delete_by_key_deletes_the_message_that_holds_it(new_queue):
    queue = new_queue()
    message = enqueue(queue).message

    assert queue.ask(DeleteByKey("key")).message == message
    assert queue.state_of(message) == "message_not_found"
    assert is_free(queue)


def test_by_key_and_group_the_message_of_that_group_is_meant(new_queue):
    queue = new_queue(dedup_scope=DedupScope.GROUP)
    first, second = (enqueue(queue, group=group).message for group in "ab")

    queue.ask(DeleteByKey("key", "b"))

    assert (queue.state_of(first), queue.state_of(second)) == ("ready", "message_not_found")
