"""Retries: when the next attempt comes, and what happens after the last."""

import pytest

from hq.domain.commands import Configure, Count, Fail, Receive, Release, Retry
from hq.domain.settings import HOUR_MS, Backoff, RetryPolicy, Settings
from hq.errors import InvalidInput
from hq.testing import SeededChance

STEADY = RetryPolicy(jitter_percent=0)
AT_ONCE = RetryPolicy(Backoff.NONE)


class Extreme(SeededChance):
    """Chance that always falls on one side."""

    def __init__(self, side):
        super().__init__()
        self.side = side

    def between(self, low, high):
        return {"low": low, "high": high}[self.side]


def retry(queue, **how):
    """Receive the next message, send it back, and say after how long it comes again."""
    delivery = queue.take()
    settled = queue.ask(Retry(delivery.message, delivery.token, **how))
    return settled.until - queue.clock.now


def delays(queue, attempts):
    """The delay after each of the first attempts of a new message."""
    queue.enqueue()
    waits = []
    for _ in range(attempts):
        waits.append(retry(queue))
        queue.clock.advance(waits[-1])
    return waits


@pytest.mark.parametrize(
    ("policy", "expected"),
    [
        (STEADY, [1_000, 2_000, 4_000, 8_000]),
        (RetryPolicy(base_ms=10, factor=3, cap_ms=100, jitter_percent=0), [10, 30, 90, 100]),
        (RetryPolicy(Backoff.LINEAR, base_ms=10, cap_ms=35, jitter_percent=0), [10, 20, 30, 35]),
        (RetryPolicy(Backoff.FIXED, base_ms=10, jitter_percent=0), [10, 10, 10, 10]),
        (RetryPolicy(Backoff.FIXED, base_ms=10, cap_ms=5, jitter_percent=0), [5, 5, 5, 5]),
        (AT_ONCE, [0, 0, 0, 0]),
    ],
)
def test_the_delay_grows_as_the_policy_says(new_queue, policy, expected):
    assert delays(new_queue(retry=policy), 4) == expected


def test_by_default_a_retry_comes_after_a_second_and_then_twice_as_late_up_to_an_hour():
    policy = Settings().retry

    assert [policy.delay_ms(attempt) for attempt in (1, 2, 3, 12, 13, 1_000)] == [
        1_000, 2_000, 4_000, 2_048_000, HOUR_MS, HOUR_MS,
    ]  # fmt: skip
    assert policy.jitter_percent == 10


@pytest.mark.parametrize(("side", "expected"), [("low", 900), ("high", 1_100)])
def test_jitter_moves_a_delay_by_at_most_its_percentage(new_queue, side, expected):
    queue = new_queue(chance=Extreme(side))
    queue.enqueue()

    assert retry(queue) == expected


def test_jitter_spreads_delays(new_queue):
    queue = new_queue()
    for _ in range(20):
        queue.enqueue()
    waits = {retry(queue) for _ in range(20)}

    assert len(waits) > 10
    assert all(900 <= wait <= 1_100 for wait in waits)


@pytest.mark.parametrize("side", ["low", "high"])
def test_an_explicit_delay_is_exact(new_queue, side):
    queue = new_queue(chance=Extreme(side))
    queue.enqueue()

    assert retry(queue, delay_ms=777) == 777


def test_the_messages_policy_comes_before_the_queues(new_queue):
    queue = new_queue(retry=STEADY)
    queue.enqueue(retry=RetryPolicy(Backoff.FIXED, base_ms=5, jitter_percent=0))

    assert retry(queue) == 5


def test_a_retried_message_is_delayed_until_then(new_queue):
    queue = new_queue(retry=STEADY)
    message = queue.enqueue()
    retry(queue)

    queue.clock.advance(999)
    assert (queue.state_of(message), queue.receive()) == ("delayed", [])
    queue.clock.advance(1)
    assert queue.take().message == message


def test_a_retry_without_delay_is_ready_at_once(new_queue):
    queue = new_queue()
    queue.enqueue()
    delivery = queue.take()

    assert queue.ask(Retry(delivery.message, delivery.token, delay_ms=0)).state == "ready"
    assert queue.take().attempts == 2


def test_a_message_gets_five_attempts_by_default(new_queue):
    queue = new_queue(retry=AT_ONCE)
    message = queue.enqueue()
    for attempt in range(1, 6):
        delivery = queue.take()
        assert delivery.attempts == attempt
        queue.ask(Retry(message, delivery.token))

    assert (queue.state_of(message), queue.receive()) == ("failed", [])


