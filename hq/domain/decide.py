"""decide(state, command, now, chance): the one door to the rules. It changes nothing.

The answer is a Decision (events to apply and append, and the reply to give once they are durable), or Needs.
A reply of AGAIN means: apply these events, then decide the same command again. A refusal is a reply too.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hq.domain import commands as c
from hq.domain.chance import Chance
from hq.domain.replies import AGAIN, Decision, Needs
from hq.domain.signals import Lacking, Overdue
from hq.domain.state import QueueState
from hq.domain.timing import end, ended_leases
from hq.domain.verbs.enqueue import enqueue
from hq.domain.verbs.explain import explain
from hq.domain.verbs.look import browse, count, dates, get, peek
from hq.domain.verbs.move import next_move, return_move, settle_move, take_move
from hq.domain.verbs.operate import claim, configure, pause, pause_group, resume, resume_group, wake
from hq.domain.verbs.outcome import outcome, progress
from hq.domain.verbs.receive import receive
from hq.domain.verbs.remove import delete, delete_by_key, purge, replace
from hq.domain.verbs.requeue import requeue
from hq.domain.verbs.schedule import list_schedules, remove_schedule, set_schedule, tick
from hq.domain.verbs.settle import complete, extend, fail, release, retry
from hq.domain.verbs.take_in import take_in
from hq.domain.verbs.task import advance_task, cancel_task, list_tasks, start_task
from hq.errors import CallerError

Rule = Callable[[QueueState, Any, int, Chance], Decision]

RULES: dict[type[c.Command], Rule] = {
    c.Enqueue: enqueue,
    c.TakeIn: take_in,
    c.Receive: receive,
    c.Complete: complete,
    c.Retry: retry,
    c.Fail: fail,
    c.Release: release,
    c.Extend: extend,
    c.Delete: delete,
    c.DeleteByKey: delete_by_key,
    c.Replace: replace,
    c.Requeue: requeue,
    c.Purge: purge,
    c.Pause: pause,
    c.Resume: resume,
    c.PauseGroup: pause_group,
    c.ResumeGroup: resume_group,
    c.Configure: configure,
    c.SetSchedule: set_schedule,
    c.RemoveSchedule: remove_schedule,
    c.ListSchedules: list_schedules,
    c.Tick: tick,
    c.StartTask: start_task,
    c.AdvanceTask: advance_task,
    c.CancelTask: cancel_task,
    c.ListTasks: list_tasks,
    c.NextMove: next_move,
    c.TakeMove: take_move,
    c.SettleMove: settle_move,
    c.ReturnMove: return_move,
    c.Wake: wake,
    c.Peek: peek,
    c.Get: get,
    c.Explain: explain,
    c.Count: count,
    c.Browse: browse,
    c.Dates: dates,
    c.Claim: claim,
    c.Progress: progress,
    c.Outcome: outcome,
}


def decide(state: QueueState, command: c.Command, now: int, chance: Chance) -> Decision | Needs:
    """What this command does now. A queue's time never goes back, whatever the clock says."""
    # Not max(): it would cost every decision as much as its look at the leases.
    if now < state.time:  # noqa: PLR1730
        now = state.time
    try:
        # Leases that are over end first. Only a claim comes before them: until it is durable, nothing counts.
        ends = state.lease_ends
        if ends and ends[0][0] <= now and type(command) is not c.Claim:
            over = ended_leases(state, now)
            if over:
                return end(state, over, now), AGAIN
        return RULES[type(command)](state, command, now, chance)
    except Overdue as found:
        return end(state, found.messages, now), AGAIN
    except Lacking as found:
        return Needs(found.lookups)
    except CallerError as refusal:
        return [], refusal.with_traceback(None)
