"""A task: a function that is a job. Its arguments travel as one JSON object, checked on both sides."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Generic, ParamSpec, TypeVar, Unpack, get_type_hints

import msgspec

from hq.errors import InvalidInput, JobFailed, NotAttached, NotFinished
from hq.system.blocking import System as BlockingSystem
from hq.system.keywords import EnqueueKeywords, Outgoing
from hq.system.message import Message
from hq.system.payloads import JSON
from hq.system.queue import Queue
from hq.system.results import Accepted, Outcome, Settled
from hq.system.system import System
from hq.worker.verdicts import Fail

TASK_HEADER = "hq-task"

P = ParamSpec("P")
R = TypeVar("R")


class Attachment:
    """The system that the tasks of a worker are enqueued to, once it is known."""

    def __init__(self) -> None:
        self._system: System | BlockingSystem | None = None

    def attach(self, system: System | BlockingSystem) -> None:
        """From now on tasks go to this system."""
        self._system = system

    def queue(self, name: str) -> Queue:
        """A queue of the system."""
        if not isinstance(self._system, System):
            raise NotAttached
        return self._system.queue(name)

    def blocking_queue(self, name: str) -> Any:
        """A queue of the system, for threads."""
        if not isinstance(self._system, BlockingSystem):
            raise NotAttached
        return self._system.queue(name)


class Arguments:
    """The parameters of a function as a JSON object, each with the type its annotation says."""

    def __init__(self, call: Callable[..., Any]) -> None:
        self._call = call
        self._signature = inspect.signature(call)
        for parameter in self._signature.parameters.values():
            if parameter.kind in {parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD, parameter.POSITIONAL_ONLY}:
                raise InvalidInput(f"{call.__name__}: a task has named parameters, not {parameter}")

    @cached_property
    def _hints(self) -> dict[str, Any]:
        return get_type_hints(self._call, include_extras=True)

    @cached_property
    def _struct(self) -> type[msgspec.Struct]:
        # Only now: what an annotation names may be defined after the function.
        members: list[Any] = []
        for name, parameter in self._signature.parameters.items():
            hint = self._hints.get(name, Any)
            if parameter.default is parameter.empty:
                members.append((name, hint))
            else:
                members.append((name, hint | msgspec.UnsetType, msgspec.UNSET))
        name = self._call.__name__
        return msgspec.defstruct(name, members, kw_only=True, forbid_unknown_fields=True)

    @cached_property
    def _decoder(self) -> msgspec.json.Decoder[Any]:
        return msgspec.json.Decoder(self._struct)

    def encode(self, *args: object, **kwargs: object) -> bytes:
        """The arguments of a call, checked as the worker will check them."""
        try:
            given = self._signature.bind(*args, **kwargs).arguments
            body = msgspec.json.encode(given)
            self._decoder.decode(body)
        except (TypeError, ValueError, OverflowError, RecursionError) as error:
            raise InvalidInput(f"{self._call.__name__}: {error}") from None
        return body

    def decode(self, body: bytes) -> dict[str, Any]:
        """The arguments again, of the types the function wants; what does not fit will never fit."""
        try:
            values = self._decoder.decode(body)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise Fail(f"{self._call.__name__}: {error}") from None
        given = {name: getattr(values, name) for name in self._struct.__struct_fields__}
        return {name: value for name, value in given.items() if value is not msgspec.UNSET}

    def result(self, value: Any) -> Any:
        """What the function returned, from the JSON it was kept as."""
        return msgspec.convert(value, self._hints.get("return", Any))


@dataclass(frozen=True, slots=True)
class Job(Generic[R]):
    """A task that was enqueued; `duplicate` if one with its dedup key was there before."""

    id: str
    duplicate: bool
    _queue: Queue
    _arguments: Arguments

    async def outcome(self, *, wait_ms: int = 0) -> Outcome:
        """What became of it so far, waiting until it is over."""
        return await self._queue.outcome(self.id, wait_ms=wait_ms)

    async def result(self, *, wait_ms: int = 0) -> R:
        """What the function returned; JobFailed if it is a dead letter, NotFinished if it is not over."""
        outcome = await self.outcome(wait_ms=wait_ms)
        if outcome.state == "completed":
            returned: R = self._arguments.result(outcome.result)
            return returned
        if outcome.state == "failed":
            raise JobFailed(outcome.error or "")
        raise NotFinished


@dataclass(frozen=True, eq=False, repr=False)
class Task(Generic[P, R]):
    """A function that is a job: `enqueue` hands it to a worker, calling it runs it here and now."""

    call: Callable[P, Any]
    name: str
    queue: str
    arguments: Arguments
    _attachment: Attachment
    _options: EnqueueKeywords

    def __repr__(self) -> str:
        return f"<Task {self.name} of {self.queue}>"

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> Any:
        """Run the function itself."""
        return self.call(*args, **kwargs)

    def options(self, **options: Unpack[EnqueueKeywords]) -> Task[P, R]:
        """The same task with other options of `Queue.enqueue`: priority, delay_ms, dedup_key ..."""
        return replace(self, _options={**self._options, **options})

    def outgoing(self, *args: P.args, **kwargs: P.kwargs) -> Outgoing:
        """The message of a call, for `Queue.enqueue_many` and schedules."""
        body, options = self.message(*args, **kwargs)
        return Outgoing(body, **options)

    def message(self, *args: P.args, **kwargs: P.kwargs) -> tuple[bytes, EnqueueKeywords]:
        """The payload and the options of a call's message."""
        headers = {**(self._options.get("headers") or {}), TASK_HEADER: self.name}
        body = self.arguments.encode(*args, **kwargs)
        return body, {**self._options, "content_type": JSON, "headers": headers}

    async def enqueue(self, *args: P.args, **kwargs: P.kwargs) -> Job[R]:
        """Have a worker call it with these arguments."""
        body, options = self.message(*args, **kwargs)
        queue = self._attachment.queue(self.queue)
        accepted = await queue.enqueue(body, **options)
        return Job(accepted.id, accepted.duplicate, queue, self.arguments)

    def enqueue_blocking(self, *args: P.args, **kwargs: P.kwargs) -> Accepted:
        """The same from a thread, when the worker is attached to a system of hq.blocking."""
        body, options = self.message(*args, **kwargs)
        accepted: Accepted = self._attachment.blocking_queue(self.queue).enqueue(body, **options)
        return accepted

    async def replace(self, dedup_key: str, *args: P.args, **kwargs: P.kwargs) -> Settled:
        """Give the waiting job that holds a dedup key other arguments."""
        body = self.arguments.encode(*args, **kwargs)
        queue = self._attachment.queue(self.queue)
        return await queue.replace(dedup_key, body, group=self._options.get("group"))

    async def cancel(self, dedup_key: str) -> Settled:
        """Delete the job that holds a dedup key; one that is being done loses its lease and is cancelled."""
        queue = self._attachment.queue(self.queue)
        return await queue.delete_by_key(dedup_key, group=self._options.get("group"))


