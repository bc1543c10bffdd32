"""Python's garbage collector, set for a process that serves queues."""

from __future__ import annotations

import gc

YOUNG = 50_000
"""How many more objects there are than at the last collection before the next: 700 is Python's own."""


def calm_collector() -> None:
    """Look at what is loaded never again, and at the rest less often.

    What a queue makes for a request is freed by its last reference; what it keeps for long, messages and
    their order, has no cycles. At Python's pace the collector goes through it all again and again, for a
    quarter of the CPU under load and pauses of tens of milliseconds. What does lie in cycles, an error with
    its traceback, waits a little longer. For a whole process: whoever embeds hq decides for his own.
    """
    gc.collect()
    gc.freeze()
    _, middle, old = gc.get_threshold()
    gc.set_threshold(YOUNG, middle, old)
