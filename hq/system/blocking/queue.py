"""A queue as a thread uses it. Every verb is that of hq.Queue; what it does is said there."""

from __future__ import annotations

from collections.abc import Collection, Generator, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, Unpack, overload

from hq.actors.watch import Event
from hq.domain.replies import Stats
from hq.domain.settings import Rate, Settings
from hq.errors import Closed, HQError
from hq.system.blocking.calls import Calls
from hq.system.blocking.events import iterate
from hq.system.blocking.message import Message
from hq.system.consume import Consumer
from hq.system.keywords import EnqueueKeywords, Outgoing, SettingsKeywords
from hq.system.message import Message as Held
from hq.system.payloads import Payload
from hq.system.queue import PAGE
from hq.system.queue import Queue as AsyncQueue
from hq.system.results import Accepted, Explanation, Outcome, Settled, Task
from hq.system.schedules import Schedule, ScheduleKeywords
from hq.system.seen import SeenMessage

Target = Message | SeenMessage | str
Targets = list[Message] | list[SeenMessage] | list[str] | list[Target]


class Queue:
    """A handle to a queue, for threads."""

    __slots__ = ("_call", "_queue")

    def __init__(self, queue: AsyncQueue, call: Calls) -> None:
        self._queue = queue
        self._call = call

    def __repr__(self) -> str:
        return repr(self._queue)

    @property
    def name(self) -> str:
        return self._queue.name

    def enqueue(self, payload: Payload, **options: Unpack[EnqueueKeywords]) -> Accepted:
        return self._call(self._queue.enqueue, payload, **options)

    def enqueue_many(self, items: Sequence[Payload | Outgoing]) -> list[Accepted | HQError]:
        return self._call(self._queue.enqueue_many, items)

    def receive(
        self, limit: int = 1, *, wait_ms: int = 0, lease_ms: int | None = None, holder: str | None = None
    ) -> list[Message]:
        received = self._call(self._queue.receive, limit, wait_ms=wait_ms, lease_ms=lease_ms, holder=holder)
        return [Message(message, self, self._call) for message in received]

    def consume(
        self,
        *,
        concurrency: int = 10,
        wait_ms: int | None = None,
        lease_ms: int | None = None,
        holder: str | None = None,
        give_up_ms: int | None = None,
    ) -> Generator[Message]:
        """Iterate over messages as they come; leaving the loop gives back what was not handed out."""

        async def begin() -> Consumer:
            return self._queue.consume(
                concurrency=concurrency,
                wait_ms=wait_ms,
                lease_ms=lease_ms,
                holder=holder,
                give_up_ms=give_up_ms,
            )

        return self._iterate(self._call(begin))

    @overload
    def complete(self, message: Target, *, result: Any = None) -> Settled: ...
    @overload
    def complete(self, message: Targets, *, result: Any = None) -> list[Settled | HQError]: ...
    def complete(self, message: Target | Targets, *, result: Any = None) -> Settled | list[Settled | HQError]:
        if isinstance(message, list):
            return self._call(self._queue.complete, _all_held(message), result=result)
        return self._call(self._queue.complete, _held(message), result=result)

    def report(self, message: Target, progress: Any) -> Settled:
        return self._call(self._queue.report, _held(message), progress)

    def outcome(self, message: Target | Accepted, *, wait_ms: int = 0) -> Outcome:
        target = message.id if isinstance(message, Accepted) else _held(message)
        return self._call(self._queue.outcome, target, wait_ms=wait_ms)

    @overload
    def retry(self, message: Target, *, delay_ms: int | None = None, error: str | None = None) -> Settled: ...
    @overload
    def retry(
        self, message: Targets, *, delay_ms: int | None = None, error: str | None = None
    ) -> list[Settled | HQError]: ...
    def retry(
        self, message: Target | Targets, *, delay_ms: int | None = None, error: str | None = None
    ) -> Settled | list[Settled | HQError]:
        if isinstance(message, list):
            return self._call(self._queue.retry, _all_held(message), delay_ms=delay_ms, error=error)
        return self._call(self._queue.retry, _held(message), delay_ms=delay_ms, error=error)

    @overload
    def fail(self, message: Target, *, error: str | None = None) -> Settled: ...
    @overload
    def fail(self, message: Targets, *, error: str | None = None) -> list[Settled | HQError]: ...
    def fail(
        self, message: Target | Targets, *, error: str | None = None
    ) -> Settled | list[Settled | HQError]:
        if isinstance(message, list):
            return self._call(self._queue.fail, _all_held(message), error=error)
        return self._call(self._queue.fail, _held(message), error=error)

    @overload
    def release(self, message: Target) -> Settled: ...
    @overload
    def release(self, message: Targets) -> list[Settled | HQError]: ...
    def release(self, message: Target | Targets) -> Settled | list[Settled | HQError]:
        if isinstance(message, list):
            return self._call(self._queue.release, _all_held(message))
        return self._call(self._queue.release, _held(message))

    @overload
    def extend(self, message: Target, lease_ms: int | None = None) -> Settled: ...
    @overload
    def extend(self, message: Targets, lease_ms: int | None = None) -> list[Settled | HQError]: ...
    def extend(
        self, message: Target | Targets, lease_ms: int | None = None
    ) -> Settled | list[Settled | HQError]:
        if isinstance(message, list):
            return self._call(self._queue.extend, _all_held(message), lease_ms)
        return self._call(self._queue.extend, _held(message), lease_ms)

    @overload
    def delete(self, message: Target) -> Settled: ...
    @overload
    def delete(self, message: Targets) -> list[Settled | HQError]: ...
    def delete(self, message: Target | Targets) -> Settled | list[Settled | HQError]:
        if isinstance(message, list):
            return self._call(self._queue.delete, _all_held(message))
        return self._call(self._queue.delete, _held(message))

    @overload
    def requeue(self, message: Target) -> Settled: ...
    @overload
    def requeue(self, message: Targets) -> list[Settled | HQError]: ...
    def requeue(self, message: Target | Targets) -> Settled | list[Settled | HQError]:
        if isinstance(message, list):
            return self._call(self._queue.requeue, _all_held(message))
        return self._call(self._queue.requeue, _held(message))

    def delete_by_key(self, dedup_key: str, *, group: str | None = None) -> Settled:
        return self._call(self._queue.delete_by_key, dedup_key, group=group)

    def replace(self, dedup_key: str, payload: Payload, *, group: str | None = None) -> Settled:
        return self._call(self._queue.replace, dedup_key, payload, group=group)

    def purge(self) -> int:
        return self._call(self._queue.purge)

    def purge_dead_letters(self) -> int:
        return self._call(self._queue.purge_dead_letters)

    def pause(self, reason: str = "") -> None:
        self._call(self._queue.pause, reason)

    def resume(self) -> None:
        self._call(self._queue.resume)

    def pause_group(self, group: str, reason: str = "") -> None:
        self._call(self._queue.pause_group, group, reason)

    def resume_group(self, group: str) -> None:
        self._call(self._queue.resume_group, group)

    def requeue_dead_letters(
        self, *, group: str | None = None, reason: str | None = None, rate: Rate | None = None
    ) -> int:
        return self._call(self._queue.requeue_dead_letters, group=group, reason=reason, rate=rate)

    def move_waiting(self, target: str, *, group: str | None = None, rate: Rate | None = None) -> int:
        return self._call(self._queue.move_waiting, target, group=group, rate=rate)

    def move_dead_letters(
        self, target: str, *, group: str | None = None, reason: str | None = None, rate: Rate | None = None
    ) -> int:
        return self._call(self._queue.move_dead_letters, target, group=group, reason=reason, rate=rate)

    def delete_waiting(self, *, group: str | None = None, rate: Rate | None = None) -> int:
        return self._call(self._queue.delete_waiting, group=group, rate=rate)

    def delete_dead_letters(
        self, *, group: str | None = None, reason: str | None = None, rate: Rate | None = None
    ) -> int:
        return self._call(self._queue.delete_dead_letters, group=group, reason=reason, rate=rate)

    def tasks(self) -> list[Task]:
        return self._call(self._queue.tasks)

    def cancel_task(self, number: int) -> int:
        return self._call(self._queue.cancel_task, number)

    def set_schedule(self, name: str, payload: Payload, **how: Unpack[ScheduleKeywords]) -> Schedule:
        return self._call(self._queue.set_schedule, name, payload, **how)

    def schedules(self) -> list[Schedule]:
        return self._call(self._queue.schedules)

    def remove_schedule(self, name: str) -> None:
        self._call(self._queue.remove_schedule, name)

    def settings(self) -> Settings:
        return self._call(self._queue.settings)

    def configure(self, **changes: Unpack[SettingsKeywords]) -> Settings:
        return self._call(self._queue.configure, **changes)

    def stats(self) -> Stats:
        return self._call(self._queue.stats)

    def peek(self, limit: int = 1) -> list[SeenMessage]:
        return self._call(self._queue.peek, limit)

    def get(self, message: Target) -> SeenMessage:
        return self._call(self._queue.get, _held(message))

    def explain(self, message: Target) -> Explanation:
        return self._call(self._queue.explain, _held(message))

    def browse(self, *, after: Target | None = None, limit: int = PAGE) -> list[SeenMessage]:
        return self._call(self._queue.browse, after=_held_or_none(after), limit=limit)

    def dead_letters(self, *, after: Target | None = None, limit: int = PAGE) -> list[SeenMessage]:
        return self._call(self._queue.dead_letters, after=_held_or_none(after), limit=limit)

    def events(self, *, after: str | None = None, kinds: Collection[str] | None = None) -> Generator[Event]:
        """What happens to this queue, from this call on or after the cursor of an event."""
        return iterate(partial(self._queue.events, after=after, kinds=kinds), self._call)

    def _iterate(self, consumer: Consumer) -> Generator[Message]:
        async def following() -> Held | None:
            return await anext(consumer, None)

        try:
            while (held := self._call(following)) is not None:
                yield Message(held, self, self._call)
        finally:
            # A system that is closed has given everything back.
            with suppress(Closed):
                self._call(consumer.aclose)


def _held(target: Target) -> Held | SeenMessage | str:
    return target.held if isinstance(target, Message) else target


def _held_or_none(target: Target | None) -> Held | SeenMessage | str | None:
    return None if target is None else _held(target)


def _all_held(targets: Targets) -> list[Held | SeenMessage | str]:
    return [_held(target) for target in targets]
