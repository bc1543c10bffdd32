"""Pause, settings and claims: what operators and nodes tell a queue, and what stays as it was."""

import pytest

from hq.domain.commands import (
    Claim,
    Complete,
    Configure,
    Count,
    Dates,
    Fail,
    Pause,
    PauseGroup,
    Resume,
    Retry,
)
from hq.domain.replies import Done, Used
from hq.domain.settings import Backoff, DedupScope, Groups, RetryPolicy, Settings


def test_a_paused_queue_accepts_and_hands_nothing_out(new_queue):
    queue = new_queue()
    queue.enqueue(b"a")
    queue.ask(Pause())
    queue.enqueue(b"b")
    assert queue.received() == ""

    queue.ask(Resume())

    assert queue.received() == "ab"


def test_a_pause_and_its_reason_survive_a_crash(new_queue):
    queue = new_queue()
    queue.enqueue()
    queue.ask(Pause("deploy"))

    queue.crash()

    assert (queue.receive(), queue.ask(Count()).paused) == ([], "deploy")


def test_a_lease_of_a_paused_queue_can_be_settled(new_queue):
    queue = new_queue()
    queue.enqueue()
    delivery = queue.take()
    queue.ask(Pause())

    assert queue.ask(Complete(delivery.message, delivery.token)).state == "completed"


def test_leases_of_a_paused_queue_end_as_ever(new_queue):
    queue = new_queue(lease_ms=100, max_attempts=1)
    message = queue.enqueue()
    queue.take()
    queue.ask(Pause())
    queue.clock.advance(100)

    assert queue.state_of(message) == "failed"


def test_a_second_pause_changes_the_reason(new_queue):
    queue = new_queue()
    queue.ask(Pause("first"))
    queue.ask(Pause("second"))

    assert queue.ask(Count()).paused == "second"


def test_resuming_a_queue_that_is_not_paused_does_nothing(new_queue):
    assert new_queue().ask(Resume()) == Done()


@pytest.mark.parametrize("command", [Pause("x" * 4_097), PauseGroup("x" * 129), PauseGroup("A", "x" * 4_097)])
def test_a_reason_or_group_that_is_too_long_is_refused(new_queue, command):
    queue = new_queue()
    queue.enqueue(group="A")

    assert queue.refusal(command) == "invalid_input"
    assert len(queue.receive()) == 1


def test_new_settings_hold_for_what_comes_and_leave_running_leases_alone(new_queue):
    queue = new_queue(lease_ms=100)
    queue.enqueue()
    queue.enqueue()
    before = queue.take()
    queue.ask(Configure(Settings(lease_ms=200)))
    after = queue.take()

    assert (before.lease_expires_at, after.lease_expires_at) == (queue.clock.now + 100, queue.clock.now + 200)
    assert queue.get(before.message).lease_expires_at == before.lease_expires_at


def test_a_new_time_to_live_and_delay_hold_for_new_messages_only(new_queue):
    queue = new_queue()
    old = queue.enqueue()
    queue.ask(Configure(Settings(ttl_ms=100, delay_ms=50)))
    new = queue.enqueue()
    assert (queue.state_of(old), queue.state_of(new)) == ("ready", "delayed")

    queue.clock.advance(100)

    assert (queue.state_of(old), queue.state_of(new)) == ("ready", "message_not_found")


def test_a_new_retry_policy_holds_for_messages_that_are_already_there(new_queue):
    queue = new_queue()
    message = queue.enqueue()
    queue.take()
    queue.ask(Configure(Settings(retry=RetryPolicy(Backoff.FIXED, base_ms=7, jitter_percent=0))))

    assert queue.ask(Retry(message)).until == queue.clock.now + 7


def test_a_dead_letter_queue_that_is_named_later_takes_what_fails_from_then_on(new_queue):
    queue = new_queue()
    kept, moved = queue.enqueue(), queue.enqueue()
    queue.receive()
    queue.ask(Fail(kept))
    queue.ask(Configure(Settings(dead_letter_queue="dead")))
    queue.ask(Fail(moved))

    assert (queue.state_of(kept), queue.state_of(moved)) == ("failed", "moving")


def test_settings_survive_a_crash(new_queue):
    queue = new_queue()
    queue.ask(Configure(Settings(lease_ms=100)))

    queue.crash()
    queue.enqueue()

    assert queue.take().lease_expires_at == queue.clock.now + 100


@pytest.mark.parametrize("before", Groups)
@pytest.mark.parametrize("after", Groups)
def test_whether_a_queue_is_fifo_is_fixed_when_it_is_created(new_queue, before, after):
    queue = new_queue(groups=before)

    fixed = (before is Groups.FIFO) is not (after is Groups.FIFO)

    assert queue.refusal(Configure(Settings(groups=after))) == ("setting_fixed" if fixed else None)


def test_the_dedup_scope_is_fixed_when_a_queue_is_created(new_queue):
    queue = new_queue()

    assert queue.refusal(Configure(Settings(dedup_scope=DedupScope.GROUP))) == "setting_fixed"


def test_a_refused_setting_takes_the_others_with_it(new_queue):
    queue = new_queue(lease_ms=100)
    queue.refusal(Configure(Settings(groups=Groups.FIFO, lease_ms=7)))
    queue.enqueue()

    assert queue.take().lease_expires_at == queue.clock.now + 100


def test_a_claim_needs_a_newer_epoch(new_queue):
    queue = new_queue()
    queue.ask(Claim(1_000))

    assert queue.refusal(Claim(1_000)) == "invalid_input"
    assert queue.refusal(Claim(999)) == "invalid_input"
    assert queue.ask(Claim(1_001)) == Done()


def test_a_claim_changes_nothing_of_the_messages(new_queue):
    queue = new_queue()
    queue.enqueue(b"a")
    delivery = queue.take()
    queue.ask(Claim(1_000))

    assert queue.ask(Complete(delivery.message, delivery.token)).state == "completed"


def test_a_queue_knows_since_when_it_is_used_and_when_it_was_changed(new_queue):
    queue = new_queue()
    queue.ask(Claim(1))
    used_at = queue.clock.now
    assert queue.ask(Dates()) == Used(used_at, used_at)

    queue.clock.advance(5)
    queue.enqueue()
    assert queue.ask(Dates()) == Used(used_at, used_at)
    queue.clock.advance(5)
    queue.ask(Configure(Settings(lease_ms=1)))
    assert queue.ask(Dates()) == Used(used_at, used_at + 10)

    for remembered in (queue.crash, queue.checkpoint, queue.crash):
        queue.clock.advance(5)
        remembered()
        assert queue.ask(Dates()) == Used(used_at, used_at + 10)


def test_a_queue_that_nobody_has_claimed_is_used_now(new_queue):
    queue = new_queue()
    assert queue.ask(Dates()) == Used(queue.clock.now, queue.clock.now)