def test_a_retry_of_the_last_attempt_fails_the_message_with_its_error(new_queue):
    queue = new_queue(max_attempts=1)
    message = queue.enqueue()
    delivery = queue.take()

    assert queue.ask(Retry(message, delivery.token, error="no")).state == "failed"
    assert (queue.get(message).reason, queue.get(message).error) == ("attempts", "no")


def test_a_last_lease_that_ends_fails_the_message(new_queue):
    queue = new_queue(max_attempts=2, lease_ms=100)
    message = queue.enqueue()
    for _ in range(2):
        queue.take()
        queue.clock.advance(100)

    assert (queue.state_of(message), queue.get(message).reason) == ("failed", "attempts")
    assert queue.receive() == []


def test_an_explicit_delay_does_not_buy_another_attempt(new_queue):
    queue = new_queue(max_attempts=1)
    message = queue.enqueue()
    delivery = queue.take()

    assert queue.ask(Retry(message, delivery.token, delay_ms=5)).state == "failed"


@pytest.mark.parametrize(("of_queue", "of_message", "expected"), [(5, 2, 2), (1, 3, 3), (None, 2, 2)])
def test_the_messages_own_bound_on_attempts_comes_before_the_queues(
    new_queue, of_queue, of_message, expected
):
    queue = new_queue(max_attempts=of_queue, retry=AT_ONCE)
    message = queue.enqueue(max_attempts=of_message)
    for _ in range(expected):
        assert queue.state_of(message) == "ready"
        queue.ask(Retry(message, queue.take().token))

    assert queue.state_of(message) == "failed"


def test_without_a_bound_a_message_is_tried_for_ever(new_queue):
    queue = new_queue(max_attempts=None, retry=AT_ONCE)
    message = queue.enqueue()
    for _ in range(30):
        retry(queue)

    assert queue.state_of(message) == "ready"


def test_a_released_attempt_does_not_count(new_queue):
    queue = new_queue(max_attempts=2, retry=AT_ONCE)
    message = queue.enqueue()
    retry(queue)
    delivery = queue.take()
    queue.ask(Release(message, delivery.token))

    assert queue.take().attempts == 2


def test_the_last_ten_attempts_are_kept_with_their_errors(new_queue):
    queue = new_queue(max_attempts=None, retry=AT_ONCE)
    message = queue.enqueue()
    for attempt in range(1, 13):
        [delivery] = queue.ask(Receive(1, holder=f"worker {attempt}"))
        queue.ask(Retry(message, delivery.token, error=f"error {attempt}"))

    history = queue.get(message).history
    assert [attempt.error for attempt in history] == [f"error {n}" for n in range(3, 13)]
    assert [attempt.holder for attempt in history] == [f"worker {n}" for n in range(3, 13)]
    assert {attempt.outcome for attempt in history} == {"retried"}


def test_a_lowered_bound_fails_what_a_receive_meets_beyond_it(new_queue):
    queue = new_queue(retry=AT_ONCE)
    worn_out = queue.enqueue(b"a")
    for _ in range(2):
        retry(queue)
    queue.enqueue(b"b")
    queue.ask(Configure(Settings(max_attempts=2)))

    assert queue.received() == "b"
    assert (queue.state_of(worn_out), queue.get(worn_out).reason) == ("failed", "attempts")


def test_the_stats_count_retries_and_lapses(new_queue):
    queue = new_queue(lease_ms=100, retry=AT_ONCE)
    queue.enqueue()
    retry(queue)
    queue.take()
    queue.clock.advance(100)
    queue.receive()

    stats = queue.ask(Count())
    assert (stats.receives, stats.retries, stats.lapses) == (3, 1, 1)


@pytest.mark.parametrize(
    "wrong",
    [
        {"delay_ms": -1},
        {"delay_ms": 1 << 60},
        {"error": "x" * 4_097},
        {"delay_ms": "soon"},
    ],
)
def test_a_malformed_retry_is_refused_and_the_lease_goes_on(new_queue, wrong):
    queue = new_queue()
    message = queue.enqueue()
    delivery = queue.take()

    assert queue.refusal(Retry(message, delivery.token, **wrong)) == "invalid_input"
    assert queue.state_of(message) == "leased"


def test_an_error_text_that_is_too_long_is_refused_at_fail_too(new_queue):
    queue = new_queue()
    message = queue.enqueue()
    queue.take()

    assert queue.refusal(Fail(message, error="x" * 4_097)) == "invalid_input"
    assert queue.state_of(message) == "leased"


@pytest.mark.parametrize(
    "wrong", [{"base_ms": -1}, {"factor": 0}, {"factor": 101}, {"cap_ms": -1}, {"jitter_percent": 101}]
)
def test_a_policy_out_of_bounds_cannot_be_made(wrong):
    with pytest.raises(InvalidInput):
        RetryPolicy(**wrong)
