"""For tests of hq and of what is built on it: frozen clock, seeded chance, queues and systems in memory."""

from hq.testing.chance import SeededChance
from hq.testing.clock import FrozenClock
from hq.testing.queue import MemoryQueue
from hq.testing.system import (
    Handled,
    assert_empty,
    assert_enqueued,
    assert_not_enqueued,
    drain,
    drain_worker,
    memory_system,
)

__all__ = [
    "FrozenClock",
    "Handled",
    "MemoryQueue",
    "SeededChance",
    "assert_empty",
    "assert_enqueued",
    "assert_not_enqueued",
    "drain",
    "drain_worker",
    "memory_system",
]
