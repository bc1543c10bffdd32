"""The queue actor: take, decide and apply, append, reply. Here and nowhere else.

It drains its mailbox, decides every command against its own state and hands all events over as one append.
At most one append is in flight; the next batch is decided meanwhile, and memory runs ahead of the disk.
Nobody is told anything the disk does not have: replies, refusals, reads and empty receives alike wait for the
append before them. What wrote nothing, with no append under way, is answered while the queue is
certainly still this node's.

If an append ends in anything but durable, this life of the actor is over: whoever is owed an answer gets one
(unknown stays unknown, the rest certainly did not happen), what was decided behind it is withdrawn with it,
and a new life loads from the backend and claims the queue before it serves. Commands not yet decided and
receives that wait are kept for the new life.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict, deque
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any

from hq.actors.intake import Intake
from hq.actors.limits import MESSAGE_BYTES
from hq.actors.mailbox import Envelope, Mailbox
from hq.actors.services import Services
from hq.actors.upkeep import Upkeep
from hq.backends.port import Batch, Ending, InboxRow
from hq.domain.apply import apply
from hq.domain.commands import Claim, Command, Enqueue, Receive, Release
from hq.domain.decide import decide
from hq.domain.events import Event
from hq.domain.fetching import absorb, needs
from hq.domain.loading import load, mentioned, replay
from hq.domain.lookups import Found, FoundRows, Lookup
from hq.domain.replies import AGAIN, Delivery, Needs
from hq.domain.state import QueueState
from hq.errors import CallerError, HQError, MemoryFull, NotOwner, NotStored, OutcomeUnknown, Overloaded

TAIL_EVENTS = 10_000
VAIN_ROUNDS = 2
"""How often memory may be made room in for an enqueue that finds none before it is refused."""


class LifeLost(Exception):
    """An append did not end well: load again."""

    def __init__(self, ending: Ending) -> None:
        super().__init__(ending.value)
        self.ending = ending


class AskedTwice(Exception):
    """The rules want what they were just given: memory and storage disagree, so this life must end."""


class Draft:
    """What was decided and is not handed over yet: events, and who is owed which reply."""

    __slots__ = ("events", "owed", "size", "taken")

    def __init__(self) -> None:
        self.events: list[Event] = []
        self.owed: list[tuple[Envelope, Any]] = []
        self.size = 0
        self.taken: list[int] = []
        """The rows of the inbox that the events deal with."""


class QueueActor:
    """One queue and its mailbox; `begin` and `serve` are one life of it."""

    def __init__(self, number: int, services: Services) -> None:
        self.number = number
        self.services = services
        self.mailbox = Mailbox(services.limits.mailbox, self.notify)
        self.waiters: OrderedDict[Envelope, None] = OrderedDict()
        """Receives that wait for messages, in the order they came."""
        self.listeners: set[Callable[[], None]] = set()
        self.own: deque[Command] = deque()
        """Commands of the actor to itself: nobody waits for their replies."""
        self.state: QueueState
        self.upkeep: Upkeep
        self.intake = Intake(self)
        self.durable = 0
        self.stopping = False
        self.patient = True
        """Whether a receive may wait for messages."""
        self._signal = asyncio.Event()
        self._draft = Draft()
        self._flight: Draft | None = None
        self._lost: Ending | None = None
        # The round of the budget in which an enqueue first found no room.
        self._short_since: int | None = None

    def notify(self) -> None:
        """There is something to do."""
        self._signal.set()

    def stop(self) -> None:
        """Finish what was accepted, write a checkpoint and end."""
        self.stopping = True
        for listener in list(self.listeners):
            listener()
        self.notify()

    def leave(self, envelope: Envelope) -> None:
        """Take a receive that was given up out of the line."""
        if envelope in self.waiters:
            del self.waiters[envelope]
            self.notify()

    def end_waits(self) -> None:
        """Answer who waits for messages, now and from now on: with nothing, unless some are on their way."""
        self.patient = False
        self.notify()

    async def begin(self) -> None:
        """Load the queue and claim it: only a durable claim shows that nobody else writes it."""
        backend, limits = self.services.backend, self.services.limits
        loaded = await backend.load(self.number)
        self.state = state = load(loaded.snapshot, loaded.leases, limits.head)
        mark = state.sequence
        while events := await backend.tail(self.number, state.sequence, TAIL_EVENTS):
            lookups = mentioned(events)
            if lookups:
                await self._fetch(lookups)
            replay(state, events)
        state.has_inbox = backend.has_inbox
        self.upkeep = Upkeep(self, mark)
        self._draft, self._flight, self._lost = Draft(), None, None
        await self._reply(Claim(state.epoch + 1))
        self._send()
        while self._is_writing:
            self._signal.clear()
            await self._signal.wait()
            self._check_lost()
        if self.intake.has_ended:
            # Only now is it known what the life before took from the inbox.
            self.intake = Intake(self)
        # What the life before could not tell may have happened.
        self.services.outcomes.stir(self.number)

    async def serve(self) -> None:
        """Work until stopped or asleep; raises LifeLost, with everyone owed an answer answered."""
        try:
            while True:
                self._signal.clear()
                self._check_lost()
                await self._work()
                self._send()
                if self.upkeep.may_end() and await self.upkeep.ended():
                    return
                self.upkeep.set_timer()
                if self._signal.is_set():
                    await asyncio.sleep(0)  # an actor with much to do is not alone
                await self._signal.wait()
        except LifeLost as lost:
            self._withdraw(lost.ending)
            raise
        except BaseException:
            self._withdraw(Ending.UNKNOWN)
            raise

    @property
    def busy(self) -> bool:
        """Whether anything is decided, under way or waiting to be decided."""
        return bool(self._flight or self._draft.owed or self._draft.events or len(self.mailbox) or self.own)

    @property
    def _is_writing(self) -> bool:
        return self._flight is not None

    async def do(self, command: Command) -> Any:
        """Decide a command of the actor's own; its events go with the next append."""
        return await self._reply(command)

    async def take_in(self, row: InboxRow) -> bool:
        """Decide what came by the inbox; False, with nothing done, if there is no room for it now."""
        if not self._has_room() or self._draft.size > self.services.limits.batch_bytes:
            return False
        reply = await self._reply(row.command)
        if isinstance(reply, CallerError):
            return False
        # Where its events went, with nothing awaited in between.
        self._draft.taken.append(row.id)
        self._draft.size += len(row.command.payload) + MESSAGE_BYTES
        return True

    async def _work(self) -> None:
        """Decide what has come, what time has made due, and who waits."""
        before = self.state.sequence
        while self.own:
            await self._reply(self.own.popleft())
        room = self.services.limits.batch - len(self._draft.owed)
        if room > 0 and len(self.mailbox):
            awaits_memory = await self._decide_all(self.mailbox.take(room))
            if len(self.mailbox) and self._flight is None and not awaits_memory:
                self.notify()
        await self.intake.run()
        await self.upkeep.run()
        if self.waiters:
            await self._serve_waiters()
        if self.listeners and self.state.sequence != before:
            for listener in list(self.listeners):
                listener()
        self.state.forget_aside()

    async def _decide_all(self, envelopes: list[Envelope]) -> bool:
        """Decide what was taken from the mailbox; what storage fails to serve, the next life decides."""
        rest = iter(envelopes)
        try:
            return await self._decide_each(envelopes, rest)
        except BaseException:
            untouched = list(rest)
            begun = len(envelopes) - len(untouched)
            if begun:
                # Some of its events may be in an append under way.
                envelopes[begun - 1].answer(OutcomeUnknown())
            self.mailbox.put_back(untouched)
            raise

    async def _decide_each(self, envelopes: list[Envelope], rest: Iterator[Envelope]) -> bool:
        """Decide one after the other; those there is no room for are put back.

        True if it waits for memory, which will notify.
        """
        now = self.services.clock.now
        lookups = needs(self.state, _commands(envelopes), now)
        if lookups:
            await self._fetch(lookups)
        for position, envelope in enumerate(rest):
            if envelope.reply.done():
                continue
            if type(envelope.command) is Enqueue:
                lacks_memory = not self._has_room()
                if self._draft.size > (0 if lacks_memory else self.services.limits.batch_bytes):
                    self.mailbox.put_back(envelopes[position:])
                    return False
                if lacks_memory and self._awaits_memory():
                    self.mailbox.put_back(envelopes[position:])
                    return True
                if lacks_memory:
                    envelope.answer(MemoryFull())
                    continue
            if envelope.many is None:
                reply = self._reply_at_once(envelope.command, now)
                if reply is AGAIN:
                    reply = await self._reply(envelope.command)
                if envelope.wait_until is not None and reply == []:
                    self._let_wait(envelope)
                    continue
            else:
                reply = []
                for command in envelope.many:
                    one = self._reply_at_once(command, now)
                    reply.append(await self._reply(command) if one is AGAIN else one)
            self._draft.owed.append((envelope, reply))
        return False

    def _has_room(self) -> bool:
        budget = self.services.budget
        if budget.total + self._draft.size > budget.limit:
            return False
        self._short_since = None
        return True

    def _awaits_memory(self) -> bool:
        """Whether room is being made that was not made in vain before."""
        budget = self.services.budget
        if self._short_since is None:
            self._short_since = budget.rounds
        return budget.rounds - self._short_since < VAIN_ROUNDS and budget.makes_room(self.notify)

    def _let_wait(self, envelope: Envelope) -> None:
        """There is nothing to receive now: wait in line, if the line is not too long."""
        if self.stopping or not self.patient:
            self._draft.owed.append((envelope, []))
        elif len(self.waiters) < self.services.limits.waiters:
            self.waiters[envelope] = None
        else:
            self._draft.owed.append((envelope, Overloaded()))

    async def _serve_waiters(self) -> None:
        """Give what there is to those who wait, in the order they came."""
        now = self.services.clock.now
        waiters = self.waiters
        while waiters:
            first = next(iter(waiters))
            if first.reply.done():
                del waiters[first]
                continue
            reply = await self._reply(first.command)
            if reply == []:
                break
            waiters.pop(first, None)
            self._draft.owed.append((first, reply))
        all_end = self.stopping or not self.patient
        for waiter in [one for one in waiters if all_end or (one.wait_until or 0) <= now]:
            del waiters[waiter]
            self._draft.owed.append((waiter, []))

    def _reply_at_once(self, command: Command, now: int) -> Any:
        """The reply if one decision over what memory holds gives it, else AGAIN, with nothing done."""
        state, draft = self.state, self._draft
        if type(command) is Enqueue:
            draft.size += len(command.payload) + MESSAGE_BYTES
        decision = decide(state, command, now, self.services.chance)
        if isinstance(decision, Needs):
            return AGAIN
        events, reply = decision
        if reply is not AGAIN and events:
            for event in events:
                apply(state, event)
            draft.events += events
        return reply

    async def _reply(self, command: Command) -> Any:
        """Decide one command, fetching what it lacks, and apply its events."""
        state, chance = self.state, self.services.chance
        # One instant for all of it: what was fetched for one would not do for the next.
        now = self.services.clock.now
        asked: list[Lookup] = []
        while True:
            decision = decide(state, command, now, chance)
            if isinstance(decision, Needs):
                if decision.lookups == asked:
                    raise AskedTwice(self.number, asked)
                asked = decision.lookups
                await self._fetch(asked)
                continue
            asked = []
            events, reply = decision
            for event in events:
                apply(state, event)
            self._draft.events += events
            if reply is not AGAIN:
                return reply

    async def fetch_for(self, commands: Iterable[Command]) -> None:
        """Fetch what memory lacks for these commands, all at once."""
        lookups = needs(self.state, commands, self.services.clock.now)
        if lookups:
            await self._fetch(lookups)

    async def _fetch(self, lookups: list[Lookup]) -> None:
        found = await self.services.backend.fetch(self.number, lookups)
        absorb(self.state, lookups, found)
        size = sum(map(_size, found))
        if size:
            self.services.budget.gain(self.number, size)

    def _send(self) -> None:
        """Hand the draft over if no append is under way; what wrote nothing waits for the one that is."""
        draft, flight = self._draft, self._flight
        if flight is not None:
            if draft.owed and not draft.events:
                flight.owed += draft.owed
                self._draft = Draft()
        elif draft.events:
            self._draft, self._flight = Draft(), draft
            self.services.commits.submit(self._batch(draft), partial(self._land, draft))
            self.services.budget.gain(self.number, draft.size)
        elif draft.owed:
            if not self.services.backend.owns(self.number):
                self._lose(Ending.NOT_OWNER)
                return
            self._draft = Draft()
            self._answer(draft)

    def _batch(self, draft: Draft) -> Batch:
        return Batch(self.number, self.state.epoch, draft.events, draft.taken)

    def _land(self, flight: Draft, ending: Ending) -> None:
        """An append has ended: answer who waited for it, and hand over what was decided meanwhile."""
        if flight is not self._flight:  # of an earlier life
            return
        if ending is not Ending.DURABLE:
            self._lose(ending)
            return
        self._flight = None
        self.durable = flight.events[-1].sequence
        self.intake.landed(len(flight.taken))
        self.services.outcomes.heard(self.number, flight.events)
        self._answer(flight)
        self._send()
        # Whoever was answered comes back by himself.
        has_more = len(self.mailbox) or not self.intake.is_idle
        if self.stopping or not flight.owed or has_more or self.upkeep.waits_for_durable:
            self.notify()

    def _lose(self, ending: Ending) -> None:
        self._lost = ending
        self.notify()

    def _check_lost(self) -> None:
        if self._lost is not None:
            raise LifeLost(self._lost)

    def _answer(self, draft: Draft) -> None:
        for envelope, reply in draft.owed:
            if not envelope.answer(reply) and isinstance(envelope.command, Receive):
                self.give_back(reply)

    def give_back(self, reply: Any) -> None:
        """The receiver has gone: its messages are released, so that the attempts do not count."""
        if isinstance(reply, list):
            deliveries: list[Delivery] = reply
            self.own.extend(Release(delivery.message, delivery.token) for delivery in deliveries)
            self.notify()

    def _withdraw(self, ending: Ending) -> None:
        """Answer everyone who is owed: those of the append by how it ended, those behind it by no."""
        errors: dict[Ending, type[HQError]] = {
            Ending.UNKNOWN: OutcomeUnknown,
            Ending.REFUSED: NotStored,
            Ending.NOT_OWNER: NotOwner,
            Ending.DURABLE: OutcomeUnknown,
        }
        flight, self._flight = self._flight, None
        if flight is not None:
            for envelope, _ in flight.owed:
                envelope.answer(errors[ending]())
        behind, self._draft = self._draft, Draft()
        for envelope, _ in behind.owed:
            envelope.answer(NotOwner() if ending is Ending.NOT_OWNER else NotStored())
        self.own.clear()
        self.intake.has_ended = True
        self.services.budget.forget(self.number)


def _commands(envelopes: list[Envelope]) -> Iterator[Command]:
    for envelope in envelopes:
        if envelope.many is None:
            yield envelope.command
        else:
            yield from envelope.many


def _size(found: Found) -> int:
    """What an answer of storage brings into memory, roughly; a row alone is soon forgotten."""
    if isinstance(found, FoundRows):
        return sum(len(row.payload or b"") + MESSAGE_BYTES for row in found.rows)
    return len(found) if isinstance(found, bytes) else 0
