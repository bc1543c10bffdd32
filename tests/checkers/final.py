"""The last look: what is found in the queues when all clients have stopped, and what an invariant says.

None means that nobody looked, and then nothing is judged by it.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from hq.domain.settings import Settings


class Violation(NamedTuple):
    """A broken promise: which, where, and what was seen."""

    invariant: str
    queue: str
    message: str | None
    text: str

    def __str__(self) -> str:
        return f"{self.invariant} {self.queue}/{self.message or '*'}: {self.text}"


class Appended(NamedTuple):
    """One row of a queue's journal."""

    epoch: int
    first: int
    last: int


class Tick(NamedTuple):
    """A message that a schedule yielded."""

    schedule: str
    tick_at: int
    id: str


@dataclass(frozen=True, eq=False)
class QueueFinal:
    """One queue at the end. Its settings were the same all the time, and its dead letters outlive the run.

    `left` are the ids in each state; `stats` the queue's own counts; `journal` its rows in order of their
    position; `ticks` the messages its schedules yielded as the journal has them, and `expected_ticks` what
    each schedule should have; `dumps` its whole state in canonical text, by where it was read from.
    """

    settings: Settings = field(default_factory=Settings)
    left: Mapping[str, tuple[str, ...]] | None = None
    stats: Mapping[str, int] | None = None
    journal: tuple[Appended, ...] = ()
    ticks: tuple[Tick, ...] = ()
    expected_ticks: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    dumps: Mapping[str, str] = field(default_factory=dict)

    def ids_left(self, *states: str) -> set[str]:
        """The ids in these states, in any if none is named."""
        left = self.left or {}
        return {one for state in states or left for one in left.get(state, ())}


@dataclass(frozen=True, eq=False)
class Final:
    """All queues at the end, and when that was by the server's clock."""

    queues: Mapping[str, QueueFinal] = field(default_factory=dict)
    at: int | None = None

    def of(self, queue: str) -> QueueFinal:
        return self.queues.get(queue, _UNSEEN)


_UNSEEN = QueueFinal()
