"""The checkers on histories of the real rules: silent while the rules hold, and not when one is broken."""

from dataclasses import replace

import pytest

from hq.domain.counters import Counters
from hq.domain.events import Deleted, Enqueued, EnqueueRateSpent, Received, Released
from hq.domain.replies import Delivery
from hq.domain.settings import Backoff, DedupScope, Groups, RetryPolicy, Settings
from tests.checkers.invariants import check_all
from tests.checkers.rehearsal import Rehearsal

RETRY = RetryPolicy(Backoff.NONE)
QUEUES = {
    "plain": Settings(retry=RETRY, dedup_ms=30),
    "narrow": Settings(retry=RETRY, concurrency=2, capacity=4, max_attempts=3),
    "fifo": Settings(retry=RETRY, groups=Groups.FIFO, dedup_ms=100, dedup_scope=DedupScope.GROUP),
    "label": Settings(retry=RETRY, groups=Groups.LABEL, max_attempts=None, ttl_ms=100),
}


@pytest.mark.parametrize("lost", [0.0, 0.1, 0.5])
@pytest.mark.parametrize("queue", QUEUES)
@pytest.mark.parametrize("seed", range(4))
def test_the_real_rules_break_no_promise(queue, lost, seed):
    history, final = Rehearsal(seed, QUEUES[queue], lost=lost).run(400)

    assert check_all(history, final) == []


def forgotten(sequence, at, *_):
    """An event that says nothing, in place of one that matters."""
    return EnqueueRateSpent(sequence, at, 0)


def shortened(*values):
    """A lease the queue forgets at once, whatever it told its holder."""
    return replace(Received(*values), lease_expires_at=values[1])


def undelayed(*values):
    return replace(Enqueued(*values), available_at=values[1])


def unending(*values):
    return replace(Enqueued(*values), expires_at=None)


def costly(sequence, at, message, attempts):
    return Released(sequence, at, message, attempts + 1)


def uncounted(counters, event, fold=Counters.fold):
    if type(event) is not Deleted:
        fold(counters, event)


BUGS = {
    "an enqueue is not written": ("verbs.enqueue.Enqueued", forgotten, "I-1"),
    "a payload is mixed up": (
        "verbs.receive.Delivery",
        lambda *told: Delivery(*told[:2], b"", *told[3:]),
        "I-2",
    ),
    "a lease is forgotten at once": ("verbs.receive.Received", shortened, "I-3"),
    "any token will do": ("verbs.settle.is_token", lambda *_: True, "I-4"),
    "a complete is not written": ("verbs.settle.Completed", forgotten, "I-5"),
    "a release costs an attempt": ("verbs.settle.Released", costly, "I-6"),
    "a group is always open": ("selection.gate_is_open", lambda *_: True, "I-7"),
    "no priority is the highest": ("verbs.enqueue.NO_PRIORITY", 1 << 15, "I-8"),
    "a key is held by nobody": ("verbs.enqueue.key_holder", lambda *_: None, "I-9"),
    "a delay is ignored": ("verbs.enqueue.Enqueued", undelayed, "I-10"),
    "an end of life is ignored": ("verbs.enqueue.Enqueued", unending, "I-11"),
    "a queue is never full": ("counters.Counters.live", lambda _: 0, "I-13"),
    "a delete is not counted": ("counters.Counters.fold", uncounted, "I-14"),
}


@pytest.mark.parametrize("bug", BUGS)
def test_a_broken_rule_is_noticed(bug, monkeypatch):
    place, instead, invariant = BUGS[bug]
    monkeypatch.setattr(f"hq.domain.{place}", instead)

    runs = [Rehearsal(1, settings, lost=lost).run(400) for settings in QUEUES.values() for lost in (0.0, 0.1)]
    assert invariant in {violation.invariant for run in runs for violation in check_all(*run)}
