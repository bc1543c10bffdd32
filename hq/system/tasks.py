"""Tasks of a queue: work on many messages, in steps, that a program starts and looks after."""

from __future__ import annotations

from hq.domain.commands import ListTasks, StartTask
from hq.domain.names import queue_name
from hq.domain.replies import Started
from hq.domain.settings import Rate
from hq.domain.tasks import Task as Running
from hq.errors import InvalidInput
from hq.system.keywords import check_kind
from hq.system.line import Line
from hq.system.results import Task


async def start(line: Line, queue: str, command: StartTask) -> int:
    """The number of the task that now runs."""
    check_kind("rate", command.rate, Rate)
    started: Started = await line.ask(queue, command)
    return started.number


def checked_target(line: Line, queue: str, target: str) -> str:
    """The name of another queue, that is there: a message sent to none would end as a dead letter."""
    if line.number(queue_name(target)) == line.number(queue):
        raise InvalidInput("the messages of a queue cannot be moved to itself")
    return target


async def running(line: Line, queue: str) -> list[Task]:
    """The tasks that run, by number."""
    tasks: list[Running] = await line.ask(queue, ListTasks())
    return [_told(task) for task in tasks]


def _told(task: Running) -> Task:
    percent = 100 * task.cursor // max(task.up_to, 1)
    return Task(
        task.number, task.kind.value, task.scope.value, task.target, task.group, task.reason, task.rate,
        task.done, percent,
    )  # fmt: skip
