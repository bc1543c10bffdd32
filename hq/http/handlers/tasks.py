"""Tasks over many messages: requeue dead letters, see how far a task is, cancel it."""

from __future__ import annotations

from hq.domain.commands import CancelTask, StartTask
from hq.domain.settings import Rate
from hq.domain.tasks import Scope, TaskKind
from hq.errors import InvalidInput, TaskNotFound
from hq.http import models as m
from hq.http import wire
from hq.http.calls import Call
from hq.http.handlers.many import body_shape
from hq.http.replies import Reply, ok
from hq.system import tasks
from hq.system.keywords import member
from hq.system.results import Task


async def requeue_dead_letters(call: Call) -> Reply:
    """Start bringing dead letters back: all, or those of a group or a reason, at a rate or at once."""
    body_shape(call)
    wanted = wire.decode(call.body, m.RequeueTask, call.depth) if call.body else m.RequeueTask()
    return await _start(call, wanted, TaskKind.REQUEUE, Scope.FAILED, None)


async def start(call: Call) -> Reply:
    """Start requeueing, moving or deleting many messages."""
    body_shape(call)
    wanted = wire.decode(call.body, m.NewTask, call.depth)
    kind, scope = member(TaskKind, "kind", wanted.kind), member(Scope, "scope", wanted.scope)
    target = wanted.target
    if target is not None:
        tasks.checked_target(call.line, call.queue, target)
    return await _start(call, wanted, kind, scope, target)


async def _start(
    call: Call, wanted: m.RequeueTask, kind: TaskKind, scope: Scope, target: str | None
) -> Reply:
    rate = None if wanted.rate is None else Rate(wanted.rate.limit, wanted.rate.per_ms, wanted.rate.burst)
    command = StartTask(kind, scope, target, wanted.group, wanted.reason, rate)
    return ok(m.TaskStarted(task=await tasks.start(call.line, call.queue, command)), 202)


async def list_all(call: Call) -> Reply:
    """The tasks that run."""
    return ok([_shown(task) for task in await tasks.running(call.line, call.queue)])


async def show(call: Call) -> Reply:
    """How far one is; one that has ended is not found."""
    wanted = _number(call)
    for task in await tasks.running(call.line, call.queue):
        if task.number == wanted:
            return ok(_shown(task))
    raise TaskNotFound


async def cancel(call: Call) -> Reply:
    """Stop one where it is."""
    done = await call.post(CancelTask(_number(call)))
    return ok(m.TaskCancelled(done=done.count))


def _number(call: Call) -> int:
    text = call.path["task"]
    if not (text.isascii() and text.isdigit() and len(text) < 16):
        raise InvalidInput("a task is named by its number")
    return int(text)


def _shown(task: Task) -> m.TaskShown:
    return m.TaskShown(
        task=task.number, kind=task.kind, scope=task.scope, target=task.target, group=task.group,
        reason=task.reason, rate=_rate(task.rate), done=task.done, percent=task.percent,
    )  # fmt: skip


def _rate(rate: Rate | None) -> m.Rate | None:
    return None if rate is None else m.Rate(limit=rate.limit, per_ms=rate.per_ms, burst=rate.burst)
