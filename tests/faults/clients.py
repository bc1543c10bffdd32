"""Producers and consumers that write down everything they ask and are told.

What the server's clock said follows from the answers: a lease of so many milliseconds that ends then was
granted so long before, and the same holds for an extend and for a retry with a delay of its own.
"""

from collections.abc import Awaitable
from random import Random
from typing import TypeVar

import hq
from hq.domain.ids import MessageId
from hq.domain.settings import Groups, Settings
from tests.checkers.history import Asked, Recorder, Told, fingerprint

Answer = TypeVar("Answer")

# Short leases, so that many end by themselves and some outlive their process.
LEASES_MS = (40, 400, 1_500)
WAIT_MS = 50

QUEUES = {
    "plain": Settings(dedup_ms=60_000),
    "groups": Settings(max_attempts=3),
    "fifo": Settings(groups=Groups.FIFO),
    "narrow": Settings(concurrency=3, capacity=40, max_attempts=None),
}


class Unanswered(Exception):
    """The call was refused or its outcome is unknown; it is written down."""


class Client:
    """One task that asks one thing after another, of any queue."""

    def __init__(self, name: str, system: hq.System, recorder: Recorder, random: Random) -> None:
        self.name = name
        self.random = random
        self.queues = {queue: system.queue(queue) for queue in QUEUES}
        self.recorder = recorder

    async def produce(self) -> None:
        """Enqueue for ever."""
        number = 0
        while True:
            number += 1
            await self.enqueue(self.any_queue(), f"{self.name} {number}".encode())

    async def consume(self) -> None:
        """Receive and settle for ever."""
        while True:
            queue = self.any_queue()
            lease_ms = self.random.choice(LEASES_MS)
            for message in await self.receive(queue, self.random.choice((1, 1, 5)), lease_ms, WAIT_MS):
                await self.work_on(queue, message)

    async def work_on(self, queue: str, message: hq.Message) -> None:
        """Mostly complete it; sometimes anything else one may do, or nothing."""
        verb = self.random.choices(
            ("complete", "retry", "release", "fail", "extend", "forget"), (70, 7, 7, 4, 7, 5)
        )[0]
        if verb == "extend":
            await self.extend(queue, message, self.random.choice((0, *LEASES_MS)))
            verb = "complete"
        if verb == "retry":
            await self.retry(queue, message, self.random.choice((0, 20)))
        elif verb != "forget":
            await self.settle(verb, queue, message)

    async def enqueue(self, queue: str, payload: bytes) -> None:
        said = {
            "priority": self.random.choice((None, None, None, 1, 9)),
            "group": self.random.choice("abc") if queue in {"groups", "fifo"} else None,
            "dedup_key": str(self.random.randrange(50)) if queue == "plain" and self.one_in(4) else None,
            "delay_ms": self.random.choice((0, 30)) if self.one_in(8) else None,
            "ttl_ms": 300 if self.one_in(20) else None,
        }
        key = self.recorder.invoke(self.name, "enqueue", queue, Asked(payload=fingerprint(payload), **said))
        try:
            accepted = await self.answer(key, self.queues[queue].enqueue(payload, **said))
        except Unanswered:
            return
        told = Told(accepted.id, sequence=sequence_of(accepted.id), duplicate=accepted.duplicate)
        self.recorder.ok(key, [told])

    async def receive(self, queue: str, limit: int, lease_ms: int, wait_ms: int) -> list[hq.Message]:
        key = self.recorder.invoke(self.name, "receive", queue, Asked(limit=limit, lease_ms=lease_ms))
        asked = self.queues[queue].receive(limit, wait_ms=wait_ms, lease_ms=lease_ms)
        try:
            messages = await self.answer(key, asked)
        except Unanswered:
            return []
        at = messages[0].lease_expires_at - lease_ms if messages else None
        self.recorder.ok(key, [told_of(message) for message in messages], at)
        return messages

    async def settle(self, verb: str, queue: str, message: hq.Message) -> None:
        """Complete, fail or release: the answer tells no time."""
        key = self.recorder.invoke(self.name, verb, queue, held(message))
        try:
            await self.answer(key, getattr(message, verb)())
        except Unanswered:
            return
        self.recorder.ok(key, [Told(message.id)])

    async def retry(self, queue: str, message: hq.Message, delay_ms: int) -> None:
        key = self.recorder.invoke(self.name, "retry", queue, held(message, delay_ms=delay_ms))
        try:
            settled = await self.answer(key, message.retry(delay_ms=delay_ms))
        except Unanswered:
            return
        self.recorder.ok(key, [Told(message.id, until=settled.until)])

    async def extend(self, queue: str, message: hq.Message, lease_ms: int) -> None:
        key = self.recorder.invoke(self.name, "extend", queue, held(message, lease_ms=lease_ms))
        try:
            settled = await self.answer(key, message.extend(lease_ms))
        except Unanswered:
            return
        self.recorder.ok(key, [Told(message.id, lease_expires_at=settled.until)], settled.until - lease_ms)

    async def answer(self, key: str, asked: Awaitable[Answer]) -> Answer:
        """The answer; else write down that there is none. Only a caller's error certainly changed nothing."""
        try:
            return await asked
        except hq.CallerError as refusal:
            self.recorder.refused(key, refusal.code)
            raise Unanswered from refusal
        except hq.HQError as error:
            self.recorder.unknown(key, error.code)
            raise Unanswered from error

    def any_queue(self) -> str:
        return self.random.choice(list(QUEUES))

    def one_in(self, count: int) -> bool:
        return self.random.randrange(count) == 0


def held(message: hq.Message, **said) -> Asked:
    """A message as its holder names it."""
    return Asked(message=message.id, token=fingerprint(message.token), **said)


def told_of(message: hq.Message) -> Told:
    """A delivery as a history keeps it."""
    return Told(
        message.id,
        sequence=sequence_of(message.id),
        token=fingerprint(message.token),
        receives=message.receives,
        attempts=message.attempts,
        lease_expires_at=message.lease_expires_at,
        payload=fingerprint(message.body),
        group=message.group,
        priority=message.priority,
        dedup_key=message.dedup_key,
        enqueued_at=message.enqueued_at,
        origin_id=message.origin_id,
    )


def sequence_of(message_id: str) -> int:
    """The sequence an id carries, which is the order of enqueues."""
    return MessageId.parse(message_id).sequence
