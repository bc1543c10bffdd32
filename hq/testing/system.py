"""A whole system in memory for the tests of an application: time stands still, chance repeats itself."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import hq.system.open
from hq.system.message import Message
from hq.system.queue import Queue
from hq.system.seen import SeenMessage
from hq.system.system import System
from hq.testing.chance import SeededChance
from hq.testing.clock import FrozenClock
from hq.worker.crew import settle
from hq.worker.handlers import attempt
from hq.worker.worker import Worker

Handle = Callable[[Message], Awaitable[Any]]
SHOWN = 3


@dataclass(frozen=True, slots=True)
class Handled:
    """One attempt of a worker: `completed`, `retried`, `failed` or `released`, and its error if any."""

    message: Message
    verdict: str
    error: str | None


@asynccontextmanager
async def memory_system(clock: FrozenClock | None = None, seed: int = 0) -> AsyncIterator[System]:
    """A system that keeps nothing; give it a clock to move its time."""
    async with hq.system.open.open(
        "memory:", clock=clock or FrozenClock(), chance=SeededChance(seed)
    ) as system:
        yield system


async def drain(queue: Queue, handle: Handle, limit: int = 1_000) -> list[Message]:
    """Hand every message that is ready to `handle`, until none is or `limit` were; each completes.

    If `handle` raises, the message is retried, and the error comes out: a test should see it.
    """
    handled: list[Message] = []
    while len(handled) < limit and (messages := await queue.receive()):
        for message in messages:
            async with message:
                await handle(message)
            handled.append(message)
    return handled


async def drain_worker(worker: Worker, system: System, limit: int = 1_000) -> list[Handled]:
    """Run a worker's handlers on all that is ready, one message after the other, until none is left.

    The handlers are asked in turn, in the order of their declaration, so a test sees the same story every
    time. What each attempt came to is told, not raised.
    """
    await worker.prepare(system)
    handlers = worker.handlers()
    done: list[Handled] = []
    async with worker.floor() as floor:
        found = True
        while found and len(done) < limit:
            found = False
            for handler in handlers:
                source, terms = handler.source, handler.terms
                for message in await source.receive(system, 1, 0, terms.lease_ms, worker.holder):
                    found = True
                    verdict = await attempt(handler, message, floor)
                    await settle(message, verdict)
                    done.append(
                        Handled(message, type(verdict).__name__.lower(), getattr(verdict, "error", None))
                    )
    return done


async def assert_enqueued(queue: Queue, **expected: object) -> SeenMessage:
    """The first message that waits or is leased and has these attributes (payload, priority, group ...)."""
    seen = await queue.browse(limit=1_000)
    for message in seen:
        if not _differences(message, expected):
            return message
    raise AssertionError(_told(queue, expected, seen))


async def assert_not_enqueued(queue: Queue, **expected: object) -> None:
    """No message that waits or is leased has these attributes."""
    for message in await queue.browse(limit=1_000):
        assert _differences(message, expected), f"{queue.name} has a message with {_shown(expected)}"


async def assert_empty(queue: Queue) -> None:
    """Nothing waits and nothing is leased."""
    seen = await queue.browse(limit=10)
    there = ", ".join(repr(message.payload) for message in seen)
    assert not seen, f"{queue.name} is not empty; there is {there}"


def _told(queue: Queue, expected: dict[str, object], seen: list[SeenMessage]) -> str:
    """What was wanted, and how the messages that come closest differ from it."""
    lines = [f"{queue.name} has no message with {_shown(expected)}"]
    if not seen:
        lines.append("  there is nothing in it")
    closest = sorted(seen, key=lambda message: len(_differences(message, expected)))
    for message in closest[:SHOWN]:
        lines.append(f"  message {message.id} is {message.state} and differs:")
        lines += [f"    {name}: {value!r}" for name, value in _differences(message, expected).items()]
    if len(seen) > SHOWN:
        lines.append(f"  and {len(seen) - SHOWN} more")
    return "\n".join(lines)


def _differences(message: SeenMessage, expected: dict[str, object]) -> dict[str, object]:
    values = {name: getattr(message, name) for name in expected}
    return {name: value for name, value in values.items() if value != expected[name]}


def _shown(expected: dict[str, object]) -> str:
    return ", ".join(f"{name}={value!r}" for name, value in expected.items())
