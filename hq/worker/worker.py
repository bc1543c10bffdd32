"""hq.Worker: handlers and tasks, and the life of a process that works on them."""

from __future__ import annotations

import os
import socket
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, ParamSpec, TypeVar, Unpack

import anyio
from anyio.abc import TaskGroup
from anyio.from_thread import BlockingPortal

from hq.domain.names import queue_name
from hq.domain.settings import MAX_SPAN_MS, in_range, optional_in_range
from hq.errors import HQError, InvalidInput, QueueExists, QueueNotFound
from hq.system.blocking import System as BlockingSystem
from hq.system.blocking.calls import Calls
from hq.system.keywords import EnqueueKeywords, SettingsKeywords, check_known
from hq.system.results import Outcome
from hq.system.schedules import RepeatKeywords
from hq.system.system import System
from hq.worker.crew import GIVE_BACK_S, Crew, Site
from hq.worker.handlers import AllUnder, Floor, Handler, OneQueue, Source, Terms, TermsKeywords
from hq.worker.tasks import Arguments, Attachment, Task, Tasks

P = ParamSpec("P")
R = TypeVar("R")
Handle = TypeVar("Handle", bound=Callable[[Any], Any])

MAX_THREADS = 1_000
ALIVE_WITHIN_MS = 30_000


class TaskKeywords(TermsKeywords, EnqueueKeywords, total=False):
    """What `Worker.task` takes beside names: the terms of its handler and the options of its messages."""


@dataclass(frozen=True, slots=True)
class Repeat:
    """A call of a task that a worker schedules when it starts."""

    name: str
    task: Task[Any, Any]
    arguments: dict[str, Any]
    when: RepeatKeywords


