"""Tasks: requeue, move or delete many messages, in steps that go on after a crash."""

import pytest

from hq.domain.commands import (
    AdvanceTask,
    CancelTask,
    Fail,
    ListTasks,
    NextMove,
    Purge,
    Requeue,
    Retry,
    ReturnMove,
    SettleMove,
    StartTask,
    TakeMove,
)
from hq.domain.replies import Done
from hq.domain.settings import Rate
from hq.domain.tasks import MAX_TASKS, STEP, Scope, TaskKind
from hq.domain.timing import wake_at
from hq.errors import TaskNotFound

REQUEUE_ALL = StartTask(TaskKind.REQUEUE, Scope.FAILED)
DELETE_WAITING = StartTask(TaskKind.DELETE, Scope.LIVE)
DELETE_FAILED = StartTask(TaskKind.DELETE, Scope.FAILED)


def fail(queue, payloads, **options):
    """Enqueue these, one letter each, and fail them."""
    for payload in payloads:
        queue.enqueue(payload.encode(), **options)
        queue.ask(Fail(queue.take().message))


def run(queue, command):
    """Start a task and do all its steps; how many messages it took."""
    number, taken = queue.ask(command).number, 0
    try:
        while True:
            taken += queue.ask(AdvanceTask(number)).count
    except TaskNotFound:
        return taken


def test_a_requeue_brings_every_dead_letter_back(new_queue):
    queue = new_queue()
    fail(queue, "abc")

    assert run(queue, REQUEUE_ALL) == 3
    assert queue.received() == "abc"


def test_a_requeued_message_starts_a_new_round(new_queue):
    queue = new_queue()
    fail(queue, "a")
    run(queue, REQUEUE_ALL)

    delivery = queue.take()

    assert (delivery.receives, delivery.attempts, len(delivery.history)) == (2, 1, 1)


def test_a_task_that_finds_nothing_ends(new_queue):
    queue = new_queue()

    assert run(queue, REQUEUE_ALL) == 0


def test_a_task_takes_only_the_group_it_names(new_queue):
    queue = new_queue()
    for group in ("A", "B", None):
        fail(queue, group or "-", group=group)

    run(queue, StartTask(TaskKind.REQUEUE, Scope.FAILED, group="B"))

    assert queue.received() == "B"


def test_a_task_takes_only_what_failed_for_the_reason_it_names(new_queue):
    queue = new_queue()
    fail(queue, "a")
    message = queue.enqueue(b"b", max_attempts=1)
    queue.take()
    queue.ask(Retry(message))

    run(queue, StartTask(TaskKind.REQUEUE, Scope.FAILED, reason="attempts"))

    assert queue.received() == "b"


def test_a_delete_of_dead_letters_leaves_what_lives(new_queue):
    queue = new_queue()
    fail(queue, "ab")
    queue.enqueue(b"c")

    assert run(queue, DELETE_FAILED) == 2
    assert queue.stats() == {"ready": 1, "deleted": 2, "enqueued": 3}


def test_a_delete_of_what_waits_leaves_leases_and_dead_letters(new_queue):
    queue = new_queue()
    fail(queue, "a")
    queue.enqueue(b"b")
    queue.take()
    queue.enqueue(b"c")
    queue.enqueue(b"d", delay_ms=100)

    assert run(queue, DELETE_WAITING) == 2
    assert queue.stats() == {"leased": 1, "failed": 1, "deleted": 2, "enqueued": 4}


def test_messages_enqueued_after_a_task_began_are_left_alone(new_queue):
    queue = new_queue()
    queue.enqueue(b"a")
    number = queue.ask(DELETE_WAITING).number
    queue.enqueue(b"b")

    queue.ask(AdvanceTask(number))

    assert queue.received() == "b"


def test_a_message_that_fails_again_is_not_requeued_by_the_same_task(new_queue):
    queue = new_queue()
    fail(queue, "ab")
    slow = StartTask(TaskKind.REQUEUE, Scope.FAILED, rate=Rate(1, per_ms=10, burst=1))
    number = queue.ask(slow).number
    queue.ask(AdvanceTask(number))
    queue.ask(Fail(queue.take().message))
    queue.clock.advance(10)

    queue.ask(AdvanceTask(number))

    assert queue.received() == "b"


