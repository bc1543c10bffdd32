"""Limits: concurrency, capacity, rates, sizes; and what is malformed is refused and changes nothing."""

import pytest

from hq.domain.commands import Complete, Configure, Enqueue, Fail, Receive, Release, Requeue, Retry
from hq.domain.messages import Options
from hq.domain.settings import Rate, Settings
from hq.errors import InvalidInput, RateLimited

DAY_AND_MORE = 24 * 60 * 60 * 1_000 + 1


def refused_until(queue, command):
    """The instant a rate names for the next try."""
    with pytest.raises(RateLimited) as refusal:
        queue.ask(command)
    return refusal.value.retry_at


# Concurrency.


def test_no_more_than_the_concurrency_are_leased_at_once(new_queue):
    queue = new_queue(concurrency=2)
    for _ in range(5):
        queue.enqueue()

    assert [len(queue.receive()), len(queue.receive())] == [2, 0]


@pytest.mark.parametrize("verb", [Complete, Fail, Release, Retry])
def test_a_slot_comes_back_when_its_lease_is_settled(new_queue, verb):
    queue = new_queue(concurrency=1)
    queue.enqueue(b"a")
    queue.enqueue(b"b")
    delivery = queue.take()

    queue.ask(verb(delivery.message, delivery.token))

    assert len(queue.receive()) == 1


def test_a_dead_workers_slot_comes_back_when_its_lease_ends(new_queue):
    queue = new_queue(concurrency=1, lease_ms=100)
    queue.enqueue()
    queue.enqueue()
    queue.take()
    queue.clock.advance(99)
    assert queue.receive() == []

    queue.clock.advance(1)

    assert len(queue.receive()) == 1


def test_a_lowered_concurrency_takes_no_lease_away(new_queue):
    queue = new_queue(concurrency=3)
    for _ in range(4):
        queue.enqueue()
    leases = queue.receive()
    queue.ask(Configure(Settings(concurrency=2)))

    queue.ask(Complete(leases[0].message, leases[0].token))
    assert queue.receive() == []
    queue.ask(Complete(leases[1].message, leases[1].token))
    assert len(queue.receive()) == 1


def test_per_key_no_more_than_its_limit_are_leased_at_once(new_queue):
    queue = new_queue(concurrency_per_key=2)
    for payload, key in ((b"a", "k"), (b"b", "k"), (b"c", "k"), (b"d", "j"), (b"e", None)):
        queue.enqueue(payload, concurrency_key=key)

    assert queue.received() == "abde"
    assert queue.received() == ""


def test_per_key_the_limit_counts_what_one_receive_takes_and_what_was_leased_before(new_queue):
    queue = new_queue(concurrency_per_key=2)
    for payload in (b"a", b"b", b"c"):
        queue.enqueue(payload, concurrency_key="k")

    assert [queue.received(1), queue.received(), queue.received()] == ["a", "b", ""]


def test_per_key_a_slot_that_comes_back_goes_to_the_next_in_order(new_queue):
    queue = new_queue(concurrency_per_key=1)
    queue.enqueue(b"a", concurrency_key="k")
    queue.enqueue(b"b", concurrency_key="k")
    queue.enqueue(b"c", concurrency_key="k", priority=5)
    delivery = queue.take()
    assert (delivery.payload, queue.received()) == (b"c", "")

    queue.ask(Complete(delivery.message, delivery.token))

    assert queue.received() == "a"


def test_per_key_a_message_that_waits_for_its_retry_holds_no_slot(new_queue):
    queue = new_queue(concurrency_per_key=1)
    queue.enqueue(b"a", concurrency_key="k")
    queue.enqueue(b"b", concurrency_key="k")
    delivery = queue.take()
    queue.ask(Retry(delivery.message, delivery.token, delay_ms=10))

    assert queue.received() == "b"