class Tasks:
    """The tasks of one queue: a message names its own, unless there is only one."""

    def __init__(self, queue: str) -> None:
        self.queue = queue
        self._by_name: dict[str, Task[Any, Any]] = {}

    def add(self, task: Task[Any, Any]) -> None:
        """One more; names are unique in a queue."""
        if task.name in self._by_name:
            raise InvalidInput(f"there are two tasks named {task.name!r} in {self.queue!r}")
        self._by_name[task.name] = task

    def of(self, message: Any) -> tuple[Task[Any, Any], dict[str, Any]]:
        """The task of a message and its arguments; Fail if it has none here or they do not fit."""
        name = message.headers.get(TASK_HEADER)
        if name is None and len(self._by_name) == 1:
            [name] = self._by_name
        task = self._by_name.get(name)
        if task is None:
            # Not Fail: a worker of a newer version may know it.
            raise LookupError(f"this worker has no task named {name!r} in {self.queue!r}")
        return task, task.arguments.decode(message.body)

    @property
    def is_async(self) -> bool:
        """Whether any of them is awaited; then those that are not cannot be in the same queue."""
        kinds = {inspect.iscoroutinefunction(task.call) for task in self._by_name.values()}
        if len(kinds) != 1:
            raise InvalidInput(f"the tasks of {self.queue!r} are all `async def` or all `def`")
        return kinds.pop()

    async def call(self, message: Message) -> Any:
        """Handle a message of the queue."""
        task, arguments = self.of(message)
        return await task.call(**arguments)

    def call_in_thread(self, message: Any) -> Any:
        """The same in a thread."""
        task, arguments = self.of(message)
        return task.call(**arguments)
