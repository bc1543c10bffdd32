"""The crew of one handler: fetches, handles, renews leases, settles, all bounded by what it may hold.

A message is in hand from its receive until the queue has said what became of it. Those of one group are
handled one after the other; if one is not done, those behind it go back, so that none overtakes it.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import deque
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import anyio

from hq.actors.clock import Clock
from hq.domain.settings import Groups
from hq.errors import Closed, HQError, InvalidInput
from hq.system.lease import LOST as LOST_ERRORS
from hq.system.message import Message
from hq.system.system import System
from hq.worker.handlers import Floor, Handler, attempt
from hq.worker.verdicts import DONE, LOST, RELEASED, Completed, Failed, Lost, Released, Retried, Verdict

log = logging.getLogger("hq.worker")

FIRST_PAUSE_S = 0.1
LONGEST_PAUSE_S = 5.0
GIVE_BACK_S = 5.0
Group = tuple[str, str]
LEASED = "leased"
# What a handler may have said itself that lets the next of a group come.
ENDED = frozenset({"completed", "failed"})
# What a queue will answer again, however often it is asked.
FINAL = (*LOST_ERRORS, Closed, InvalidInput)


@dataclass(frozen=True, slots=True)
class Site:
    """What all crews of a running worker share."""

    system: System
    clock: Clock
    floor: Floor
    holder: str
    give_up_ms: int | None
    given_up: Callable[[HQError], None]


async def settle(message: Message, verdict: Verdict) -> None:
    """Tell the queue of a message how an attempt ended, unless the handler has told it."""
    if message.state != LEASED:
        return
    match verdict:
        case Completed(result):
            await message.complete(result=result)
        case Retried(error, delay_ms):
            await message.retry(delay_ms=delay_ms, error=error)
        case Failed(error):
            await message.fail(error=error)
        case Released():
            await message.release()
        case Lost():
            pass


class InHand:
    """A message in hand, and how far it got."""

    __slots__ = ("group", "message", "renew_at", "scope", "settling", "unheard", "verdict")

    def __init__(self, message: Message, group: Group | None, now: int) -> None:
        self.message = message
        self.group = group
        self.scope: anyio.CancelScope | None = None
        self.verdict: Verdict | None = None
        self.settling = False
        self.unheard = False
        self.plan(now)

    def plan(self, now: int) -> None:
        """Renew its lease when a third of what is left of it has passed."""
        self.renew_at = now + max(1, (self.message.lease_expires_at - now) // 3)


class Ready:
    """What waits for a hand. One hand is woken at a time, and wakes the next if more is left.

    So handlers that do not wait are run one after the other by one hand, and no other wakes up for nothing.
    """

    def __init__(self) -> None:
        self._waiting: deque[InHand] = deque()
        self._hands: deque[asyncio.Future[None]] = deque()
        self._woken: asyncio.Future[None] | None = None

    def __bool__(self) -> bool:
        return bool(self._waiting)

    def put(self, held: InHand) -> None:
        """Add one."""
        self._waiting.append(held)
        self._wake()

    def take(self) -> InHand:
        """The first there is."""
        return self._waiting.popleft()

    async def next(self) -> InHand:
        """The first there is, waited for."""
        while not self._waiting:
            hand = asyncio.get_running_loop().create_future()
            self._hands.append(hand)
            try:
                await hand
            except asyncio.CancelledError:
                self._leave(hand)
                raise
            self._woken = None
        held = self._waiting.popleft()
        if self._waiting:
            self._wake()
        return held

    def _leave(self, hand: asyncio.Future[None]) -> None:
        """A hand waits no more; what it was woken for is another's."""
        if self._woken is hand:
            self._woken = None
            if self._waiting:
                self._wake()
        else:
            self._hands.remove(hand)

    def _wake(self) -> None:
        if self._woken is None and self._hands:
            self._woken = self._hands.popleft()
            self._woken.set_result(None)


