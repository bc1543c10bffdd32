"""What every actor of a node shares."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from hq.actors.clock import Clock
from hq.actors.limits import Limits
from hq.actors.outcomes import Outcomes
from hq.actors.timers import Timers
from hq.backends.commit import CommitLines
from hq.backends.port import Backend
from hq.domain.chance import Chance


class Budget:
    """The bytes all queues of a process hold in memory: weighed at each checkpoint, estimated in between.

    Once most of it is used, the largest queues that changed since they were weighed are pressed: each writes
    a checkpoint, forgets what storage has and is weighed again. Whoever finds no room may wait for that.
    """

    def __init__(self, limit: int, press: Callable[[int], None]) -> None:
        self.limit = limit
        self.total = 0
        self.rounds = 0
        """How often queues were pressed, and all of them have made what room they could."""
        self._press = press
        self._weighed: dict[int, int] = {}
        self._gained: dict[int, int] = {}
        self._pressed: set[int] = set()
        self._waiting: set[Callable[[], None]] = set()

    def weigh(self, number: int, size: int) -> None:
        """A queue holds so many bytes now."""
        self.total += size - self._weighed.pop(number, 0) - self._gained.pop(number, 0)
        self._weighed[number] = size
        self._relieved_by(number)

    def gain(self, number: int, size: int) -> None:
        """A queue changed, and took so many bytes in since it was weighed."""
        self._gained[number] = self.gained(number) + size
        self.total += size
        if self.total > self.limit * 3 // 4:
            self._press_largest()

    def gained(self, number: int) -> int:
        """What a queue took in since it was weighed."""
        return self._gained.get(number, 0)

    def forget(self, number: int) -> None:
        """A queue holds nothing any more."""
        self.total -= self._weighed.pop(number, 0) + self._gained.pop(number, 0)
        self._relieved_by(number)

    def makes_room(self, notify: Callable[[], None]) -> bool:
        """Whether queues are at work to make room; if so, `notify` is called once they have."""
        self._press_largest()
        if self._pressed:
            self._waiting.add(notify)
        return bool(self._pressed)

    def _press_largest(self) -> None:
        """One round at a time: queues that together hold half of the budget, or all that changed."""
        if self._pressed:
            return
        wanted = self.limit // 2
        for number in sorted(self._gained, key=self._held, reverse=True):
            if wanted <= 0:
                break
            wanted -= self._held(number)
            self._pressed.add(number)
        for number in list(self._pressed):
            self._press(number)

    def _held(self, number: int) -> int:
        return self._weighed.get(number, 0) + self._gained[number]

    def _relieved_by(self, number: int) -> None:
        if number not in self._pressed:
            return
        self._pressed.discard(number)
        if not self._pressed:
            self.rounds += 1
            waiting, self._waiting = self._waiting, set()
            for notify in waiting:
                notify()


@dataclass(slots=True)
class Services:
    """The parts an actor works with."""

    backend: Backend
    commits: CommitLines
    clock: Clock
    chance: Chance
    timers: Timers
    budget: Budget
    limits: Limits
    send_moves: Callable[[int], None]
    outcomes: Outcomes
