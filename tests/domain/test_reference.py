"""The reference model by hand: short stories whose ending the design's rule table tells."""

from hq.domain.commands import (
    Complete,
    Configure,
    Count,
    Delete,
    DeleteByKey,
    Enqueue,
    Extend,
    Fail,
    Pause,
    PauseGroup,
    Peek,
    Purge,
    Receive,
    Release,
    Replace,
    Requeue,
    ResumeGroup,
    Retry,
)
from hq.domain.messages import Options
from hq.domain.settings import Backoff, DedupScope, Groups, Rate, RetryPolicy, Settings
from hq.domain.tasks import Scope
from tests.domain.reference import Reference

FIFO = Settings(groups=Groups.FIFO, lease_ms=100)


def queue(**settings) -> Reference:
    return Reference(Settings(**{"lease_ms": 100, **settings}))


def enqueue(reference, now=0, payload=b"", **options):
    return reference.ask(Enqueue(payload, Options(**options)), now)


def received(reference, limit=10, now=0):
    verb, deliveries = reference.ask(Receive(limit), now)
    assert verb == "received"
    return [delivery[0] for delivery in deliveries]


def refused(code):
    return ("refused", code)


def stats(reference, now):
    return {name: count for name, count in reference.ask(Count(), now)[1].items() if count}


def test_order_is_priority_then_available_at_then_sequence():
    reference = queue()
    for options in ({}, {"priority": -1}, {"priority": 5, "delay_ms": 3}, {"priority": 5, "delay_ms": 2}, {}):
        enqueue(reference, **options)

    assert reference.ask(Peek(10), 2) == ("peeked", [4, 2, 1, 5])
    assert received(reference, now=3) == [4, 3, 2, 1, 5]


def test_a_delivery_tells_receives_attempts_and_the_end_of_its_lease():
    reference = queue()
    enqueue(reference, payload=b"x")
    enqueue(reference, payload=b"y", lease_ms=7)

    assert reference.ask(Receive(1), 10) == ("received", [(1, 1, 1, 110, b"x")])
    assert reference.ask(Release(1, 1), 11) == ("settled", 1, "ready")
    assert reference.ask(Receive(2), 12) == ("received", [(1, 2, 1, 112, b"x"), (2, 1, 1, 19, b"y")])
    assert reference.ask(Receive(1, lease_ms=0), 20) == ("received", [(2, 2, 2, 20, b"y")])
    assert reference.ask(Receive(1, lease_ms=0), 20) == ("received", [(2, 3, 3, 20, b"y")])


def test_a_lease_blocks_its_group_and_one_receive_takes_several_of_it():
    reference = queue()
    for group in ("a", "a", "b"):
        enqueue(reference, group=group)

    assert received(reference, limit=1) == [1]
    assert received(reference) == [3]
    assert reference.ask(Release(1, 1), 1) == ("settled", 1, "ready")
    assert received(reference, now=1) == [1, 2]


def test_a_retry_keeps_its_place_in_the_group_and_a_new_delayed_message_blocks_only_itself():
    reference = queue(lease_ms=1_000)
    enqueue(reference, group="a", delay_ms=50)
    enqueue(reference, group="a")
    enqueue(reference, group="a")

    assert received(reference, limit=1) == [2]
    assert reference.ask(Retry(2, 1, delay_ms=60), 1) == ("settled", 2, "delayed")
    assert received(reference, now=60) == []
    assert received(reference, now=61) == [2, 3, 1]


def test_in_fifo_nothing_overtakes_and_an_ended_lease_cannot_complete():
    reference = Reference(FIFO)
    enqueue(reference, delay_ms=50)
    enqueue(reference, priority=9)

    assert received(reference, now=49) == []
    assert received(reference, limit=1, now=50) == [1]
    assert reference.ask(Complete(1, 1), 150) == refused("lease_expired")
    assert received(reference, now=150) == [1, 2]