def test_a_task_goes_at_its_rate(new_queue):
    queue = new_queue()
    fail(queue, "abcde")
    number = queue.ask(StartTask(TaskKind.REQUEUE, Scope.FAILED, rate=Rate(2, per_ms=100, burst=2))).number

    taken = []
    for _ in range(5):
        taken.append(queue.ask(AdvanceTask(number)).count)
        queue.clock.advance(50)

    assert taken == [2, 0, 2, 0, 1]


def test_a_task_that_waits_for_its_rate_wakes_the_queue_then(new_queue):
    queue = new_queue(failed_ms=10_000)
    fail(queue, "abc")
    number = queue.ask(StartTask(TaskKind.REQUEUE, Scope.FAILED, rate=Rate(1, per_ms=100))).number
    queue.ask(AdvanceTask(number))

    assert wake_at(queue.state) <= queue.clock.now + 100


def test_a_cancelled_task_stops_where_it_is_and_says_how_far_it_came(new_queue):
    queue = new_queue()
    fail(queue, "abc")
    number = queue.ask(StartTask(TaskKind.REQUEUE, Scope.FAILED, rate=Rate(1, burst=2))).number
    queue.ask(AdvanceTask(number))

    assert queue.ask(CancelTask(number)) == Done(2)
    assert queue.refusal(AdvanceTask(number)) == "task_not_found"
    assert queue.stats() == {"ready": 2, "failed": 1, "enqueued": 3}


def test_a_task_goes_on_after_a_crash_from_where_it_was(new_queue):
    queue = new_queue()
    fail(queue, "abcd")
    number = queue.ask(StartTask(TaskKind.REQUEUE, Scope.FAILED, rate=Rate(1_000, burst=2))).number
    queue.ask(AdvanceTask(number))

    queue.crash()
    queue.clock.advance(1_000)

    assert queue.ask(AdvanceTask(number)).count == 2
    assert queue.received() == "abcd"


def test_more_messages_than_a_step_takes_are_all_taken(new_queue):
    queue = new_queue()
    count = STEP + 7
    for _ in range(count):
        queue.enqueue()

    assert run(queue, DELETE_WAITING) == count
    assert queue.stats() == {"deleted": count, "enqueued": count}


def test_two_tasks_run_side_by_side_under_different_numbers(new_queue):
    queue = new_queue()
    fail(queue, "A", group="A")
    fail(queue, "B", group="B")
    first, second = (
        queue.ask(StartTask(TaskKind.REQUEUE, Scope.FAILED, group=group)).number for group in "AB"
    )
    queue.ask(AdvanceTask(second))
    assert queue.received() == "B"

    queue.ask(AdvanceTask(first))

    assert queue.received() == "A"


def test_the_tasks_that_run_are_listed_with_how_far_they_came(new_queue):
    queue = new_queue()
    fail(queue, "abc")
    number = queue.ask(StartTask(TaskKind.REQUEUE, Scope.FAILED, rate=Rate(1, burst=2))).number
    other = queue.ask(StartTask(TaskKind.DELETE, Scope.LIVE, group="A")).number
    queue.ask(AdvanceTask(number))

    running, waiting = queue.ask(ListTasks())

    assert (running.number, running.done, running.cursor < running.up_to) == (number, 2, True)
    assert (waiting.number, waiting.done, waiting.group) == (other, 0, "A")


def test_a_task_that_ended_is_listed_no_more(new_queue):
    queue = new_queue()
    run(queue, REQUEUE_ALL)
    queue.ask(CancelTask(queue.ask(DELETE_WAITING).number))

    assert queue.ask(ListTasks()) == []


def test_a_number_is_not_used_again(new_queue):
    queue = new_queue()
    first = queue.ask(REQUEUE_ALL).number
    queue.ask(CancelTask(first))

    assert queue.ask(REQUEUE_ALL).number != first