def test_without_a_limit_per_key_a_key_holds_nobody_back(new_queue):
    queue = new_queue()
    for payload in (b"a", b"b", b"c"):
        queue.enqueue(payload, concurrency_key="k")

    assert queue.received() == "abc"


def test_a_limit_per_key_that_is_raised_lets_the_next_out(new_queue):
    queue = new_queue(concurrency_per_key=1)
    for payload in (b"a", b"b", b"c"):
        queue.enqueue(payload, concurrency_key="k")
    assert queue.received() == "a"

    queue.ask(Configure(Settings(concurrency_per_key=2)))

    assert queue.received() == "b"


# Capacity.


def test_a_full_queue_refuses_and_takes_again_when_there_is_room(new_queue):
    queue = new_queue(capacity=2)
    queue.enqueue()
    queue.enqueue(delay_ms=1_000)
    delivery = queue.take()
    assert queue.refusal(Enqueue(b"")) == "queue_full"
    assert queue.stats() == {"leased": 1, "delayed": 1, "enqueued": 2}

    queue.ask(Complete(delivery.message, delivery.token))

    assert queue.refusal(Enqueue(b"")) is None


def test_dead_letters_do_not_count_in_capacity(new_queue):
    queue = new_queue(capacity=1)
    queue.enqueue()
    queue.ask(Fail(queue.take().message))

    assert queue.refusal(Enqueue(b"")) is None


def test_what_is_expired_makes_room_first(new_queue):
    queue = new_queue(capacity=3)
    for _ in range(3):
        queue.enqueue(ttl_ms=10)
    queue.clock.advance(9)
    assert queue.refusal(Enqueue(b"")) == "queue_full"

    queue.clock.advance(1)

    assert [queue.refusal(Enqueue(b"")) for _ in range(4)] == [None, None, None, "queue_full"]


def test_a_requeue_ignores_capacity(new_queue):
    queue = new_queue(capacity=1)
    queue.enqueue()
    failed = queue.take().message
    queue.ask(Fail(failed))
    queue.enqueue()

    assert queue.ask(Requeue(failed)).state == "ready"
    assert queue.refusal(Enqueue(b"")) == "queue_full"


# Rates.


def test_the_enqueue_rate_refuses_and_says_when_to_try_again(new_queue):
    queue = new_queue(enqueue_rate=Rate(2, per_ms=1_000, burst=3))
    for _ in range(3):
        queue.enqueue()

    assert refused_until(queue, Enqueue(b"")) == queue.clock.now + 500
    queue.clock.advance(499)
    assert refused_until(queue, Enqueue(b"")) == queue.clock.now + 1
    queue.clock.advance(1)
    queue.enqueue()
    assert queue.stats() == {"ready": 4, "enqueued": 4}


def test_a_rate_gathers_no_more_than_its_burst(new_queue):
    queue = new_queue(enqueue_rate=Rate(1, per_ms=10, burst=2))
    queue.clock.advance(days=1)
    queue.enqueue()
    queue.enqueue()

    assert queue.refusal(Enqueue(b"")) == "rate_limited"


def test_a_rate_that_does_not_divide_evenly_loses_nothing(new_queue):
    queue = new_queue(enqueue_rate=Rate(3, per_ms=10, burst=2))
    accepted = 0
    for _ in range(100):
        accepted += queue.refusal(Enqueue(b"")) is None
        queue.clock.advance(1)

    # Two at once and 3 in each 10 ms of the 99 that had passed at the last try: 2 + 29.7.
    assert accepted == 31


def test_a_duplicate_does_not_use_the_rate_up(new_queue):
    queue = new_queue(enqueue_rate=Rate(1, burst=2))
    for _ in range(3):
        queue.enqueue(dedup_key="key")

    assert queue.refusal(Enqueue(b"")) is None


def test_the_receive_rate_gives_what_it_allows_and_then_nothing(new_queue):
    queue = new_queue(receive_rate=Rate(1, per_ms=100, burst=2))
    for payload in (b"a", b"b", b"c", b"d"):
        queue.enqueue(payload)

    assert [queue.received(), queue.received()] == ["ab", ""]
    queue.clock.advance(100)
    assert queue.received() == "c"


