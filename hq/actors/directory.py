"""Which queue is where: names to numbers, numbers to actors. An actor starts on first use and sleeps idle."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from anyio.abc import TaskGroup

from hq.actors.intake import Intake
from hq.actors.queue import QueueActor
from hq.actors.services import Services
from hq.actors.supervisor import keep
from hq.backends.port import QueueRow
from hq.domain.counters import Counters
from hq.domain.settings import Settings
from hq.domain.timing import wake_at
from hq.errors import Closed, InvalidInput, QueueExists, QueueNotFound


class Directory:
    """All queues of a node."""

    def __init__(self, services: Services, tasks: TaskGroup) -> None:
        self._services = services
        self._tasks = tasks
        self._rows: dict[str, QueueRow] = {}
        self._names: dict[int, str] = {}
        self._actors: dict[int, QueueActor] = {}
        self._closing = False
        self._patient = True
        self._empty: Callable[[], None] | None = None

    async def load(self) -> None:
        """Read the list of queues, and have those that must wake do so."""
        for row in await self._services.backend.queues():
            self._add(row)
            if row.wake_at is not None:
                self._services.timers.set(row.number, row.wake_at)
        for number in await self._services.backend.unsettled():
            self.ring(number)

    def row(self, name: str) -> QueueRow:
        """A queue by its name."""
        row = self._rows.get(name)
        if row is None:
            raise QueueNotFound
        return row

    def name(self, number: int) -> str:
        """A queue's name by its number."""
        name = self._names.get(number)
        if name is None:
            raise QueueNotFound
        return name

    def rows(self) -> list[QueueRow]:
        """All queues, by number."""
        return sorted(self._rows.values(), key=lambda row: row.number)

    async def create(self, name: str, settings: Settings) -> QueueRow:
        """Make a queue, or find it if it has these settings."""
        row = self._rows.get(name)
        if row is None:
            self.check_target(name, settings)
            try:
                row = await self._services.backend.create(name, settings)
            except QueueExists:
                # Made by a neighbour while this call waited.
                row = self._rows.get(name)
                if row is None:
                    raise
            self._add(row)
        if row.settings != settings:
            raise QueueExists
        return row

    def check_target(self, name: str, settings: Settings) -> None:
        """Refuse a chain of dead-letter queues that leads back to this one."""
        target = settings.dead_letter_queue
        seen: set[str] = set()
        while target is not None and target not in seen:
            if target == name:
                raise InvalidInput(f"the dead letters of {name!r} would come back to it")
            seen.add(target)
            row = self._rows.get(target)
            target = None if row is None else row.settings.dead_letter_queue

    async def drop(self, name: str) -> None:
        """Bury a queue; its actor finds it gone."""
        row = self.row(name)
        del self._rows[name], self._names[row.number]
        actor = self._actors.get(row.number)
        if actor is not None:
            actor.stop()
        await self._services.backend.drop(row.number)
        self._services.timers.set(row.number, None)
        self._services.outcomes.stir(row.number)

    def changed(self, name: str, settings: Settings) -> None:
        """A queue's settings are now these."""
        row = self._rows.get(name)
        if row is not None:
            self._rows[name] = row._replace(settings=settings)

    def actor(self, number: int) -> QueueActor:
        """The actor of a queue, started if it sleeps."""
        actor = self._actors.get(number)
        if actor is None:
            if self._closing:
                raise Closed
            if number not in self._names:
                raise QueueNotFound
            actor = self._actors[number] = QueueActor(number, self._services)
            actor.patient = self._patient
            self._tasks.start_soon(self._live, actor)
        return actor

    def intake(self, number: int) -> Intake | None:
        """What a queue takes from the inbox; None if its actor sleeps."""
        actor = self._actors.get(number)
        return None if actor is None else actor.intake

    def awake(self) -> list[str]:
        """The queues whose actors run."""
        return [self._names[number] for number in self._actors if number in self._names]

    def counters(self) -> Iterator[tuple[str, Counters]]:
        """The counters of every queue whose actor runs."""
        for number, actor in list(self._actors.items()):
            if number in self._names and hasattr(actor, "state"):
                yield self._names[number], actor.state.counters

    def waiting(self) -> Iterator[tuple[str, int]]:
        """How many receives wait for messages of each queue whose actor runs."""
        for number, actor in list(self._actors.items()):
            if number in self._names:
                yield self._names[number], len(actor.waiters) + len(actor.listeners)

    def ring(self, number: int) -> None:
        """A queue's time has come: notify its actor, or wake it."""
        actor = self._actors.get(number)
        if actor is not None:
            actor.notify()
        elif number in self._names and not self._closing:
            self.actor(number)

    def press(self, number: int) -> None:
        """Memory is short: a queue shall write a checkpoint and forget what it can."""
        actor = self._actors.get(number)
        if actor is not None:
            actor.upkeep.press()

    def end_waits(self) -> None:
        """Answer all who wait for messages, now and from now on."""
        self._patient = False
        for actor in self._actors.values():
            actor.end_waits()

    def stop(self, when_empty: Callable[[], None]) -> None:
        """Stop all actors, and say when the last has ended."""
        self._closing = True
        self._empty = when_empty
        for actor in list(self._actors.values()):
            actor.stop()
        if not self._actors:
            when_empty()

    async def _live(self, actor: QueueActor) -> None:
        number = actor.number
        try:
            await keep(actor)
        finally:
            del self._actors[number]
            timers = self._services.timers
            timers.set(number, None)
            if number not in self._names:
                # Until now it still answered, for a queue that was dropped meanwhile.
                self._services.outcomes.stir(number)
            elif hasattr(actor, "state"):
                timers.set(number, wake_at(actor.state))
            if self._empty is not None and not self._actors:
                self._empty()

    def _add(self, row: QueueRow) -> None:
        self._rows[row.name] = row
        self._names[row.number] = row.name
