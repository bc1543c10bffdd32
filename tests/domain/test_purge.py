"""Purge: everything of a scope is gone at once, and nothing that comes later."""

import pytest

from hq.domain.commands import Browse, Complete, Delete, Extend, Fail, Peek, Purge, Requeue, Retry, Wake
from hq.domain.replies import Done
from hq.domain.settings import Groups
from hq.domain.tasks import Scope


def fill(queue):
    """One message in each state that lives, and a dead letter."""
    for payload in (b"failed", b"leased", b"ready"):
        queue.enqueue(payload)
    queue.enqueue(b"delayed", delay_ms=1_000)
    failed, leased = queue.receive(2)
    queue.ask(Fail(failed.message, failed.token))
    return failed, leased


def test_a_purge_takes_all_that_lives_and_leaves_dead_letters(new_queue):
    queue = new_queue()
    failed, _ = fill(queue)

    assert queue.ask(Purge()) == Done(3)
    assert queue.stats() == {"failed": 1, "purged": 3, "enqueued": 4}
    assert queue.state_of(failed.message) == "failed"


def test_a_purge_of_dead_letters_leaves_all_that_lives(new_queue):
    queue = new_queue()
    failed, _ = fill(queue)

    assert queue.ask(Purge(Scope.FAILED)) == Done(1)
    assert queue.stats() == {"ready": 1, "delayed": 1, "leased": 1, "purged": 1, "enqueued": 4}
    assert queue.refusal(Requeue(failed.message)) == "message_not_found"


def test_what_was_purged_is_never_received(new_queue):
    queue = new_queue(lease_ms=100)
    fill(queue)
    queue.ask(Purge())

    queue.clock.advance(days=1)

    assert queue.receive() == []


def test_the_token_of_a_purged_lease_is_worth_nothing(new_queue):
    queue = new_queue()
    _, leased = fill(queue)
    queue.ask(Purge())

    for verb in (Complete, Fail, Retry, Extend):
        assert queue.refusal(verb(leased.message, leased.token)) == "message_not_found"


def test_what_comes_after_a_purge_is_served(new_queue):
    queue = new_queue()
    fill(queue)
    queue.ask(Purge())
    queue.enqueue(b"new")

    assert queue.received() == "new"


def test_what_was_purged_is_not_seen(new_queue):
    queue = new_queue()
    fill(queue)
    queue.ask(Purge())
    new = queue.enqueue(b"new")

    assert [seen.message.sequence for seen in queue.ask(Browse(Scope.LIVE))] == [new]
    assert [seen.message.sequence for seen in queue.ask(Peek(10))] == [new]


def test_a_purge_takes_nothing_twice(new_queue):
    queue = new_queue()
    fill(queue)
    queue.ask(Purge())

    assert queue.ask(Purge()) == Done(0)


def test_a_dead_letter_that_was_requeued_before_the_purge_is_purged(new_queue):
    queue = new_queue()
    failed, _ = fill(queue)
    queue.ask(Requeue(failed.message))
    queue.ask(Purge())

    assert queue.state_of(failed.message) == "message_not_found"


def test_a_dead_letter_that_is_requeued_after_the_purge_is_served(new_queue):
    queue = new_queue()
    failed, _ = fill(queue)
    queue.ask(Purge())
    queue.ask(Requeue(failed.message))

    assert queue.received() == "failed"


def test_a_message_that_fails_after_a_purge_of_dead_letters_is_kept(new_queue):
    queue = new_queue()
    _, leased = fill(queue)
    queue.ask(Purge(Scope.FAILED))
    queue.ask(Fail(leased.message, leased.token))

    assert queue.state_of(leased.message) == "failed"


def test_a_purged_dead_letter_whose_row_still_waits_does_not_come_back(new_queue):
    queue = new_queue()
    message = queue.enqueue()
    queue.checkpoint()
    queue.ask(Fail(queue.take().message))
    queue.ask(Purge(Scope.FAILED))
    queue.checkpoint()
    queue.shed()

    assert (queue.state_of(message), queue.receive()) == ("message_not_found", [])


def test_a_purged_message_whose_row_is_still_a_dead_letter_does_not_come_back(new_queue):
    queue = new_queue()
    message = queue.enqueue()
    queue.ask(Fail(queue.take().message))
    queue.checkpoint()
    queue.ask(Requeue(message))
    queue.ask(Purge())
    queue.checkpoint()
    queue.shed()

    assert (queue.state_of(message), queue.ask(Browse(Scope.FAILED))) == ("message_not_found", [])


def test_a_delayed_message_that_was_deleted_before_a_purge_is_counted_once(new_queue):
    queue = new_queue()
    message = queue.enqueue(delay_ms=100)
    queue.checkpoint()
    queue.ask(Delete(message))
    queue.ask(Purge())

    assert queue.stats() == {"deleted": 1, "enqueued": 1}


def test_a_delayed_message_purged_while_its_row_is_being_written_is_counted_once(new_queue):
    queue = new_queue()
    queue.enqueue(b"later", delay_ms=1_000)
    queue.enqueue(b"now")
    queue.checkpoint_step(1)
    queue.ask(Purge())
    queue.checkpoint_step(1)

    assert queue.stats() == {"purged": 2, "enqueued": 2}


def test_a_purged_lease_gives_its_slot_back(new_queue):
    queue = new_queue(concurrency=1)
    queue.enqueue()
    queue.take()
    queue.ask(Purge())
    queue.enqueue(b"new")

    assert queue.received() == "new"


@pytest.mark.parametrize("groups", [Groups.ORDERED, Groups.FIFO])
def test_a_purged_lease_no_longer_blocks_its_group(new_queue, groups):
    queue = new_queue(groups=groups)
    queue.enqueue(group="A")
    queue.take()
    queue.ask(Purge())
    queue.enqueue(b"new", group="A")

    assert queue.received() == "new"


def test_a_purged_lease_gives_its_keys_slot_back(new_queue):
    queue = new_queue(concurrency_per_key=1)
    queue.enqueue(concurrency_key="k")
    queue.take()
    queue.ask(Purge())
    queue.enqueue(b"new", concurrency_key="k")

    assert queue.received() == "new"


def test_a_purge_makes_room(new_queue):
    queue = new_queue(capacity=1)
    queue.enqueue()
    queue.ask(Purge())
    queue.enqueue(b"new")

    assert queue.received() == "new"


def test_what_was_purged_is_not_counted_as_expired_later(new_queue):
    queue = new_queue(ttl_ms=10, failed_ms=10)
    fill(queue)
    queue.ask(Purge())
    queue.ask(Purge(Scope.FAILED))
    queue.clock.advance(10)

    assert queue.ask(Wake()) == Done(0)
    assert queue.stats() == {"purged": 4, "enqueued": 4}


def test_what_was_purged_cannot_be_deleted(new_queue):
    queue = new_queue()
    message = queue.enqueue()
    queue.ask(Purge())

    assert queue.refusal(Delete(message)) == "message_not_found"


def test_a_purge_survives_a_crash(new_queue):
    queue = new_queue()
    fill(queue)
    queue.checkpoint()
    queue.ask(Purge())

    queue.crash()

    assert queue.receive() == []
    assert queue.stats() == {"failed": 1, "purged": 3, "enqueued": 4}


def test_purges_one_after_the_other_take_each_what_came_between(new_queue):
    queue = new_queue()
    counts = []
    for count in (2, 3):
        for _ in range(count):
            queue.enqueue()
        counts.append(queue.ask(Purge()).count)
    queue.enqueue(b"last")

    assert (counts, queue.received()) == ([2, 3], "last")
