"""One queue in memory, driven the way an actor drives it: fetch, decide, apply, append, reply."""

from __future__ import annotations

from collections.abc import Coroutine
from typing import Any, TypeVar

from hq.backends.memory import MemoryBackend
from hq.backends.port import Batch, Ending
from hq.domain.apply import apply
from hq.domain.chance import Chance
from hq.domain.checkpoint import Checkpoint, Chunk, shed
from hq.domain.commands import Claim, Command
from hq.domain.decide import decide
from hq.domain.events import Event
from hq.domain.fetching import absorb, needs
from hq.domain.loading import load, mentioned, replay
from hq.domain.lookups import Lookup
from hq.domain.replies import AGAIN, Needs, Reply
from hq.domain.settings import Settings
from hq.domain.state import DEFAULT_HEAD, QueueState
from hq.domain.timing import wake_at
from hq.errors import CallerError
from hq.testing.chance import SeededChance
from hq.testing.clock import FrozenClock

Result = TypeVar("Result")


def at_once(answer: Coroutine[Any, Any, Result]) -> Result:
    """Run a coroutine of the memory backend, which never waits."""
    try:
        answer.send(None)
    except StopIteration as stop:
        result: Result = stop.value
        return result
    raise AssertionError("the memory backend waited")


class MemoryQueue:
    """A queue whose every verb is `ask`; checkpoints, forgetting and crashes happen when told."""

    def __init__(
        self,
        settings: Settings | None = None,
        *,
        clock: FrozenClock | None = None,
        chance: Chance | None = None,
        backend: MemoryBackend | None = None,
        head: int = DEFAULT_HEAD,
    ) -> None:
        self.clock = clock or FrozenClock()
        self.chance = chance or SeededChance()
        self.backend = backend or MemoryBackend()
        name = f"queue-{len(at_once(self.backend.queues())) + 1}"
        self.number = at_once(self.backend.create(name, settings or Settings())).number
        self.state = QueueState(settings or Settings(), head)
        self._checkpoint: Checkpoint | None = None
        self._cut: Chunk | None = None

    def ask(self, command: Command) -> Any:
        """The reply to a command; a refusal is raised."""
        reply = self.reply(command)
        if isinstance(reply, CallerError):
            raise reply
        return reply

    def reply(self, command: Command) -> Reply:
        """The reply to a command; a refusal is one of them."""
        state, now = self.state, self.clock.now
        self._fetch(needs(state, [command], now))
        asked: list[Lookup] = []
        while True:
            decision = decide(state, command, now, self.chance)
            if isinstance(decision, Needs):
                assert decision.lookups != asked, f"{asked} was answered, and is asked again"
                asked = decision.lookups
                self._fetch(asked)
                continue
            asked = []
            events, reply = decision
            for event in events:
                apply(state, event)
            self._append(events)
            if reply is not AGAIN:
                state.forget_aside()
                return reply

    def checkpoint(self, chunk: int = 1_000) -> None:
        """Write a whole checkpoint, or what is left of one."""
        while self.checkpoint_step(chunk):
            pass

    def checkpoint_step(self, chunk: int = 1) -> bool:
        """Cut the next chunk of a checkpoint, or write the one that is cut; False when that was the last."""
        self._checkpoint = self._checkpoint or Checkpoint(self.state)
        if self._cut is not None:
            at_once(self.backend.checkpoint(self.number, self._cut, wake_at(self.state)))
            self._checkpoint.confirm(self._cut)
            self._cut = None
            return True
        self._cut = self._checkpoint.cut(chunk)
        if self._cut is None:
            self._checkpoint = None
        return self._cut is not None

    def shed(self) -> None:
        """Forget everything the backend has."""
        shed(self.state)

    def crash(self) -> None:
        """Lose all memory, load again, and claim the queue as a new writer."""
        self.reload()
        self.ask(Claim(self.state.epoch + 1))

    def reload(self) -> None:
        """Lose all memory and load again, as one who only reads would."""
        self._checkpoint = self._cut = None
        loaded = at_once(self.backend.load(self.number))
        self.state = load(loaded.snapshot, loaded.leases, self.state.head)
        while events := at_once(self.backend.tail(self.number, self.state.sequence, 1_000)):
            self._fetch(mentioned(events))
            replay(self.state, events)

    def _fetch(self, lookups: list[Lookup]) -> None:
        if lookups:
            absorb(self.state, lookups, at_once(self.backend.fetch(self.number, lookups)))

    def _append(self, events: list[Event]) -> None:
        if events:
            [ending] = at_once(self.backend.append([Batch(self.number, self.state.epoch, events)]))
            assert ending is Ending.DURABLE, ending