class Crew:
    """Works for one handler until it is stopped; `run` returns when nothing is in hand any more."""

    def __init__(self, handler: Handler, site: Site) -> None:
        self._handler = handler
        self._site = site
        self._room = handler.terms.concurrency + handler.terms.prefetch
        self._held: set[InHand] = set()
        self._ready = Ready()
        self._behind: dict[Group, deque[InHand]] = {}
        self._groups: dict[str, Groups] = {}
        self._done: list[InHand] = []
        self._settle = asyncio.Event()
        self._changed = asyncio.Event()
        self._polling = anyio.CancelScope()
        self._nap = anyio.CancelScope()
        self._wakes_at: int | None = None
        self._stopping = False
        self._fetched_at = time.monotonic()
        self.ended = anyio.Event()

    async def run(self) -> None:
        """Fetch and handle until stopped; cancelled, it gives back what it has."""
        try:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(self._settle_all)
                tasks.start_soon(self._keep)
                for _ in range(self._handler.terms.concurrency):
                    tasks.start_soon(self._work)
                await self._fetch_all()
                while self._held:
                    await self._change()
                tasks.cancel_scope.cancel()
        finally:
            self.ended.set()
            if self._held:
                with anyio.move_on_after(GIVE_BACK_S, shield=True):
                    await self._tell_all([self._ended(held, held.verdict or RELEASED) for held in self._held])

    def stop(self) -> None:
        """Fetch no more, give back what nobody has begun; what is begun goes on."""
        self._stopping = True
        self._polling.cancel()
        self._changed.set()
        while self._ready:
            self._finish(self._ready.take(), RELEASED)

    def give_up(self) -> None:
        """End what is still being handled, without blame."""
        self._cancel(self._held, RELEASED)

    def idle_s(self) -> float:
        """How long ago it last fetched; 0 if it has all it may hold."""
        full = len(self._held) >= self._room
        return 0.0 if full or self._stopping else time.monotonic() - self._fetched_at

    async def _fetch_all(self) -> None:
        pause_s, failing_since = FIRST_PAUSE_S, None
        while not self._stopping:
            if len(self._held) >= self._room:
                await self._change()
                continue
            try:
                await self._fetch()
                pause_s, failing_since = FIRST_PAUSE_S, None
            except Closed:
                self.stop()
            except HQError as error:
                now = self._site.clock.now
                if failing_since is None:
                    failing_since = now
                    told = {"source": self._handler.source.name, "code": error.code}
                    log.warning("a worker cannot fetch and goes on trying", extra=told)
                if self._site.give_up_ms is not None and now - failing_since >= self._site.give_up_ms:
                    self._site.given_up(error)
                    self.stop()
                await self._pause(pause_s)
                pause_s = min(2 * pause_s, LONGEST_PAUSE_S)

    async def _fetch(self) -> None:
        site, source = self._site, self._handler.source
        began = time.monotonic()
        messages: list[Message] = []
        with anyio.CancelScope() as self._polling:
            messages = await source.receive(
                site.system,
                self._room - len(self._held),
                source.poll_ms,
                self._handler.terms.lease_ms,
                site.holder,
            )
        self._fetched_at = time.monotonic()
        for message in messages:
            if message.queue.name not in self._groups:
                await self._learn(message)
            self._take(message)
        # A prefix with no queue below it has nothing to wait for.
        if not messages and time.monotonic() - began < FIRST_PAUSE_S and not self._stopping:
            await self._pause(FIRST_PAUSE_S)

    async def _pause(self, seconds: float) -> None:
        with anyio.move_on_after(seconds):
            while not self._stopping:
                await self._change()

    def _take(self, message: Message) -> None:
        held = InHand(message, self._group(message), self._site.clock.now)
        self._held.add(held)
        if self._wakes_at is None or held.renew_at < self._wakes_at:
            self._nap.cancel()
        if self._stopping:
            self._finish(held, RELEASED)
        elif held.group is not None and held.group in self._behind:
            self._behind[held.group].append(held)
        else:
            if held.group is not None:
                self._behind[held.group] = deque()
            self._ready.put(held)

    async def _learn(self, message: Message) -> None:
        """What groups mean in the queue of a message."""
        with suppress(HQError):
            self._groups[message.queue.name] = (await message.queue.settings()).groups

    def _group(self, message: Message) -> Group | None:
        """The group whose order the message is in, if it is in one."""
        queue, group = message.queue.name, message.group
        kind = self._groups.get(queue, Groups.ORDERED)
        if group is None and kind is Groups.FIFO:
            group = ""
        return None if group is None or kind is Groups.LABEL else (queue, group)

    async def _work(self) -> None:
        """One of the hands: as many as may handle at once.

        A scope for each attempt would cost as much as all else that is done for it, so a hand makes a new one
        only when the last was cancelled.
        """
        handler, floor = self._handler, self._site.floor
        while True:
            held: InHand | None = None
            with anyio.CancelScope() as scope:
                while not scope.cancel_called:
                    held = None
                    held = await self._ready.next()
                    verdict = held.verdict
                    if verdict is None:
                        held.scope = scope
                        verdict = await attempt(handler, held.message, floor)
                        # A handler that ended before it could be cancelled is believed, unless the lease
                        # is lost.
                        if held.verdict is LOST:
                            verdict = LOST
                        elif held.message.state != LEASED:
                            verdict = DONE if held.message.state in ENDED else RELEASED
                    self._finish(held, verdict)
                    held = None
            if held is not None:
                self._finish(held, held.verdict or RELEASED)

    def _finish(self, held: InHand, verdict: Verdict) -> None:
        """An attempt has ended: tell the queue, and let the next of its group come."""
        if isinstance(verdict, Retried | Failed):
            told = {"queue": held.message.queue.name, "message_id": held.message.id}
            headline = verdict.error.partition("\n")[0]
            log.warning("an attempt went wrong", extra={**told, "error": headline})
        self._done.append(self._ended(held, verdict))
        self._settle.set()
        if held.group is None:
            return
        behind = self._behind.get(held.group)
        if behind is None:
            return
        if behind and isinstance(verdict, Completed | Failed) and not self._stopping:
            self._ready.put(behind.popleft())
            return
        del self._behind[held.group]
        self._done += [self._ended(other, RELEASED) for other in behind]

    @staticmethod
    def _ended(held: InHand, verdict: Verdict) -> InHand:
        held.scope = None
        held.verdict = verdict
        return held

    async def _settle_all(self) -> None:
        """Tell the queues what became of messages, all that gathered meanwhile at once."""
        while True:
            await self._settle.wait()
            self._settle.clear()
            done, self._done = self._done, []
            await self._tell_all(done)
            again = [held for held in done if held in self._held]
            if again:
                self._done += again
                await anyio.sleep(FIRST_PAUSE_S)
                self._settle.set()

    async def _tell_all(self, done: list[InHand]) -> None:
        """What is not held any more was told; what could not be told is still held."""
        plain: dict[str, list[InHand]] = {}
        async with anyio.create_task_group() as tasks:
            for held in done:
                held.settling = True
                if held.message.state != LEASED:
                    self._told(held, None)
                elif isinstance(held.verdict, Completed) and held.verdict.result is None:
                    plain.setdefault(held.message.queue.name, []).append(held)
                else:
                    tasks.start_soon(self._tell, held)
            for batch in plain.values():
                tasks.start_soon(self._complete, batch)

    async def _complete(self, batch: list[InHand]) -> None:
        messages = [held.message for held in batch]
        try:
            told: list[Any] = await messages[0].queue.complete(messages)
        except HQError as error:
            told = [error] * len(batch)
        for held, answer in zip(batch, told, strict=True):
            self._told(held, answer if isinstance(answer, HQError) else None)

    async def _tell(self, held: InHand) -> None:
        refusal: HQError | None = None
        try:
            await settle(held.message, held.verdict or RELEASED)
        except HQError as error:
            refusal = error
        self._told(held, refusal)

    def _told(self, held: InHand, refusal: HQError | None) -> None:
        """The queue has answered; only what may still be told later stays in hand."""
        held.settling = False
        if refusal is not None:
            told = {"queue": held.message.queue.name, "message_id": held.message.id, "code": refusal.code}
            if not isinstance(refusal, FINAL):
                if not held.unheard:
                    log.warning("a queue could not be told how an attempt ended; again soon", extra=told)
                held.unheard = True
                return
            log.warning("how an attempt ended was refused", extra=told)
        self._held.discard(held)
        self._changed.set()

    async def _keep(self) -> None:
        """Renew each lease when a third of it has passed, as long as its message is in hand."""
        clock = self._site.clock
        while True:
            await self._renew([held for held in self._held if held.renew_at <= clock.now])
            self._wakes_at = min((held.renew_at for held in self._held), default=None)
            with anyio.CancelScope() as self._nap:
                if self._wakes_at is None:
                    await anyio.sleep_forever()
                else:
                    await clock.until(self._wakes_at)

    async def _renew(self, due: list[InHand]) -> None:
        by_queue: dict[str, list[InHand]] = {}
        for held in due:
            held.plan(self._site.clock.now)
            if not held.settling and not isinstance(held.verdict, Lost):
                by_queue.setdefault(held.message.queue.name, []).append(held)
        async with anyio.create_task_group() as tasks:
            for batch in by_queue.values():
                tasks.start_soon(self._extend, batch)

    async def _extend(self, batch: list[InHand]) -> None:
        messages = [held.message for held in batch]
        try:
            told: list[Any] = await messages[0].queue.extend(messages, self._handler.terms.lease_ms)
        except HQError as error:
            told = [error] * len(batch)
        now = self._site.clock.now
        for held, answer in zip(batch, told, strict=True):
            # Storage may have a bad moment: our own clock says how long it is worth trying again.
            ended = isinstance(answer, LOST_ERRORS) or held.message.lease_expires_at <= now
            if isinstance(answer, HQError) and ended and not held.settling:
                self._cancel([held], LOST)
            held.plan(now)

    def _cancel(self, several: Iterable[InHand], verdict: Verdict) -> None:
        for held in several:
            held.verdict = held.verdict or verdict
            if held.scope is not None:
                held.scope.cancel()

    async def _change(self) -> None:
        self._changed.clear()
        await self._changed.wait()
