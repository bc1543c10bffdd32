"""Looking: peek, get, browse, stats and explain show what is there and touch nothing."""

import pytest

from hq.domain.commands import (
    Browse,
    Complete,
    Configure,
    Count,
    Delete,
    Enqueue,
    Explain,
    Fail,
    Pause,
    PauseGroup,
    Peek,
    Purge,
    Receive,
    Requeue,
    Retry,
    SettleMove,
    Wake,
)
from hq.domain.messages import Options
from hq.domain.replies import Blocker
from hq.domain.settings import Groups, Rate, Settings
from hq.domain.tasks import Scope


def peeked(queue, limit=100):
    return b"".join(seen.message.payload for seen in queue.ask(Peek(limit))).decode()


def browsed(queue, scope=Scope.LIVE, after=0, limit=100):
    return [seen.message.sequence for seen in queue.ask(Browse(scope, after, limit))]


def blockers(queue, message):
    return list(queue.ask(Explain(message)).blockers)


# Peek and get.


def test_peek_shows_what_comes_next_in_order_and_takes_nothing(new_queue):
    queue = new_queue()
    for payload, priority in ((b"a", None), (b"b", 1), (b"c", None)):
        queue.enqueue(payload, priority=priority)
    queue.enqueue(b"d", delay_ms=10)

    assert [peeked(queue), peeked(queue, 2), peeked(queue)] == ["bac", "ba", "bac"]
    assert queue.received() == "bac"


def test_peek_shows_what_is_next_though_the_queue_is_paused_or_has_no_slot_left(new_queue):
    queue = new_queue(concurrency=1)
    queue.enqueue(b"a")
    queue.enqueue(b"b")
    queue.take()
    queue.ask(Pause("deploy"))

    assert peeked(queue) == "b"


def test_peek_costs_no_attempt_and_no_lease(new_queue):
    queue = new_queue()
    message = queue.enqueue()
    queue.ask(Peek())

    assert (queue.get(message).receives, queue.state_of(message)) == (0, "ready")


def test_peek_does_not_show_what_is_expired(new_queue):
    queue = new_queue()
    queue.enqueue(b"a", ttl_ms=10)
    queue.enqueue(b"b")
    queue.clock.advance(10)

    assert peeked(queue) == "b"


@pytest.mark.parametrize("limit", [0, 1_001])
def test_a_look_at_too_few_or_too_many_is_refused(new_queue, limit):
    queue = new_queue()

    assert queue.refusal(Peek(limit)) == "invalid_input"
    assert queue.refusal(Browse(Scope.LIVE, limit=limit)) == "invalid_input"


def test_get_shows_a_message_whole_whatever_its_state(new_queue):
    queue = new_queue()
    message = queue.enqueue(b"work", headers=(("a", "b"),))
    seen = [(queue.state_of(message), queue.get(message).payload)]
    delivery = queue.take(holder="worker")
    seen.append((queue.state_of(message), queue.get(message).payload))
    queue.ask(Fail(message, delivery.token))
    seen.append((queue.state_of(message), queue.get(message).payload))

    assert seen == [("ready", b"work"), ("leased", b"work"), ("failed", b"work")]
    assert queue.get(message).options.headers == (("a", "b"),)


def test_what_is_shown_is_a_copy(new_queue):
    queue = new_queue()
    message = queue.enqueue(b"work")
    queue.get(message).payload = b"changed"

    assert queue.received() == "work"


# Browse.


def test_browse_pages_through_what_lives_in_order_of_sequence(new_queue):
    queue = new_queue()
    messages = [queue.enqueue(priority=n % 3, delay_ms=n % 2) for n in range(10)]
    queue.receive(2)

    pages, after = [], 0
    while page := browsed(queue, after=after, limit=4):
        pages.append(page)
        after = page[-1]

    assert pages == [messages[:4], messages[4:8], messages[8:]]


def test_browse_shows_stored_and_new_messages_as_they_are_now(new_queue):
    queue = new_queue()
    stored = [queue.enqueue() for _ in range(5)]
    queue.checkpoint()
    queue.shed()
    queue.ask(Delete(stored[1]))
    queue.ask(Complete(queue.take().message))
    leased = queue.take().message
    new = queue.enqueue()

    seen = [(seen.message.sequence, seen.state) for seen in queue.ask(Browse(Scope.LIVE))]

    assert seen == [(leased, "leased"), (stored[3], "ready"), (stored[4], "ready"), (new, "ready")]