def test_only_the_latest_token_settles_and_it_may_come_late():
    reference = queue()
    enqueue(reference)
    received(reference)

    assert reference.ask(Complete(1, -1), 0) == refused("lease_not_held")
    assert reference.ask(Retry(1, 1), 100) == refused("lease_expired")
    assert reference.ask(Complete(1), 100) == refused("lease_not_held")
    assert received(reference, now=100) == [1]
    assert reference.ask(Complete(1, 1), 100) == refused("lease_not_held")
    assert reference.ask(Complete(1, 2), 200) == ("settled", 1, "completed")
    assert reference.ask(Complete(1, 2), 200) == refused("message_not_found")


def test_the_last_attempt_ends_in_failed_and_requeue_starts_a_new_round():
    reference = queue(max_attempts=1, ttl_ms=300, failed_ms=1_000)
    enqueue(reference)
    received(reference)

    assert reference.ask(Requeue(1), 50) == refused("message_not_failed")
    assert stats(reference, 100) == {"enqueued": 1, "failed": 1}
    assert reference.ask(Fail(1, 1), 100) == refused("lease_expired")
    assert reference.ask(Requeue(1), 400) == ("settled", 1, "ready")
    assert reference.ask(Receive(1), 401) == ("received", [(1, 2, 1, 501, b"")])
    assert reference.ask(Retry(1, 2), 402) == ("settled", 1, "failed")
    assert reference.ask(Delete(1), 1_402) == refused("message_not_found")
    assert stats(reference, 1_402) == {"enqueued": 1, "deleted": 1}


def test_a_lowered_max_attempts_fails_what_a_receive_meets():
    reference = queue()
    enqueue(reference)
    enqueue(reference)
    received(reference, limit=1)
    reference.ask(Configure(Settings(max_attempts=2, lease_ms=100)), 0)
    assert reference.ask(Extend(1, 1, lease_ms=0), 1) == ("settled", 1, "leased")
    reference.ask(Configure(Settings(max_attempts=1, lease_ms=100)), 0)
    assert stats(reference, 1) == {"enqueued": 2, "ready": 2}

    assert reference.ask(Peek(1), 1) == ("peeked", [2])
    assert received(reference, limit=1, now=1) == [2]
    assert stats(reference, 1) == {"enqueued": 2, "leased": 1, "failed": 1}


def test_a_policy_may_move_a_retry_by_its_jitter():
    reference = queue(retry=RetryPolicy(base_ms=100, jitter_percent=10))
    enqueue(reference)
    received(reference)

    reference.retry_available_at = 95
    assert reference.ask(Retry(1, 1), 5) == ("settled", 1, "delayed")
    assert (received(reference, now=94), received(reference, now=95)) == ([], [1])
    reference.ask(Configure(Settings(retry=RetryPolicy(Backoff.NONE))), 96)
    assert reference.ask(Retry(1), 96) == ("settled", 1, "ready")


def test_a_dedup_key_holds_while_its_message_lives_and_for_the_window():
    reference = queue(dedup_ms=50)
    assert enqueue(reference, dedup_key="k") == ("accepted", 1, False)
    assert enqueue(reference, dedup_key="k", now=70) == ("accepted", 1, True)
    assert reference.ask(Replace("k", b"new"), 70) == ("settled", 1, "ready")
    assert reference.ask(Receive(1), 70) == ("received", [(1, 1, 1, 170, b"new")])
    assert reference.ask(Replace("k", b"late"), 70) == refused("message_not_waiting")
    reference.ask(Complete(1, 1), 70)

    assert enqueue(reference, dedup_key="k", now=70) == ("accepted", 2, False)
    received(reference, now=71)
    reference.ask(Complete(2), 71)
    assert enqueue(reference, dedup_key="k", now=119) == ("accepted", 2, True)
    assert reference.ask(DeleteByKey("k"), 119) == refused("message_not_found")
    assert enqueue(reference, dedup_key="k", now=120) == ("accepted", 3, False)