class Worker:
    """Handlers by queue or prefix, and tasks. `run` works until `stop`; see docs/workers.md.

    `concurrency`, `prefetch`, `lease_ms`, `timeout_ms` and `max_crashes` hold for each handler that does not
    say otherwise. Handlers that are plain functions share `threads`. When stopped, handlers have `grace_ms`
    to end; then they are cancelled and their messages released. A store that cannot be reached is waited for,
    with `give_up_ms` no longer than that: then the worker stops, and `run` raises why.
    """

    def __init__(
        self,
        *,
        threads: int = 20,
        grace_ms: int = 30_000,
        give_up_ms: int | None = None,
        holder: str | None = None,
        **terms: Unpack[TermsKeywords],
    ) -> None:
        in_range("threads", threads, 1, MAX_THREADS)
        in_range("grace_ms", grace_ms, 0, MAX_SPAN_MS)
        optional_in_range("give_up_ms", give_up_ms, 0, MAX_SPAN_MS)
        self.terms = Terms().changed(terms)
        self.holder = holder or f"{socket.gethostname()}-{os.getpid()}"
        self._threads = threads
        self._grace_ms = grace_ms
        self._give_up_ms = give_up_ms
        self._given_up: HQError | None = None
        self._handlers: dict[str, Handler] = {}
        self._tasks: dict[str, Tasks] = {}
        self._task_terms: dict[str, Terms] = {}
        self._settings: dict[str, SettingsKeywords] = {}
        self._repeats: list[Repeat] = []
        self._attachment = Attachment()
        self._crews: list[Crew] = []
        self._stopping: anyio.Event | None = None

    def handle(self, queue: str, **terms: Unpack[TermsKeywords]) -> Callable[[Handle], Handle]:
        """`@worker.handle("emails")`: call this for every message of a queue."""
        return self._handled(OneQueue(queue_name(queue)), f"queue {queue}", terms)

    def handle_under(self, prefix: str, **terms: Unpack[TermsKeywords]) -> Callable[[Handle], Handle]:
        """The same for all queues at or below a prefix: `mail` holds `mail.eu`, `""` holds all."""
        if prefix != "":
            queue_name(prefix)
        return self._handled(AllUnder(prefix), f"prefix {prefix}", terms)

    def task(
        self, queue: str, *, name: str | None = None, **how: Unpack[TaskKeywords]
    ) -> Callable[[Callable[P, Any]], Task[P, Any]]:
        """`@worker.task("emails")` makes a function a job of a queue; its parameters are typed and named.

        Several tasks may share a queue, all `async def` or all `def`; the terms are those of the first.
        """
        queue_name(queue)
        check_known(how, TaskKeywords.__annotations__)
        given: dict[str, Any] = {**how}
        terms: Any = {key: given.pop(key) for key in TermsKeywords.__annotations__ if key in given}
        if terms and queue in self._task_terms:
            raise InvalidInput(f"the terms of {queue!r} are said with its first task")

        def declare(call: Callable[P, Any]) -> Task[P, Any]:
            options: Any = given
            task: Task[P, Any] = Task(
                call, name or call.__name__, queue, Arguments(call), self._attachment, options
            )
            self._task_terms.setdefault(queue, self.terms.changed(terms))
            self._tasks.setdefault(queue, Tasks(queue)).add(task)
            return task

        return declare

    def queue(self, name: str, **settings: Unpack[SettingsKeywords]) -> None:
        """Say which settings a queue of this worker is made with, should it be missing."""
        self._settings[queue_name(name)] = settings

    def schedule(self, name: str, task: Task[P, Any], when: RepeatKeywords, **arguments: Any) -> None:
        """Have a task called again and again from when the worker starts; `when` is as in `set_schedule`."""
        check_known(when, RepeatKeywords.__annotations__)
        task.arguments.encode(**arguments)
        self._repeats.append(Repeat(name, task, arguments, when))

    def attach(self, system: System | BlockingSystem) -> None:
        """Enqueue tasks to this system; a worker that runs is attached to the system it works for."""
        self._attachment.attach(system)

    async def outcome(self, queue: str, message_id: str, *, wait_ms: int = 0) -> Outcome:
        """What came of a job of this worker's system, by its id; see Queue.outcome."""
        return await self._attachment.queue(queue).outcome(message_id, wait_ms=wait_ms)

    async def prepare(self, system: System) -> None:
        """Attach, make the queues that are missing and set the schedules; what is there stays as it is."""
        self.attach(system)
        for handler in self.handlers():
            name = handler.source.name
            if isinstance(handler.source, OneQueue):
                await _make(system, name, self._settings.get(name, {}))
        for repeat in self._repeats:
            body, options = repeat.task.message(**repeat.arguments)
            queue = system.queue(repeat.task.queue)
            await queue.set_schedule(repeat.name, body, **repeat.when, **options)

    def handlers(self) -> list[Handler]:
        """All handlers, those of tasks included."""
        made = []
        for queue, tasks in self._tasks.items():
            call = tasks.call if tasks.is_async else tasks.call_in_thread
            made.append(Handler.of(OneQueue(queue), call, self._task_terms[queue]))
        return [*self._handlers.values(), *made]

    async def run(self, system: System) -> None:
        """Prepare, then work until `stop`. Cancelled, it gives back what it has in hand."""
        async with self.running(system):
            assert self._stopping is not None
            await self._stopping.wait()

    @asynccontextmanager
    async def running(self, system: System) -> AsyncIterator[None]:
        """Work while the block runs, then stop."""
        if self._stopping is not None:
            raise InvalidInput("this worker runs already")
        await self.prepare(system)
        self._stopping = anyio.Event()
        self._given_up = failure = None
        try:
            async with self.floor() as floor, anyio.create_task_group() as tasks:
                site = Site(system, system.clock, floor, self.holder, self._give_up_ms, self._give_up)
                self._crews = [Crew(handler, site) for handler in self.handlers()]
                for crew in self._crews:
                    tasks.start_soon(crew.run)
                try:
                    yield
                except Exception as error:  # noqa: BLE001 - raised below: here it would be wrapped in groups
                    failure = error
                finally:
                    for crew in self._crews:
                        crew.stop()
                    tasks.start_soon(self._end_after_grace, tasks)
        finally:
            self._crews = []
            self._stopping = None
        if reason := failure or self._given_up:
            raise reason

    @asynccontextmanager
    async def floor(self) -> AsyncIterator[Floor]:
        """Where handlers run, for as long as the block does."""
        threads = ThreadPoolExecutor(self._threads, thread_name_prefix="hq-worker")
        try:
            async with BlockingPortal() as portal:
                yield Floor(threads, Calls(portal))
        finally:
            # Not waited for: a thread cannot be stopped, and what it has in hand was given back.
            threads.shutdown(wait=False, cancel_futures=True)

    def stop(self) -> None:
        """Fetch no more, finish what is in hand, and let `run` return. Call it in the worker's loop."""
        if self._stopping is not None:
            self._stopping.set()

    def _give_up(self, error: HQError) -> None:
        self._given_up = error
        self.stop()

    def is_alive(self, within_ms: int = ALIVE_WITHIN_MS) -> bool:
        """Whether every handler has fetched lately, or has all it may hold; False if it does not run."""
        return bool(self._crews) and all(crew.idle_s() * 1_000 <= within_ms for crew in self._crews)

    async def _end_after_grace(self, tasks: TaskGroup) -> None:
        """Let handlers end by themselves, then cancel them, and do not wait for a store that is silent."""
        if not await self._ended_within(self._grace_ms / 1_000):
            for crew in self._crews:
                crew.give_up()
            if not await self._ended_within(GIVE_BACK_S):
                tasks.cancel_scope.cancel()

    async def _ended_within(self, seconds: float) -> bool:
        with anyio.move_on_after(seconds) as waiting:
            for crew in self._crews:
                await crew.ended.wait()
        return not waiting.cancelled_caught

    def _handled(self, source: Source, key: str, terms: TermsKeywords) -> Callable[[Handle], Handle]:
        if key in self._handlers:
            raise InvalidInput(f"there are two handlers for {key}")

        agreed = self.terms.changed(terms)

        def declare(call: Handle) -> Handle:
            self._handlers[key] = Handler.of(source, call, agreed)
            return call

        return declare


async def _make(system: System, name: str, settings: SettingsKeywords) -> None:
    try:
        await system.queue(name).settings()
    except QueueNotFound:
        try:
            await system.create_queue(name, **settings)
        except QueueExists:
            # Another worker made it just now.
            return
