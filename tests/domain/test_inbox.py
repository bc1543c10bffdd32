"""What an application enqueued in a transaction of its own is taken in like any other, and never lost."""

import pytest

from hq.domain.commands import Browse, Count, Enqueue, Get, TakeIn
from hq.domain.events import Claimed, Duplicated
from hq.domain.messages import Options
from hq.domain.replies import Accepted
from hq.domain.settings import Rate
from hq.domain.tasks import Scope
from hq.errors import QueueFull, RateLimited
from hq.testing.queue import at_once


def told(queue):
    """What the journal says, but for who claimed the queue."""
    events = at_once(queue.backend.tail(queue.number, 0, 1_000))
    return [event for event in events if not isinstance(event, Claimed)]


def take_in(queue, payload=b"work", unfit=None, **options):
    return queue.ask(TakeIn("ticket", payload, Options(**options), unfit))


def test_it_is_a_message_with_its_options(new_queue):
    queue = new_queue()

    taken = take_in(queue, priority=3, delay_ms=100)

    assert (taken.duplicate, queue.ask(Get(taken.message)).state) == (False, "delayed")
    queue.clock.advance(100)
    delivery = queue.take()
    assert (delivery.message, delivery.payload, delivery.options.priority) == (taken.message, b"work", 3)


def test_a_duplicate_stores_nothing_but_leaves_a_record(new_queue):
    queue = new_queue()
    first = queue.ask(Enqueue(b"first", Options(dedup_key="k"))).message

    taken = take_in(queue, dedup_key="k")

    assert taken == Accepted(first, duplicate=True)
    [_, event] = told(queue)
    assert (type(event), event.message, event.ticket) == (Duplicated, first, "ticket")
    queue.crash()
    assert queue.ask(Count()).enqueued == 1


@pytest.mark.parametrize(
    ("settings", "refusal"), [({"capacity": 1}, QueueFull), ({"enqueue_rate": Rate(1)}, RateLimited)]
)
def test_what_there_is_no_room_for_changes_nothing(new_queue, settings, refusal):
    queue = new_queue(**settings)
    take_in(queue)
    before = told(queue)

    with pytest.raises(refusal):
        take_in(queue)

    assert told(queue) == before


def test_what_is_too_large_becomes_a_dead_letter_that_says_so(new_queue):
    queue = new_queue(max_payload_bytes=3)

    take_in(queue, b"four", priority=2)

    [seen] = queue.ask(Browse(Scope.FAILED))
    message = seen.message
    assert (message.payload, message.options.priority) == (b"four", 2)
    assert message.reason == "payload_too_large"
    assert "takes 3" in message.error


def test_what_cannot_be_read_becomes_a_dead_letter_that_says_why(new_queue):
    queue = new_queue(capacity=1)
    queue.enqueue(b"the queue is full")

    take_in(queue, unfit="priority must be a number")

    [seen] = queue.ask(Browse(Scope.FAILED))
    assert (seen.message.reason, seen.message.error) == ("invalid_input", "priority must be a number")
    assert (queue.ask(Count()).ready, queue.ask(Count()).failed) == (1, 1)
    queue.crash()
    assert queue.ask(Count()).failed == 1


def test_such_a_dead_letter_holds_no_key_and_goes_where_dead_letters_go(new_queue):
    queue = new_queue(max_payload_bytes=3, dead_letter_queue="dead")

    take_in(queue, b"four", dedup_key="k")

    assert queue.ask(Count()).moving == 1
    assert not queue.ask(Enqueue(b"two", Options(dedup_key="k"))).duplicate