def test_a_requeued_message_goes_without_its_key_if_that_is_taken():
    reference = queue(dedup_scope=DedupScope.GROUP)
    enqueue(reference, dedup_key="k", group="a")
    assert enqueue(reference, dedup_key="k", group="b") == ("accepted", 2, False)
    received(reference, limit=1)
    reference.ask(Fail(1, 1), 1)
    assert enqueue(reference, dedup_key="k", group="a", now=1) == ("accepted", 3, False)

    assert reference.ask(Requeue(1), 1) == ("settled", 1, "ready")
    assert reference.ask(DeleteByKey("k", "a"), 1) == ("settled", 3, "deleted")
    assert reference.ask(DeleteByKey("k", "a"), 1) == refused("message_not_found")


def test_slots_of_the_queue_and_of_a_key_come_back_when_a_lease_ends():
    reference = queue(concurrency=2, concurrency_per_key=1)
    for key in ("a", "a", "b", None):
        enqueue(reference, concurrency_key=key)

    assert reference.ask(Peek(10), 0) == ("peeked", [1, 3, 4])
    assert received(reference) == [1, 3]
    assert received(reference, now=99) == []
    assert received(reference, now=100) == [1, 3]


def test_a_rate_starts_with_its_burst_and_comes_back_in_time():
    reference = queue(enqueue_rate=Rate(3, 10, 4), receive_rate=Rate(3, 10, 2))
    assert [enqueue(reference)[0] for _ in range(5)] == ["accepted"] * 4 + ["refused"]
    assert received(reference) == [1, 2]
    assert received(reference, now=3) == []
    assert enqueue(reference, now=3) == refused("rate_limited")
    assert received(reference, now=4) == [3]
    assert received(reference, now=6) == []
    assert received(reference, now=7) == [4]


def test_a_full_queue_and_a_large_payload_are_refused_but_a_duplicate_is_answered():
    reference = queue(capacity=1, max_payload_bytes=1)
    enqueue(reference, dedup_key="k", ttl_ms=10)

    assert enqueue(reference, payload=b"xx", dedup_key="k") == refused("payload_too_large")
    assert enqueue(reference, dedup_key="k") == ("accepted", 1, True)
    assert enqueue(reference, now=9) == refused("queue_full")
    assert enqueue(reference, now=10) == ("accepted", 2, False)
    assert stats(reference, 10) == {"enqueued": 2, "ready": 1, "expired": 1}


def test_purging_the_live_clears_every_key_and_purging_dead_letters_none():
    reference = queue(dedup_ms=1_000)
    for key in ("a", "b", "c"):
        enqueue(reference, dedup_key=key)
    received(reference, limit=2)
    reference.ask(Fail(1, 1), 0)

    assert reference.ask(Purge(Scope.FAILED), 0) == ("done", 1)
    assert enqueue(reference, dedup_key="a") == ("accepted", 1, True)
    assert reference.ask(Purge(), 0) == ("done", 2)
    assert enqueue(reference, dedup_key="a") == ("accepted", 4, False)
    assert stats(reference, 0) == {"enqueued": 4, "purged": 3, "ready": 1}


def test_a_pause_hands_out_nothing_and_a_label_cannot_be_paused():
    reference = queue()
    enqueue(reference, group="a")
    enqueue(reference, group="b")

    reference.ask(PauseGroup("a"), 0)
    assert received(reference) == [2]
    assert reference.ask(Configure(Settings(groups=Groups.LABEL)), 0) == ("done",)
    assert reference.ask(PauseGroup("a"), 0) == refused("invalid_input")
    assert reference.ask(Configure(FIFO), 0) == refused("setting_fixed")
    assert received(reference) == []
    reference.ask(ResumeGroup("a"), 0)
    reference.ask(Pause(), 0)
    assert reference.ask(Peek(), 0) == ("peeked", [1])
    assert received(reference) == []