def test_a_receive_that_finds_nothing_uses_no_rate(new_queue):
    queue = new_queue(receive_rate=Rate(1, burst=1))
    queue.receive()
    queue.enqueue(b"a")

    assert queue.received() == "a"


def test_a_rate_that_is_used_up_stays_so_through_a_crash(new_queue):
    queue = new_queue(enqueue_rate=Rate(1, burst=1))
    queue.enqueue()

    queue.crash()

    assert queue.refusal(Enqueue(b"")) == "rate_limited"


def test_a_rate_that_changes_starts_full(new_queue):
    queue = new_queue(enqueue_rate=Rate(1, burst=1))
    queue.enqueue()
    queue.ask(Configure(Settings(enqueue_rate=Rate(1, burst=2))))

    queue.enqueue()
    queue.enqueue()
    assert queue.refusal(Enqueue(b"")) == "rate_limited"


# Sizes and malformed input.


def test_a_payload_may_have_as_many_bytes_as_the_queue_takes_and_no_more(new_queue):
    queue = new_queue(max_payload_bytes=4)

    assert queue.refusal(Enqueue(b"four")) is None
    assert queue.refusal(Enqueue(b"five5")) == "payload_too_large"
    assert queue.stats() == {"ready": 1, "enqueued": 1}


def test_by_default_a_payload_may_have_512_kib(new_queue):
    queue = new_queue()

    assert queue.refusal(Enqueue(bytes(512 * 1024 + 1))) == "payload_too_large"


def test_any_bytes_are_kept_verbatim(new_queue):
    queue = new_queue()
    payload = bytes(range(256))
    queue.enqueue(payload)

    assert queue.take().payload == payload


def test_a_holder_that_is_too_long_is_refused_and_nothing_is_received(new_queue):
    queue = new_queue()
    queue.enqueue()

    assert queue.refusal(Receive(1, holder="x" * 129)) == "invalid_input"
    assert queue.stats() == {"ready": 1, "enqueued": 1}


@pytest.mark.parametrize(
    "wrong",
    [
        {"priority": 1 << 15},
        {"priority": -(1 << 15) - 1},
        {"priority": 1.5},
        {"dedup_ms": -1},
        {"delay_ms": -1},
        {"ttl_ms": 0},
        {"max_attempts": 0},
        {"lease_ms": DAY_AND_MORE},
        {"group": "x" * 129},
        {"concurrency_key": "x" * 129},
        {"dedup_key": "x" * 513},
        {"content_type": "x" * 129},
        {"group": "a", "concurrency_key": "b"},
        {"headers": tuple((str(n), "") for n in range(65))},
        {"headers": (("a", "x" * 65_536),)},
        {"group": b"bytes"},
    ],
)
def test_malformed_options_cannot_be_made(wrong):
    with pytest.raises(InvalidInput):
        Options(**wrong)


@pytest.mark.parametrize(
    "wrong",
    [
        {"max_attempts": 0},
        {"lease_ms": -1},
        {"lease_ms": DAY_AND_MORE},
        {"delay_ms": -1},
        {"ttl_ms": 0},
        {"dedup_ms": -1},
        {"concurrency": 0},
        {"concurrency_per_key": 0},
        {"capacity": 0},
        {"max_payload_bytes": 0},
        {"failed_ms": -1},
        {"lease_ms": True},
    ],
)
def test_settings_out_of_bounds_cannot_be_made(wrong):
    with pytest.raises(InvalidInput):
        Settings(**wrong)


@pytest.mark.parametrize("wrong", [{"limit": 0}, {"limit": 1, "per_ms": 0}, {"limit": 1, "burst": 0}])
def test_a_rate_out_of_bounds_cannot_be_made(wrong):
    with pytest.raises(InvalidInput):
        Rate(**wrong)
