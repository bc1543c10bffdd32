"""The reader of the inbox: asks once for all queues of a node, gives each its rows, and wakes who sleeps.

A queue that still works on rows is left out until they are durable. So a row that was read is never given
twice by this node, and the append would refuse it if it were.
"""

from __future__ import annotations

import logging
from collections import defaultdict

from hq.actors.clock import Clock
from hq.actors.directory import Directory
from hq.actors.intake import Intake
from hq.backends.port import Backend, InboxRow

log = logging.getLogger("hq.inbox")
EVERY_MS = 25
QUIET_MS = 40
"""How often it asks when nothing has come for a while."""
QUIET_AFTER_MS = 10_000
WAKING_MS = 5
"""How soon it asks again when a queue had to be woken for its rows."""
FAILED_MS = 1_000


class Inbox:
    """What the queues of a node are given from the inbox."""

    def __init__(self, backend: Backend, directory: Directory, clock: Clock) -> None:
        self._backend = backend
        self._directory = directory
        self._clock = clock
        self._holding: dict[int, Intake] = {}
        self._used_at = clock.now

    async def run(self) -> None:
        """Read again and again, for ever."""
        while True:
            try:
                pause_ms = await self._read()
            except Exception:
                # Whatever it was, what is in the inbox is safe there, and the next time may go better.
                log.exception("the inbox could not be read and will be tried again")
                pause_ms = FAILED_MS
            await self._clock.until(self._clock.now + pause_ms)

    async def _read(self) -> int:
        """Read once; how long to wait until the next time."""
        self._let_go()
        rows = await self._backend.inbox(self._holding)
        pause_ms = self._give(rows)
        now = self._clock.now
        if rows or self._holding:
            self._used_at = now
        return pause_ms if now - self._used_at < QUIET_AFTER_MS else QUIET_MS

    def _let_go(self) -> None:
        """Of queues that are done with their rows, or live another life; the others may have room again."""
        for number, intake in list(self._holding.items()):
            if intake.is_idle or self._directory.intake(number) is not intake:
                del self._holding[number]
            else:
                intake.nudge()

    def _give(self, rows: list[InboxRow]) -> int:
        of_queues: defaultdict[int, list[InboxRow]] = defaultdict(list)
        for row in rows:
            of_queues[row.queue].append(row)
        pause_ms = EVERY_MS
        for number, its_rows in of_queues.items():
            intake = self._directory.intake(number)
            if intake is None:
                self._directory.ring(number)
                pause_ms = WAKING_MS
            else:
                intake.offer(its_rows)
                self._holding[number] = intake
        return pause_ms