def test_browse_of_one_scope_does_not_show_the_other(new_queue):
    queue = new_queue()
    failed, ready = queue.enqueue(b"a"), queue.enqueue(b"b")
    queue.ask(Fail(queue.take().message))

    assert (browsed(queue, Scope.FAILED), browsed(queue, Scope.LIVE)) == ([failed], [ready])


def test_browse_does_not_show_what_time_has_taken(new_queue):
    queue = new_queue(failed_ms=10)
    queue.enqueue(b"f")
    queue.ask(Fail(queue.take().message))
    queue.enqueue(ttl_ms=10)
    kept = queue.enqueue()
    queue.clock.advance(10)

    assert (browsed(queue, Scope.FAILED), browsed(queue, Scope.LIVE)) == ([], [kept])


def test_browse_gives_a_full_page_past_many_that_are_gone(new_queue):
    queue = new_queue()
    messages = [queue.enqueue() for _ in range(8)]
    queue.checkpoint()
    for message in messages[:6]:
        queue.ask(Delete(message))

    assert browsed(queue, limit=2) == messages[6:]


# Stats.


def test_stats_lose_no_message_whatever_happens_to_it(new_queue):
    queue = new_queue(failed_ms=10_000)
    for n in range(12):
        queue.enqueue(ttl_ms=50 if n == 11 else None, delay_ms=100 if n >= 10 else 0)
    leases = queue.receive(8)
    queue.ask(Complete(leases[0].message))
    queue.ask(Delete(leases[1].message))
    queue.ask(Retry(leases[2].message, delay_ms=1_000))
    queue.ask(Fail(leases[3].message))
    queue.ask(Fail(leases[4].message))
    queue.ask(Requeue(leases[4].message))
    queue.ask(Configure(Settings(dead_letter_queue="dead")))
    queue.ask(Fail(leases[5].message))
    queue.ask(Fail(leases[6].message))
    queue.ask(SettleMove(1))
    queue.clock.advance(50)
    queue.ask(Wake())

    assert queue.stats() == {
        "ready": 3, "delayed": 2, "leased": 1, "failed": 1, "moving": 1, "enqueued": 12, "completed": 1,
        "deleted": 1, "moved": 1, "expired": 1,
    }  # fmt: skip
    queue.ask(Purge())
    assert queue.stats() == {
        "failed": 1, "moving": 1, "enqueued": 12, "completed": 1, "deleted": 1, "moved": 1, "expired": 1,
        "purged": 6,
    }  # fmt: skip


def test_a_delayed_message_is_counted_as_ready_from_the_instant_it_is(new_queue):
    queue = new_queue()
    queue.enqueue(delay_ms=10)
    queue.clock.advance(9)
    assert queue.stats() == {"delayed": 1, "enqueued": 1}

    queue.clock.advance(1)

    assert queue.stats() == {"ready": 1, "enqueued": 1}


def test_stats_tell_why_the_queue_is_paused(new_queue):
    queue = new_queue()
    assert queue.ask(Count()).paused is None

    queue.ask(Pause("deploy"))

    assert queue.ask(Count()).paused == "deploy"


# Explain.


def test_a_message_that_can_be_received_is_kept_back_by_nothing(new_queue):
    queue = new_queue(concurrency=1, concurrency_per_key=1, receive_rate=Rate(1))

    assert blockers(queue, queue.enqueue(concurrency_key="k")) == []


def test_explain_delayed(new_queue):
    queue = new_queue()
    message = queue.enqueue(delay_ms=10)

    assert blockers(queue, message) == [Blocker("delayed", queue.clock.now + 10, message)]


def test_explain_leased(new_queue):
    queue = new_queue(lease_ms=100)
    message = queue.enqueue()
    queue.take(holder="worker")

    assert blockers(queue, message) == [Blocker("leased", queue.clock.now + 100, message, "worker")]


def test_explain_failed(new_queue):
    queue = new_queue()
    message = queue.enqueue()
    queue.take()
    queue.ask(Fail(message))

    assert blockers(queue, message) == [Blocker("failed", reason="failed")]


def test_explain_moving(new_queue):
    queue = new_queue(dead_letter_queue="dead")
    message = queue.enqueue()
    queue.take()
    queue.ask(Fail(message))

    assert blockers(queue, message) == [Blocker("moving", reason="dead")]


def test_explain_queue_paused(new_queue):
    queue = new_queue()
    message = queue.enqueue()
    queue.ask(Pause("deploy"))

    assert blockers(queue, message) == [Blocker("queue_paused", reason="deploy")]


