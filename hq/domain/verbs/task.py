"""Tasks: requeue, move or delete many messages, a step at a time, at a rate, from a cursor."""

from __future__ import annotations

from hq.domain.chance import Chance
from hq.domain.commands import AdvanceTask, CancelTask, ListTasks, StartTask
from hq.domain.events import Deleted, Event, MoveStarted, TaskAdvanced, TaskEnded, TaskStarted
from hq.domain.keys import key_is_free_for
from hq.domain.listing import listed
from hq.domain.lookups import DedupKey, KeyOf
from hq.domain.messages import MAX_NAME_CHARS, Message, short_text
from hq.domain.names import queue_name
from hq.domain.replies import Decision, Done, Started
from hq.domain.settings import Rate, in_range
from hq.domain.signals import Lacking
from hq.domain.state import QueueState
from hq.domain.tasks import MAX_TASKS, STEP, Scope, Task, TaskKind
from hq.domain.verbs.requeue import requeued
from hq.errors import InvalidInput, TaskNotFound, TooManyTasks

MAX_MOVES = 1_000
MAX_NUMBER = (1 << 63) - 1


def start_task(state: QueueState, command: StartTask, now: int, _: Chance) -> Decision:
    """Begin a task over everything there is now."""
    if command.kind is TaskKind.REQUEUE and command.scope is not Scope.FAILED:
        raise InvalidInput("only dead letters can be requeued")
    if (command.kind is TaskKind.MOVE) is (command.target is None):
        raise InvalidInput("a move, and only a move, has a target queue")
    if command.target is not None:
        queue_name(command.target)
    short_text("group", command.group, MAX_NAME_CHARS)
    short_text("reason", command.reason, MAX_NAME_CHARS)
    if len(state.tasks) >= MAX_TASKS:
        raise TooManyTasks
    task = Task(
        state.next_task, command.kind, command.scope, command.target, command.group, command.reason,
        command.rate, up_to=state.sequence, next_at=now,
    )  # fmt: skip
    return [TaskStarted(state.sequence + 1, now, task)], Started(task.number)


def advance_task(state: QueueState, command: AdvanceTask, now: int, _: Chance) -> Decision:
    """Do the task's next step, unless its rate or the moves still under way say it is too early."""
    task = _running(state, command.number)
    if now < task.next_at or (task.kind is TaskKind.MOVE and len(state.moves) >= MAX_MOVES):
        return [], Done()
    listing = listed(state, task.scope, task.cursor, STEP, now)
    page = [message for message in listing if message.sequence <= task.up_to]
    matching = [message for message in page if task.takes(message)]
    chosen = matching[: task.step()]
    events = _steps(state, task, chosen, now)
    ended = len(page) < STEP and len(chosen) == len(matching)
    if len(chosen) < len(matching):
        cursor = chosen[-1].sequence
    else:
        cursor = task.up_to if ended else page[-1].sequence
    after = task.advanced(cursor, task.done + len(chosen), now + _pause_ms(task.rate, len(chosen)))
    sequence = state.sequence + len(events) + 1
    events.append(TaskEnded(sequence, now, after, "done") if ended else TaskAdvanced(sequence, now, after))
    return events, Done(len(chosen))


def cancel_task(state: QueueState, command: CancelTask, now: int, _: Chance) -> Decision:
    """Stop a task where it is."""
    in_range("task number", command.number, 0, MAX_NUMBER)
    task = _running(state, command.number)
    return [TaskEnded(state.sequence + 1, now, task, "cancelled")], Done(task.done)


def list_tasks(state: QueueState, _command: ListTasks, _now: int, _: Chance) -> Decision:
    """Those that run, by number."""
    return [], [task for _, task in sorted(state.tasks.items())]


def _running(state: QueueState, number: int) -> Task:
    task = state.tasks.get(number)
    if task is None:
        raise TaskNotFound
    return task


def _steps(state: QueueState, task: Task, chosen: list[Message], now: int) -> list[Event]:
    """One event per chosen message."""
    events: list[Event] = []
    keys_taken: set[DedupKey] = set()
    if task.kind is TaskKind.REQUEUE:
        _ask_for_keys(state, chosen)
    for sequence, message in enumerate(chosen, start=state.sequence + 1):
        match task.kind:
            case TaskKind.DELETE:
                events.append(Deleted(sequence, now, message.sequence, message.state, "task"))
            case TaskKind.MOVE:
                assert task.target is not None
                move = state.next_move + len(events)
                events.append(MoveStarted(sequence, now, message.sequence, message.state, move, task.target))
            case TaskKind.REQUEUE:
                takes_key = _takes_key(state, message, now, keys_taken)
                events.append(requeued(state, message, sequence, now, takes_key=takes_key))
    return events


def _takes_key(state: QueueState, message: Message, now: int, taken: set[DedupKey]) -> bool:
    """Whether the key is free: of others, and of those requeued in the same step."""
    if message.options.dedup_key is None or not key_is_free_for(state, message, now):
        return False
    key = state.dedup_key(message.options.dedup_key, message.options.group)
    free = key not in taken
    taken.add(key)
    return free


def _ask_for_keys(state: QueueState, chosen: list[Message]) -> None:
    """Ask for all keys of a step at once."""
    named = ((message.options.dedup_key, message.options.group) for message in chosen)
    keys = {state.dedup_key(key, group) for key, group in named if key is not None}
    unknown = [KeyOf(key) for key in keys if not state.knows_key(key)]
    if unknown:
        raise Lacking(*unknown)


def _pause_ms(rate: Rate | None, count: int) -> int:
    """How long a step of so many uses the rate up."""
    return 0 if rate is None else -(-count * rate.per_ms // rate.limit)
