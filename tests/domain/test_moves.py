"""Moves: a dead letter goes to another queue exactly once, whatever crashes on the way."""

import pytest

from hq.domain.commands import (
    Delete,
    Fail,
    NextMove,
    Pause,
    Purge,
    Requeue,
    ReturnMove,
    SettleMove,
    TakeMove,
    Wake,
)
from hq.domain.ids import MessageId
from hq.domain.replies import Accepted, Done
from hq.domain.settings import Rate
from hq.domain.tasks import Scope
from hq.domain.timing import wake_at


def fail(queue, error=None):
    delivery = queue.take()
    queue.ask(Fail(delivery.message, delivery.token, error))
    return delivery


def pair(new_queue, of_target=None, **of_source):
    """A queue and the one its dead letters go to, in one store."""
    source = new_queue(**{"dead_letter_queue": "queue-2", **of_source})
    target = new_queue(backend=source.backend, clock=source.clock, **(of_target or {}))
    return source, target


def take_move(source, carried):
    """What the courier asks of the target."""
    moving = carried.message
    origin_id = str(MessageId(1, source.number, moving.sequence))
    return TakeMove(source.number, carried.number, moving.payload, moving.options, origin_id, moving.history)


def carry(source, target):
    """Everything the courier does, until nothing is on its way."""
    while (carried := source.ask(NextMove())) is not None:
        target.ask(take_move(source, carried))
        source.ask(SettleMove(carried.number))


def test_a_dead_letter_moves_with_payload_options_record_and_origin(new_queue):
    source, target = pair(new_queue)
    message = source.enqueue(b"work", headers=(("a", "b"),), priority=4)
    fail(source, "broken")
    carry(source, target)

    delivery = target.take()

    assert (delivery.payload, delivery.options.headers, delivery.options.priority) == (
        b"work", (("a", "b"),), 4,
    )  # fmt: skip
    assert [attempt.error for attempt in delivery.history] == ["broken"]
    assert MessageId.parse(delivery.origin_id) == MessageId(1, source.number, message)
    assert (delivery.receives, delivery.attempts) == (1, 1)


def test_a_moved_message_is_gone_from_its_source(new_queue):
    source, target = pair(new_queue)
    message = source.enqueue()
    fail(source)
    assert source.state_of(message) == "moving"

    carry(source, target)

    assert source.state_of(message) == "message_not_found"
    assert (source.stats(), target.stats()) == ({"moved": 1, "enqueued": 1}, {"ready": 1, "enqueued": 1})


def test_a_message_whose_last_lease_ended_moves_too(new_queue):
    source, target = pair(new_queue, max_attempts=1, lease_ms=100)
    source.enqueue(b"work")
    source.take()
    source.clock.advance(100)
    carry(source, target)

    assert target.received() == "work"


def test_moves_are_numbered_and_go_in_the_order_the_messages_failed(new_queue):
    source, target = pair(new_queue)
    for payload in (b"a", b"b", b"c"):
        source.enqueue(payload)
    first, second, third = source.receive()
    for delivery in (second, first, third):
        source.ask(Fail(delivery.message, delivery.token))

    assert source.ask(NextMove()).number == 1
    carry(source, target)
    assert target.received() == "bac"


def test_several_leases_that_end_at_once_move_under_different_numbers(new_queue):
    source, target = pair(new_queue, max_attempts=1, lease_ms=100)
    for payload in (b"a", b"b", b"c"):
        source.enqueue(payload)
    source.receive()
    source.clock.advance(100)
    carry(source, target)

    assert target.received() == "abc"


def test_a_move_that_is_given_twice_is_taken_once(new_queue):
    source, target = pair(new_queue)
    source.enqueue()
    fail(source)
    move = take_move(source, source.ask(NextMove()))

    assert isinstance(target.ask(move), Accepted)
    assert target.ask(move) == Done()
    assert target.stats() == {"ready": 1, "enqueued": 1}


def test_each_source_has_numbers_of_its_own(new_queue):
    first, target = pair(new_queue)
    second = new_queue(backend=first.backend, clock=first.clock, dead_letter_queue="queue-2")
    for source, payload in ((first, b"a"), (second, b"b")):
        source.enqueue(payload)
        fail(source)
        carry(source, target)

    assert target.received() == "ab"


