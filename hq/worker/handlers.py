"""A handler: which messages it is for, on which terms, and one attempt of it."""

from __future__ import annotations

import asyncio
import contextvars
import functools
import inspect
from collections.abc import Awaitable, Callable
from concurrent.futures import Executor
from dataclasses import dataclass, replace
from typing import Any, Protocol, TypedDict

import anyio
import msgspec

from hq.domain.commands import MAX_RECEIVE
from hq.domain.messages import MAX_RESULT_BYTES
from hq.domain.settings import MAX_LEASE_MS, MAX_SPAN_MS, in_range, optional_in_range
from hq.system.blocking import Message as BlockingMessage
from hq.system.blocking import Queue as BlockingQueue
from hq.system.blocking.calls import Calls
from hq.system.keywords import check_known
from hq.system.message import Message
from hq.system.system import System
from hq.worker.verdicts import DONE, Completed, Failed, Retried, Verdict, verdict_of

_current: contextvars.ContextVar[Any] = contextvars.ContextVar("hq_message")


def current_message() -> Any:
    """The message that is being handled: an hq.Message, or in a plain function its blocking face."""
    return _current.get()


class TermsKeywords(TypedDict, total=False):
    """What may be said of a handler; what is left out is the worker's to say."""

    concurrency: int
    prefetch: int
    lease_ms: int | None
    timeout_ms: int | None
    max_crashes: int | None


@dataclass(frozen=True, slots=True)
class Terms:
    """How many messages are handled at once, how many more are held ready, and for how long each."""

    concurrency: int = 10
    prefetch: int = 0
    lease_ms: int | None = None
    timeout_ms: int | None = None
    max_crashes: int | None = None

    def __post_init__(self) -> None:
        in_range("concurrency", self.concurrency, 1, MAX_RECEIVE)
        in_range("prefetch", self.prefetch, 0, MAX_RECEIVE)
        optional_in_range("lease_ms", self.lease_ms, 1, MAX_LEASE_MS)
        optional_in_range("timeout_ms", self.timeout_ms, 1, MAX_SPAN_MS)
        optional_in_range("max_crashes", self.max_crashes, 1, 10)

    def changed(self, changes: TermsKeywords) -> Terms:
        """These terms with some of them changed."""
        check_known(changes, TermsKeywords.__annotations__)
        return replace(self, **changes)


class Source(Protocol):
    """Where the messages of a handler come from."""

    name: str
    poll_ms: int

    async def receive(
        self, system: System, limit: int, wait_ms: int, lease_ms: int | None, holder: str
    ) -> list[Message]:
        """Take up to so many messages, waiting for the first."""


class OneQueue:
    """The messages of one queue."""

    poll_ms = 5_000

    def __init__(self, name: str) -> None:
        self.name = name

    async def receive(
        self, system: System, limit: int, wait_ms: int, lease_ms: int | None, holder: str
    ) -> list[Message]:
        """Take up to so many messages out of the queue."""
        return await system.queue(self.name).receive(limit, wait_ms=wait_ms, lease_ms=lease_ms, holder=holder)


class AllUnder:
    """The messages of all queues at or below a prefix."""

    # A receive over a prefix does not hear of queues that are made while it waits.
    poll_ms = 1_000

    def __init__(self, prefix: str) -> None:
        self.name = prefix

    async def receive(
        self, system: System, limit: int, wait_ms: int, lease_ms: int | None, holder: str
    ) -> list[Message]:
        """Take up to so many messages out of one of the queues."""
        return await system.receive_under(self.name, limit, wait_ms=wait_ms, lease_ms=lease_ms, holder=holder)


class Floor:
    """Where handlers run: the event loop, and threads for those that would block it."""

    def __init__(self, threads: Executor, calls: Calls) -> None:
        self.threads = threads
        self.calls = calls


@dataclass(frozen=True, slots=True)
class Handler:
    """A callable for messages, the source they come from, and the terms."""

    source: Source
    call: Callable[[Any], Any]
    terms: Terms
    is_async: bool

    @classmethod
    def of(cls, source: Source, call: Callable[[Any], Any], terms: Terms) -> Handler:
        """A handler; whether it is awaited or run in a thread is seen from the callable."""
        return cls(source, call, terms, inspect.iscoroutinefunction(call))


async def attempt(handler: Handler, message: Message, floor: Floor) -> Verdict:
    """Handle one message; whatever the handler raises is a verdict. Cancellation goes on to the caller."""
    terms = handler.terms
    if terms.max_crashes is not None and (crashes := crashes_of(message)) >= terms.max_crashes:
        return Failed(f"{crashes} attempts ended by themselves: whoever had it died, or lost touch")
    try:
        if terms.timeout_ms is None:
            value = await _call(handler, message, floor)
        else:
            value = None
            with anyio.move_on_after(terms.timeout_ms / 1_000) as scope:
                value = await _call(handler, message, floor)
            if scope.cancelled_caught:
                return Retried(f"TimeoutError: the handler took longer than {terms.timeout_ms} ms")
    except Exception as error:  # noqa: BLE001 - a handler may raise anything
        return verdict_of(error)
    return DONE if message.result_ms is None else _with_result(value)


def crashes_of(message: Message) -> int:
    """How many of its last attempts ended by themselves: nobody said what became of them."""
    return sum(past.outcome == "lapsed" for past in message.history)


def _with_result(value: object) -> Verdict:
    """Completed, with what the handler returned; one that cannot be kept would fail again and again."""
    try:
        result = msgspec.json.encode(value)
    except (TypeError, ValueError, OverflowError, RecursionError) as error:
        return Failed(f"the work is done, but its result is no JSON value: {error}")
    if len(result) > MAX_RESULT_BYTES:
        return Failed(f"the work is done, but its result is larger than {MAX_RESULT_BYTES} bytes")
    return Completed(msgspec.json.decode(result))


def _call(handler: Handler, message: Message, floor: Floor) -> Awaitable[Any]:
    if handler.is_async:
        _current.set(message)
        result: Awaitable[Any] = handler.call(message)
        return result
    queue = BlockingQueue(message.queue, floor.calls)
    blocking = BlockingMessage(message, queue, floor.calls)
    context = contextvars.copy_context()
    context.run(_current.set, blocking)
    # The executor's own bound, not anyio's: a thread whose caller was cancelled still takes its place.
    return asyncio.get_running_loop().run_in_executor(
        floor.threads, functools.partial(context.run, handler.call, blocking)
    )