def test_a_requeue_of_several_with_one_key_gives_the_key_to_the_first(new_queue):
    queue = new_queue()
    fail(queue, "ab", dedup_key="key")

    run(queue, REQUEUE_ALL)

    assert queue.get(queue.enqueue(dedup_key="key")).payload == b"a"
    assert queue.received() == "ab"


def test_a_task_passes_over_what_was_purged_meanwhile(new_queue):
    queue = new_queue()
    fail(queue, "ab")
    number = queue.ask(REQUEUE_ALL).number
    queue.ask(Purge(Scope.FAILED))

    assert queue.ask(AdvanceTask(number)) == Done(0)
    assert queue.stats() == {"purged": 2, "enqueued": 2}


def test_a_task_passes_over_what_was_requeued_meanwhile(new_queue):
    queue = new_queue()
    first = queue.enqueue(b"a")
    queue.ask(Fail(queue.take().message))
    fail(queue, "b")
    number = queue.ask(REQUEUE_ALL).number
    queue.ask(Requeue(first))

    assert queue.ask(AdvanceTask(number)) == Done(1)


@pytest.mark.parametrize("scope", Scope)
def test_a_move_sends_every_message_of_its_scope_to_the_target_in_order(new_queue, scope):
    source = new_queue()
    target = new_queue(backend=source.backend, clock=source.clock)
    if scope is Scope.FAILED:
        fail(source, "abc")
    else:
        for payload in (b"a", b"b", b"c"):
            source.enqueue(payload)

    assert run(source, StartTask(TaskKind.MOVE, scope, target="queue-2")) == 3
    while (carried := source.ask(NextMove())) is not None:
        assert carried.target == "queue-2"
        moving = carried.message
        target.ask(TakeMove(source.number, carried.number, moving.payload, moving.options, "origin"))
        source.ask(SettleMove(carried.number))

    assert (source.stats(), target.received()) == ({"moved": 3, "enqueued": 3}, "abc")


def test_a_moved_message_that_comes_back_is_a_dead_letter(new_queue):
    queue = new_queue()
    message = queue.enqueue(b"a")
    run(queue, StartTask(TaskKind.MOVE, Scope.LIVE, target="nowhere"))

    queue.ask(ReturnMove(queue.ask(NextMove()).number))

    assert (queue.state_of(message), queue.get(message).reason) == ("failed", "moved")


def test_a_message_that_is_to_move_is_not_received(new_queue):
    queue = new_queue()
    queue.enqueue(b"a", group="A")
    number = queue.ask(StartTask(TaskKind.MOVE, Scope.LIVE, target="elsewhere")).number
    queue.enqueue(b"b", group="A")
    queue.ask(AdvanceTask(number))

    assert queue.received() == "b"


@pytest.mark.parametrize(
    "wrong",
    [
        StartTask(TaskKind.REQUEUE, Scope.LIVE),
        StartTask(TaskKind.MOVE, Scope.FAILED),
        StartTask(TaskKind.MOVE, Scope.FAILED, target="bad name"),
        StartTask(TaskKind.DELETE, Scope.LIVE, target="queue-2"),
        StartTask(TaskKind.REQUEUE, Scope.FAILED, target="queue-2"),
        StartTask(TaskKind.REQUEUE, Scope.FAILED, group=5),
        StartTask(TaskKind.REQUEUE, Scope.FAILED, reason="x" * 5_000),
        CancelTask("1"),
    ],
)
def test_a_task_that_makes_no_sense_is_refused(new_queue, wrong):
    assert new_queue().refusal(wrong) == "invalid_input"


@pytest.mark.parametrize("command", [AdvanceTask, CancelTask])
def test_a_task_that_does_not_run_is_not_found(new_queue, command):
    assert new_queue().refusal(command(1)) == "task_not_found"


def test_a_queue_runs_only_so_many_tasks_at_once(new_queue):
    queue = new_queue()
    for _ in range(MAX_TASKS):
        queue.ask(REQUEUE_ALL)

    assert queue.refusal(REQUEUE_ALL) == "too_many_tasks"
    queue.ask(CancelTask(1))
    assert queue.refusal(REQUEUE_ALL) is None
