"""A queue as a program uses it. The handle holds a name; every verb asks the queue that has it now."""

from __future__ import annotations

from collections.abc import Awaitable, Collection, Sequence
from functools import partial
from typing import Any, Unpack, overload

from hq.domain import commands as c
from hq.domain import replies
from hq.domain.replies import Stats
from hq.domain.settings import Rate, Settings
from hq.domain.tasks import Scope, TaskKind
from hq.errors import HQError
from hq.system import schedules, tasks
from hq.system.consume import Consumer, Terms
from hq.system.each import ask_each
from hq.system.events import Events, events
from hq.system.keywords import EnqueueKeywords, Outgoing, SettingsKeywords, changed, enqueue_command
from hq.system.lease import Lease
from hq.system.line import Line
from hq.system.message import Message
from hq.system.payloads import Payload, encode, from_json, to_json
from hq.system.results import Accepted, Blocker, Explanation, Outcome, Settled, Task
from hq.system.schedules import Schedule, ScheduleKeywords
from hq.system.seen import SeenMessage
from hq.system.settle import Build, Settler, Target, Targets

PAGE = 100


class Queue:
    """A handle that costs nothing: whether there is such a queue is seen when a verb asks it.

    A verb that takes a message takes the message, its id, or a list of either. With a list, one refusal stops
    nothing: the answer has a result or an error for each.
    """

    __slots__ = ("_line", "_settler", "name")

    def __init__(self, name: str, line: Line) -> None:
        self.name = name
        self._line = line
        self._settler = Settler(line, name)

    def __repr__(self) -> str:
        return f"<Queue {self.name}>"

    async def enqueue(self, payload: Payload, **options: Unpack[EnqueueKeywords]) -> Accepted:
        """Put a message in: bytes, text or a JSON value. When this returns, it is stored."""
        number = self._line.number(self.name)
        reply: replies.Accepted = await self._line.node.post(number, enqueue_command(payload, options))
        return self._accepted(number, reply)

    async def enqueue_many(self, items: Sequence[Payload | Outgoing]) -> list[Accepted | HQError]:
        """Put many in, in their order: payloads, or Outgoing values where a message has options."""
        number = self._line.number(self.name)
        told = await ask_each(items, _command_of, partial(self._line.node.post_many, number))
        return [one if isinstance(one, HQError) else self._accepted(number, one) for one in told]

    async def receive(
        self, limit: int = 1, *, wait_ms: int = 0, lease_ms: int | None = None, holder: str | None = None
    ) -> list[Message]:
        """Take up to so many messages out, waiting for the first; none if none came in time."""
        number = self._line.number(self.name)
        command = c.Receive(limit, lease_ms, holder)
        deliveries = await self._line.node.receive(self.name, command, wait_ms)
        return received(self, self._line, number, deliveries, lease_ms)

    def consume(
        self,
        *,
        concurrency: int = 10,
        wait_ms: int | None = None,
        lease_ms: int | None = None,
        holder: str | None = None,
        give_up_ms: int | None = None,
    ) -> Consumer:
        """Iterate over messages as they come, with their leases renewed; see Consumer."""
        self._line.guard.check()
        return Consumer(self, self._line, Terms(concurrency, wait_ms, lease_ms, holder, give_up_ms))

    @overload
    async def complete(self, message: Target, *, result: Any = None) -> Settled: ...
    @overload
    async def complete(self, message: Targets, *, result: Any = None) -> list[Settled | HQError]: ...
    async def complete(
        self, message: Target | Targets, *, result: Any = None
    ) -> Settled | list[Settled | HQError]:
        """The work is done; a result, any JSON value, is kept if the producer asked for one."""
        if result is None:
            return await self._settle(message, c.Complete)
        return await self._settle(message, partial(c.Complete, result=to_json(result)))

    async def report(self, message: Target, progress: Any) -> Settled:
        """Say how far the work on a message is, in a small JSON value."""
        return await self._settler.one(message, partial(c.Progress, progress=to_json(progress)))

    async def outcome(self, message: Target | Accepted, *, wait_ms: int = 0) -> Outcome:
        """What came of a message, waiting until it is over, or how far it is.

        MessageNotFound if nothing is kept of it: it was enqueued without `result_ms`, that time is over, or
        it was deleted, moved or expired.
        """
        target = message.id if isinstance(message, Accepted) else message
        number, sequence = await self._found(target)
        told = await self._line.node.outcome(number, sequence, wait_ms)
        return Outcome(
            str(self._line.id_of(number, sequence)), told.state, told.attempts, from_json(told.progress),
            from_json(told.result), told.error,
        )  # fmt: skip

    @overload
    async def retry(
        self, message: Target, *, delay_ms: int | None = None, error: str | None = None
    ) -> Settled: ...
    @overload
    async def retry(
        self, message: Targets, *, delay_ms: int | None = None, error: str | None = None
    ) -> list[Settled | HQError]: ...
    async def retry(
        self, message: Target | Targets, *, delay_ms: int | None = None, error: str | None = None
    ) -> Settled | list[Settled | HQError]:
        """The attempt went wrong: try later, or never if it was the last."""
        return await self._settle(message, partial(c.Retry, delay_ms=delay_ms, error=error))

    @overload
    async def fail(self, message: Target, *, error: str | None = None) -> Settled: ...
    @overload
    async def fail(self, message: Targets, *, error: str | None = None) -> list[Settled | HQError]: ...
    async def fail(
        self, message: Target | Targets, *, error: str | None = None
    ) -> Settled | list[Settled | HQError]:
        """Never again: the message becomes a dead letter."""
        return await self._settle(message, partial(c.Fail, error=error))

    @overload
    async def release(self, message: Target) -> Settled: ...
    @overload
    async def release(self, message: Targets) -> list[Settled | HQError]: ...
    async def release(self, message: Target | Targets) -> Settled | list[Settled | HQError]:
        """Give it back without blame: the attempt does not count."""
        return await self._settle(message, c.Release)

    @overload
    async def extend(self, message: Target, lease_ms: int | None = None) -> Settled: ...
    @overload
    async def extend(self, message: Targets, lease_ms: int | None = None) -> list[Settled | HQError]: ...
    async def extend(
        self, message: Target | Targets, lease_ms: int | None = None
    ) -> Settled | list[Settled | HQError]:
        """Set a new end of the lease, counted from now; 0 ends it, and the attempt counts."""
        return await self._settle(message, partial(c.Extend, lease_ms=lease_ms))

    @overload
    async def delete(self, message: Target) -> Settled: ...
    @overload
    async def delete(self, message: Targets) -> list[Settled | HQError]: ...
    async def delete(self, message: Target | Targets) -> Settled | list[Settled | HQError]:
        """Take it out for good, in whatever state it is."""
        return await self._settle(message, lambda sequence, _: c.Delete(sequence))

    @overload
    async def requeue(self, message: Target) -> Settled: ...
    @overload
    async def requeue(self, message: Targets) -> list[Settled | HQError]: ...
    async def requeue(self, message: Target | Targets) -> Settled | list[Settled | HQError]:
        """Bring a dead letter back, with all its attempts before it."""
        return await self._settle(message, lambda sequence, _: c.Requeue(sequence))

    async def delete_by_key(self, dedup_key: str, *, group: str | None = None) -> Settled:
        """Delete the message that holds a dedup key."""
        return await self._keyed(c.DeleteByKey(dedup_key, group))

    async def replace(self, dedup_key: str, payload: Payload, *, group: str | None = None) -> Settled:
        """Give the waiting message that holds a dedup key a new payload; its content type stays."""
        body, _ = encode(payload, None)
        return await self._keyed(c.Replace(dedup_key, body, group))

    async def purge(self) -> int:
        """Take out all that wait or are leased; how many there were."""
        return await self._purge(Scope.LIVE)

    async def purge_dead_letters(self) -> int:
        """Take out all dead letters; how many there were."""
        return await self._purge(Scope.FAILED)

    async def pause(self, reason: str = "") -> None:
        """Accept messages, but hand none out."""
        await self._line.ask(self.name, c.Pause(reason))

    async def resume(self) -> None:
        """Hand messages out again."""
        await self._line.ask(self.name, c.Resume())

    async def pause_group(self, group: str, reason: str = "") -> None:
        """Hand none of a group out."""
        await self._line.ask(self.name, c.PauseGroup(group, reason))

    async def resume_group(self, group: str) -> None:
        """Hand a group out again."""
        await self._line.ask(self.name, c.ResumeGroup(group))

    async def requeue_dead_letters(
        self, *, group: str | None = None, reason: str | None = None, rate: Rate | None = None
    ) -> int:
        """Bring dead letters back: all, or those of a group or a reason. The number of the task that does."""
        return await self._start(
            c.StartTask(TaskKind.REQUEUE, Scope.FAILED, group=group, reason=reason, rate=rate)
        )

    async def move_waiting(self, target: str, *, group: str | None = None, rate: Rate | None = None) -> int:
        """Move what waits to another queue, in its order. The number of the task that does."""
        target = tasks.checked_target(self._line, self.name, target)
        return await self._start(c.StartTask(TaskKind.MOVE, Scope.LIVE, target, group, rate=rate))

    async def move_dead_letters(
        self, target: str, *, group: str | None = None, reason: str | None = None, rate: Rate | None = None
    ) -> int:
        """Move dead letters to another queue, where they wait. The number of the task that does."""
        target = tasks.checked_target(self._line, self.name, target)
        return await self._start(c.StartTask(TaskKind.MOVE, Scope.FAILED, target, group, reason, rate))

    async def delete_waiting(self, *, group: str | None = None, rate: Rate | None = None) -> int:
        """Delete what waits, all or of a group. The number of the task that does."""
        return await self._start(c.StartTask(TaskKind.DELETE, Scope.LIVE, group=group, rate=rate))

    async def delete_dead_letters(
        self, *, group: str | None = None, reason: str | None = None, rate: Rate | None = None
    ) -> int:
        """Delete dead letters: all, or those of a group or a reason. The number of the task that does."""
        return await self._start(
            c.StartTask(TaskKind.DELETE, Scope.FAILED, group=group, reason=reason, rate=rate)
        )

    async def tasks(self) -> list[Task]:
        """The tasks that run, oldest first; one that has ended is not among them."""
        return await tasks.running(self._line, self.name)

    async def cancel_task(self, number: int) -> int:
        """Stop a task where it is; how many messages it took."""
        reply: replies.Done = await self._line.ask(self.name, c.CancelTask(number))
        return reply.count

    async def set_schedule(self, name: str, payload: Payload, **how: Unpack[ScheduleKeywords]) -> Schedule:
        """Enqueue a payload again and again, `every_ms` or by `cron` (in UTC, or the `timezone` named).

        A schedule of this name is changed. As long as its interval or cron stays, so does its next tick.
        """
        return await schedules.set_schedule(self._line, self.name, name, payload, how)

    async def schedules(self) -> list[Schedule]:
        """All schedules by name, with their next five ticks."""
        return await schedules.schedules(self._line, self.name)

    async def remove_schedule(self, name: str) -> None:
        """Stop repeating; what was enqueued stays."""
        await self._line.ask(self.name, c.RemoveSchedule(name))

    async def settings(self) -> Settings:
        """The settings in force."""
        self._line.guard.check()
        return await self._line.node.settings(self.name)

    async def configure(self, **changes: Unpack[SettingsKeywords]) -> Settings:
        """Change some settings and leave the others; all that are then in force."""
        async with self._line.configuring:
            settings = changed(await self.settings(), changes)
            await self._line.node.configure(self.name, settings)
        return settings

    async def stats(self) -> Stats:
        """The queue in numbers."""
        stats: Stats = await self._line.ask(self.name, c.Count())
        return stats

    async def peek(self, limit: int = 1) -> list[SeenMessage]:
        """The messages that are next, left where they are."""
        return await self._look(c.Peek(limit))

    async def get(self, message: Target) -> SeenMessage:
        """One message as it is now."""
        number, sequence = await self._found(message)
        return self._seen(number, await self._line.ask(self.name, c.Get(sequence)))

    async def explain(self, message: Target) -> Explanation:
        """Why a message is not being received, and until when."""
        number, sequence = await self._found(message)
        reply: replies.Explanation = await self._line.ask(self.name, c.Explain(sequence))
        blockers = (self._blocker(number, blocker) for blocker in reply.blockers)
        return Explanation(reply.state, tuple(blockers))

    async def browse(self, *, after: Target | None = None, limit: int = PAGE) -> list[SeenMessage]:
        """Messages that wait or are leased, oldest first; the next page comes after its last."""
        return await self._page(Scope.LIVE, after, limit)

    async def dead_letters(self, *, after: Target | None = None, limit: int = PAGE) -> list[SeenMessage]:
        """Failed messages, oldest first; the next page comes after its last."""
        return await self._page(Scope.FAILED, after, limit)

    def events(self, *, after: str | None = None, kinds: Collection[str] | None = None) -> Events:
        """What happens to this queue, as the journal tells it; see System.events."""
        return events(self._line, {"queue": self.name, "after": after, "kinds": kinds})

    def _accepted(self, number: int, reply: replies.Accepted) -> Accepted:
        return Accepted(self._line.id_of(number, reply.message), reply.duplicate)

    async def _start(self, command: c.StartTask) -> int:
        return await tasks.start(self._line, self.name, command)

    def _settle(
        self, message: Target | Targets, build: Build
    ) -> Awaitable[Settled] | Awaitable[list[Settled | HQError]]:
        if isinstance(message, list):
            return self._settler.many(message, build)
        return self._settler.one(message, build)

    async def _keyed(self, command: c.DeleteByKey | c.Replace) -> Settled:
        number = self._line.number(self.name)
        reply: replies.Settled = await self._line.ask(self.name, command)
        return Settled(self._line.id_of(number, reply.message), reply.state, reply.until)

    async def _purge(self, scope: Scope) -> int:
        reply: replies.Done = await self._line.ask(self.name, c.Purge(scope))
        return reply.count

    async def _found(self, message: Target) -> tuple[int, int]:
        number = self._line.number(self.name)
        return number, self._settler.sequence(number, message)

    async def _page(self, scope: Scope, after: Target | None, limit: int) -> list[SeenMessage]:
        sequence = 0 if after is None else (await self._found(after))[1]
        return await self._look(c.Browse(scope, sequence, limit))

    async def _look(self, command: c.Peek | c.Browse) -> list[SeenMessage]:
        number = self._line.number(self.name)
        seen: list[replies.Seen] = await self._line.ask(self.name, command)
        return [self._seen(number, one) for one in seen]

    def _seen(self, number: int, seen: replies.Seen) -> SeenMessage:
        message_id = self._line.id_of(number, seen.message.sequence)
        return SeenMessage(str(message_id), seen.message, seen.state)

    def _blocker(self, number: int, blocker: replies.Blocker) -> Blocker:
        by = None if blocker.message is None else str(self._line.id_of(number, blocker.message))
        return Blocker(blocker.code, blocker.until, by, blocker.reason)


def received(
    queue: Queue, line: Line, number: int, deliveries: list[replies.Delivery], lease_ms: int | None
) -> list[Message]:
    """Messages of a queue that was just asked, each with its lease."""
    messages = []
    for delivery in deliveries:
        message_id = line.id_of(number, delivery.message)
        lease = Lease(message_id, delivery.token, delivery.lease_expires_at, lease_ms)
        messages.append(Message(queue, delivery, lease))
    return messages


def _command_of(item: Payload | Outgoing) -> c.Enqueue:
    return item.command if isinstance(item, Outgoing) else enqueue_command(item, {})
