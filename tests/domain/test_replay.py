"""Memory equals storage: whatever was cut of a checkpoint, loading and replaying give the same queue."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import astuple, replace
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hq.domain import commands as c
from hq.domain.apply import apply
from hq.domain.checkpoint import snapshot
from hq.domain.lookups import KeyOf, RowOf
from hq.domain.messages import FAILED, LEASED, MOVING, WAITING, Message, Options
from hq.domain.schedules import Schedule
from hq.domain.settings import Settings
from hq.domain.state import QueueState
from hq.domain.tasks import Scope, TaskKind
from hq.testing import MemoryQueue
from hq.testing.queue import at_once
from tests.domain.test_model import queues, steps, stories, tell
from tests.domain.twin import Twin

KEYS = [(scope, key) for scope in ("", "a", "b") for key in ("k", "l")]
KEPT = (WAITING, LEASED, FAILED, MOVING)


def whole(queue: MemoryQueue) -> dict[str, Any]:
    """All a queue is, wherever it is kept: rows under what memory knows better, keys, small state."""
    state = queue.state
    sequences = range(1, state.sequence + 1)
    rows = dict(zip(sequences, fetched(queue, [RowOf(sequence) for sequence in sequences]), strict=True))
    messages: dict[int, Message] = {}
    for sequence in sequences:
        row = rows[sequence]
        held = state.messages.get(sequence) or state.delta.get(sequence) or state.cutting.get(sequence) or row
        if held is not None and held.state in KEPT and not state.is_purged(held):
            message = held.row()
            message.payload = held.payload if held.payload is not None or row is None else row.payload
            messages[sequence] = message
    small = snapshot(state)
    return {
        "messages": {sequence: described(message) for sequence, message in messages.items()},
        "keys": dict(zip(KEYS, [holder(state, entry) for entry in entries(queue)], strict=True)),
        "small": astuple(replace(small, schedules={})),
        "schedules": {name: astuple(planned) for name, planned in small.schedules.items()},
    }


def described(message: Message) -> dict[str, Any]:
    return {name: getattr(message, name) for name in Message.__slots__ if name not in BOOKKEEPING}


BOOKKEEPING = {"stored", "fresh", "stored_at", "offered", "placed", "lane"}


def fetched(queue: MemoryQueue, lookups: list[Any]) -> list[Any]:
    return at_once(queue.backend.fetch(queue.number, lookups))


def entries(queue: MemoryQueue) -> list[Any]:
    stored = fetched(queue, [KeyOf(key) for key in KEYS])
    queue.state.aside_keys.update(zip(KEYS, stored, strict=True))
    found = [queue.state.entry(key) for key in KEYS]
    queue.state.aside_keys.clear()
    return found


def holder(state: QueueState, entry: Any) -> Any:
    """Who holds a key, if anyone still does."""
    if entry is None or not (entry.live or entry.until > state.time):
        return None
    return entry.message, entry.until, entry.live


def reloaded(queue: MemoryQueue) -> MemoryQueue:
    other = deepcopy(queue)
    other.reload()
    other.state.check()
    return other


def folded(queue: MemoryQueue, settings: Settings) -> MemoryQueue:
    """The queue as its events alone tell it, from the first."""
    other = MemoryQueue(settings, head=queue.state.head)
    for event in at_once(queue.backend.tail(queue.number, 0, 1_000_000)):
        apply(other.state, event)
    return other


operations = st.one_of(
    st.builds(
        c.SetSchedule, st.builds(Schedule, st.sampled_from(["s", "t"]), st.just("")), st.integers(0, 50)
    ),
    st.builds(c.Tick, st.sampled_from(["s", "t"]), st.tuples(st.integers(0, 50)), st.integers(51, 60)),
    st.builds(c.StartTask, st.just(TaskKind.REQUEUE), st.just(Scope.FAILED)),
    st.builds(c.StartTask, st.just(TaskKind.MOVE), st.sampled_from(Scope), st.just("elsewhere")),
    st.builds(c.StartTask, st.just(TaskKind.DELETE), st.sampled_from(Scope), group=st.just("a")),
    st.builds(c.AdvanceTask, st.integers(1, 3)),
    st.builds(c.SettleMove, st.integers(1, 4)),
    st.builds(c.ReturnMove, st.integers(1, 4)),
    st.builds(
        c.TakeMove,
        st.integers(7, 8),
        st.integers(1, 3),
        st.just(b"m"),
        st.just(Options(dedup_key="k")),
        st.just("o"),
    ),
)
letters = st.one_of(st.none(), st.just("elsewhere"))


def do(queue: MemoryQueue, step: Any) -> None:
    """One step of a story, asked of the real queue alone; messages are named by any sequence."""
    match step:
        case ("advance", ms):
            queue.clock.advance(ms)
            queue.reply(c.Wake())
        case ("configure", _):
            pass
        case ("checkpoint_step" | "checkpoint" as verb, chunk):
            getattr(queue, verb)(chunk)
        case ("shed" | "crash" as verb, _):
            getattr(queue, verb)()
        case command:
            named = replace(command, token=None) if getattr(command, "token", None) is not None else command
            queue.reply(named)


@given(queues, stories, stories)
@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_a_loaded_queue_is_the_one_that_was_lost(queue, story, rest):
    twin = Twin(queue)
    tell(twin, story)

    lost = whole(twin.queue)
    assert whole(reloaded(twin.queue)) == lost

    twin.queue.reload()
    tell(twin, rest)


@pytest.mark.slow
@given(queues, letters, st.lists(st.one_of(steps, steps, operations), max_size=50))
@settings(max_examples=1_000, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_at_every_step_of_any_story_memory_equals_storage(queue, target, story):
    real = MemoryQueue(replace(queue, dead_letter_queue=target), head=2)
    for step in story:
        do(real, step)
        assert whole(reloaded(real)) == whole(real), step


@given(queues, letters, st.lists(st.one_of(steps, operations), max_size=40))
@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_the_events_alone_tell_the_whole_queue(queue, target, story):
    settings = replace(queue, dead_letter_queue=target)
    real = MemoryQueue(settings, head=2)
    for step in story:
        do(real, step)

    assert whole(folded(real, settings)) == whole(real)


def test_a_key_freed_while_a_checkpoint_is_cut_is_free_after_a_crash():
    queue = MemoryQueue()
    queue.ask(c.Enqueue(b"other"))
    queue.ask(c.Enqueue(b"first", Options(dedup_key="k")))
    queue.checkpoint()
    deliveries = queue.ask(c.Receive(2))
    queue.checkpoint_step(1)
    for delivery in deliveries:
        queue.ask(c.Complete(delivery.message, delivery.token))
    queue.checkpoint()

    queue.crash()

    assert not queue.ask(c.Enqueue(b"second", Options(dedup_key="k"))).duplicate


def test_what_is_cut_and_not_yet_written_can_be_received_again():
    queue = MemoryQueue()
    queue.ask(c.Enqueue(b"once"))
    queue.checkpoint_step()
    [delivery] = queue.ask(c.Receive())
    queue.ask(c.Retry(delivery.message, delivery.token, delay_ms=0))

    [again] = queue.ask(c.Receive())

    assert again.payload == b"once"