def test_explain_concurrency(new_queue):
    queue = new_queue(concurrency=2)
    queue.enqueue(lease_ms=200)
    queue.enqueue(lease_ms=100)
    message = queue.enqueue()
    queue.receive()

    assert blockers(queue, message) == [Blocker("concurrency", queue.clock.now + 100)]


def test_explain_receive_rate(new_queue):
    queue = new_queue(receive_rate=Rate(1, per_ms=100))
    queue.enqueue()
    message = queue.enqueue()
    queue.take()
    queue.clock.advance(30)

    assert blockers(queue, message) == [Blocker("receive_rate", queue.clock.now + 70)]


def test_explain_group_paused(new_queue):
    queue = new_queue()
    message = queue.enqueue(group="A")
    queue.ask(PauseGroup("A", "broken"))

    assert blockers(queue, message) == [Blocker("group_paused", reason="broken")]


def test_explain_group_leased(new_queue):
    queue = new_queue(lease_ms=100)
    first, message = queue.enqueue(group="A"), queue.enqueue(group="A")
    queue.take(holder="worker")

    assert blockers(queue, message) == [Blocker("group_leased", queue.clock.now + 100, first, "worker")]


@pytest.mark.parametrize("groups", [Groups.ORDERED, Groups.FIFO])
def test_explain_group_order(new_queue, groups):
    queue = new_queue(groups=groups)
    first, message = queue.enqueue(group="A"), queue.enqueue(group="A")
    queue.take()
    queue.ask(Retry(first, delay_ms=10))

    assert blockers(queue, message) == [Blocker("group_order", queue.clock.now + 10, first)]
    assert blockers(queue, first) == [Blocker("delayed", queue.clock.now + 10, first)]


def test_explain_group_order_in_a_long_group(new_queue):
    queue = new_queue(groups=Groups.FIFO)
    messages = [queue.enqueue(group="A") for _ in range(7)]

    assert blockers(queue, messages[-1]) == [Blocker("group_order", queue.clock.now, messages[0])]


def test_explain_concurrency_key(new_queue):
    queue = new_queue(concurrency_per_key=1, lease_ms=100)
    first = queue.enqueue(concurrency_key="k", priority=1)
    message = queue.enqueue(concurrency_key="k")
    queue.take(holder="worker")

    assert blockers(queue, message) == [Blocker("concurrency_key", queue.clock.now + 100, first, "worker")]


def test_explain_names_everything_that_keeps_a_message_back(new_queue):
    queue = new_queue(concurrency=1)
    queue.enqueue(group="A")
    message = queue.enqueue(group="A", delay_ms=10)
    queue.take()
    queue.ask(Pause())
    queue.ask(PauseGroup("A"))

    codes = {blocker.code for blocker in blockers(queue, message)}

    assert codes == {"delayed", "queue_paused", "concurrency", "group_paused", "group_leased"}


def test_explain_fails_a_message_that_has_no_attempts_left(new_queue):
    queue = new_queue()
    message = queue.enqueue()
    queue.take()
    queue.ask(Retry(message, delay_ms=0))
    queue.ask(Configure(Settings(max_attempts=1)))

    assert blockers(queue, message) == [Blocker("failed", reason="attempts")]


BLOCKED = {
    "delayed": ({}, [Enqueue(b"", Options(delay_ms=10))]),
    "leased": ({"lease_ms": 10}, [Enqueue(b""), Receive()]),
    "concurrency": ({"lease_ms": 10, "concurrency": 1}, [Enqueue(b""), Receive(), Enqueue(b"")]),
    "receive_rate": ({"receive_rate": Rate(1, 10)}, [Enqueue(b""), Receive(), Enqueue(b"")]),
    "group_leased": (
        {"lease_ms": 10, "max_attempts": 1},
        [Enqueue(b"", Options(group="A")), Receive(), Enqueue(b"", Options(group="A"))],
    ),
    "concurrency_key": (
        {"lease_ms": 10, "concurrency_per_key": 1, "max_attempts": 1},
        [Enqueue(b"", Options(concurrency_key="k")), Receive(), Enqueue(b"", Options(concurrency_key="k"))],
    ),
}


@pytest.mark.parametrize("code", BLOCKED)
def test_when_the_instant_explain_names_has_come_the_message_is_received(new_queue, code):
    settings, story = BLOCKED[code]
    queue = new_queue(**settings)
    for command in story:
        queue.ask(command)
    message = browsed(queue)[-1]
    [blocker] = blockers(queue, message)
    assert (blocker.code, message in [delivery.message for delivery in queue.receive()]) == (code, False)

    queue.clock.now = blocker.until

    assert blockers(queue, message) == []
