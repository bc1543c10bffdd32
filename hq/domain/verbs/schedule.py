"""Schedules and their ticks. The calendar is read above; a tick and its messages are one decision."""

from __future__ import annotations

from dataclasses import replace

from hq.domain.chance import Chance
from hq.domain.commands import ListSchedules, RemoveSchedule, SetSchedule, Tick
from hq.domain.events import Event, Scheduled, Ticked, Unscheduled
from hq.domain.keys import key_holder
from hq.domain.messages import MAX_NAME_CHARS, short_text
from hq.domain.replies import Decision, Done
from hq.domain.schedules import MAX_CATCH_UP, MAX_SCHEDULES, Planned
from hq.domain.state import QueueState
from hq.domain.verbs.enqueue import check_size, enqueued
from hq.errors import InvalidInput, ScheduleNotFound


def set_schedule(state: QueueState, command: SetSchedule, now: int, _: Chance) -> Decision:
    """Add a schedule or change the one of this name; its next tick stays as long as its spec does.

    So a program that sets its schedules whenever it starts does not put them off.
    """
    schedule, next_at = command.schedule, command.next_at
    check_size(state.settings, schedule.payload)
    before = state.schedules.get(schedule.name)
    if before is None:
        if len(state.schedules) >= MAX_SCHEDULES:
            raise InvalidInput(f"a queue has at most {MAX_SCHEDULES} schedules")
        return [Scheduled(state.sequence + 1, now, schedule, next_at)], Planned(schedule, next_at)
    if before.schedule == schedule:
        return [], replace(before)
    if before.schedule.spec == schedule.spec:
        next_at = before.next_at
    event = Scheduled(state.sequence + 1, now, schedule, next_at)
    return [event], Planned(schedule, next_at, before.last_at)


def remove_schedule(state: QueueState, command: RemoveSchedule, now: int, _: Chance) -> Decision:
    """Stop repeating."""
    short_text("schedule name", command.name, MAX_NAME_CHARS)
    if command.name not in state.schedules:
        raise ScheduleNotFound
    return [Unscheduled(state.sequence + 1, now, command.name)], Done()


def list_schedules(state: QueueState, _command: ListSchedules, _now: int, _: Chance) -> Decision:
    """All of them, by name."""
    return [], [replace(planned) for _, planned in sorted(state.schedules.items())]


def tick(state: QueueState, command: Tick, now: int, _: Chance) -> Decision:
    """Enqueue what the due ticks yield; a tick that was dealt with before yields nothing.

    A dedup key that is held when the tick comes keeps its message out, so that a job does not pile up
    behind itself. Capacity and rate do not.
    """
    planned = state.schedules.get(command.name)
    if planned is None:
        raise ScheduleNotFound
    if len(command.due) > MAX_CATCH_UP:
        raise InvalidInput(f"at most {MAX_CATCH_UP} ticks at once")
    due = tuple(instant for instant in command.due if planned.next_at <= instant)
    if not due:
        return [], Done()
    schedule = planned.schedule
    runs = schedule.runs(due, now)
    key = schedule.options.dedup_key
    if key is not None:
        held = key_holder(state, key, schedule.options.group, now) is not None
        runs = () if held else runs[:1]
    ticked = Ticked(state.sequence + 1, now, command.name, due[-1], command.next_at, len(runs))
    events: list[Event] = [ticked]
    for sequence, instant in enumerate(runs, start=state.sequence + 2):
        options = schedule.options_at(instant)
        events.append(enqueued(state.settings, sequence, now, schedule.payload, options))
    return events, Done(len(runs))