def test_settling_a_move_twice_does_nothing_the_second_time(new_queue):
    source, target = pair(new_queue)
    source.enqueue()
    fail(source)
    carry(source, target)

    assert source.ask(SettleMove(1)) == Done()


@pytest.mark.parametrize("crash_after", ["fail", "next", "take", "settle"])
def test_a_crash_after_any_step_neither_loses_nor_doubles_the_message(new_queue, crash_after):
    source, target = pair(new_queue)
    source.enqueue(b"work")

    def step(name):
        if name == crash_after:
            source.crash()
            target.crash()
            carry(source, target)

    fail(source)
    step("fail")
    if (carried := source.ask(NextMove())) is not None:
        step("next")
        target.ask(take_move(source, carried))
        step("take")
        source.ask(SettleMove(carried.number))
        step("settle")

    assert (source.stats(), target.stats()) == ({"moved": 1, "enqueued": 1}, {"ready": 1, "enqueued": 1})


def test_a_missing_target_leaves_the_message_among_the_sources_dead_letters(new_queue):
    source = new_queue(dead_letter_queue="nowhere", failed_ms=100)
    source.enqueue(b"work")
    message = fail(source, "broken").message
    source.clock.advance(1_000)

    assert source.ask(ReturnMove(source.ask(NextMove()).number)) == Done(1)
    kept = source.get(message)
    assert (source.state_of(message), kept.payload, kept.error) == ("failed", b"work", "broken")
    assert source.ask(NextMove()) is None


def test_a_message_that_came_back_is_kept_from_then_on_and_can_be_requeued(new_queue):
    source = new_queue(dead_letter_queue="nowhere", failed_ms=100)
    source.enqueue(b"work")
    message = fail(source).message
    source.clock.advance(1_000)
    source.ask(ReturnMove(1))

    source.clock.advance(99)
    assert source.ask(Requeue(message)).state == "ready"
    assert source.received() == "work"


def test_a_message_on_its_way_is_not_dropped_however_long_it_takes(new_queue):
    source, target = pair(new_queue, failed_ms=100)
    source.enqueue(b"work", ttl_ms=10)
    fail(source)
    source.clock.advance(days=30)
    source.ask(Wake())
    carry(source, target)

    assert target.received() == "work"


def test_a_move_ignores_the_targets_capacity_rate_and_pause(new_queue):
    source, target = pair(new_queue, {"capacity": 1, "enqueue_rate": Rate(1)})
    target.enqueue()
    target.ask(Pause())
    source.enqueue()
    fail(source)
    carry(source, target)

    assert target.stats() == {"ready": 2, "enqueued": 2}


def test_a_moved_message_goes_without_its_key_if_another_holds_it_in_the_target(new_queue):
    source, target = pair(new_queue)
    held = target.enqueue(dedup_key="key")
    source.enqueue(dedup_key="key")
    fail(source)
    carry(source, target)

    assert target.stats() == {"ready": 2, "enqueued": 2}
    assert target.enqueue(dedup_key="key") == held


def test_a_moved_message_holds_its_key_in_the_target_if_it_is_free(new_queue):
    source, target = pair(new_queue)
    source.enqueue(dedup_key="key")
    fail(source)
    carry(source, target)

    target.enqueue(dedup_key="key")

    assert target.stats() == {"ready": 1, "enqueued": 1}


def test_a_message_that_is_deleted_on_its_way_is_not_carried(new_queue):
    source, target = pair(new_queue)
    first, second = source.enqueue(b"a"), source.enqueue(b"b")
    for _ in (first, second):
        fail(source)
    source.ask(Delete(first))
    carry(source, target)

    assert target.received() == "b"
    assert source.stats() == {"deleted": 1, "moved": 1, "enqueued": 2}


@pytest.mark.parametrize("scope", Scope)
def test_a_purge_leaves_alone_what_is_on_its_way(new_queue, scope):
    source, target = pair(new_queue)
    source.enqueue(b"work")
    fail(source)
    source.ask(Purge(scope))
    carry(source, target)

    assert target.received() == "work"


def test_a_queue_with_something_to_move_wakes_at_once(new_queue):
    source, _ = pair(new_queue)
    source.enqueue()
    fail(source)

    assert wake_at(source.state) <= source.clock.now
