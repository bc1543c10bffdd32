"""Pause, resume, configure, claim, wake: what operators and the node itself ask of a queue."""

from __future__ import annotations

from hq.domain.chance import Chance
from hq.domain.commands import Claim, Configure, Pause, PauseGroup, Resume, ResumeGroup, Wake
from hq.domain.events import Claimed, Configured, Event, GroupPaused, GroupResumed, Paused, Resumed
from hq.domain.messages import MAX_ERROR_CHARS, MAX_NAME_CHARS, short_text
from hq.domain.replies import Decision, Done
from hq.domain.settings import Groups
from hq.domain.state import QueueState
from hq.domain.timing import end, overdue
from hq.errors import InvalidInput, SettingFixed

MAX_PAUSED_GROUPS = 10_000


def pause(state: QueueState, command: Pause, now: int, _: Chance) -> Decision:
    """Accept, but hand nothing out."""
    short_text("reason", command.reason, MAX_ERROR_CHARS)
    if state.paused == command.reason:
        return [], Done()
    return [Paused(state.sequence + 1, now, command.reason)], Done()


def resume(state: QueueState, _command: Resume, now: int, _: Chance) -> Decision:
    """Hand out again."""
    return [] if state.paused is None else [Resumed(state.sequence + 1, now)], Done()


def pause_group(state: QueueState, command: PauseGroup, now: int, _: Chance) -> Decision:
    """Hand nothing of one group out."""
    short_text("group", command.group, MAX_NAME_CHARS)
    short_text("reason", command.reason, MAX_ERROR_CHARS)
    paused = state.paused_groups
    if state.settings.groups is Groups.LABEL:
        raise InvalidInput("groups are mere labels in this queue and cannot be paused")
    if paused.get(command.group) == command.reason:
        return [], Done()
    if len(paused) >= MAX_PAUSED_GROUPS and command.group not in paused:
        raise InvalidInput(f"at most {MAX_PAUSED_GROUPS} groups can be paused; pause the queue instead")
    return [GroupPaused(state.sequence + 1, now, command.group, command.reason)], Done()


def resume_group(state: QueueState, command: ResumeGroup, now: int, _: Chance) -> Decision:
    """Hand a group out again."""
    if command.group not in state.paused_groups:
        return [], Done()
    return [GroupResumed(state.sequence + 1, now, command.group)], Done()


def configure(state: QueueState, command: Configure, now: int, _: Chance) -> Decision:
    """Put other settings in force; a rate that changes starts with a full bucket."""
    before, after = state.settings, command.settings
    if (before.groups is Groups.FIFO) is not (after.groups is Groups.FIFO):
        raise SettingFixed("fifo is fixed when a queue is created")
    if before.dedup_scope is not after.dedup_scope:
        raise SettingFixed("the dedup scope is fixed when a queue is created")
    if before == after:
        return [], Done()
    enqueue_mark = state.enqueue_mark if before.enqueue_rate == after.enqueue_rate else 0
    receive_mark = state.receive_mark if before.receive_rate == after.receive_rate else 0
    return [Configured(state.sequence + 1, now, after, enqueue_mark, receive_mark)], Done()


def claim(state: QueueState, command: Claim, now: int, _: Chance) -> Decision:
    """Become the queue's writer under a new epoch; a claim that is late finds a newer one."""
    if command.epoch <= state.epoch:
        raise InvalidInput(f"epoch {command.epoch} is not after {state.epoch}")
    return [Claimed(state.sequence + 1, now, command.epoch)], Done()


def wake(state: QueueState, _command: Wake, now: int, _: Chance) -> Decision:
    """Sweep a chunk of what time has ended; `wake_at` tells whether there is more."""
    events: list[Event] = end(state, overdue(state, now), now)
    return events, Done(len(events))
