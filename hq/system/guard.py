"""Where a system may be used: in the process and event loop that opened it, until it is closed."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable

from hq.errors import Closed, UsedAfterFork, UsedElsewhere


class Guard:
    """Made in the loop that opens a system, and asked before each of its verbs."""

    __slots__ = ("_process", "closed", "loop")

    def __init__(self) -> None:
        self._process = os.getpid()
        self.loop = asyncio.get_running_loop()
        self.closed = False

    def check(self) -> None:
        """Refuse a use that could only hang or do harm."""
        # In the child of a fork no loop runs, or another.
        if _running_loop() is not self.loop:
            self.check_place()
        if self.closed:
            raise Closed

    def check_place(self) -> None:
        """The same, but let a closed system be."""
        self.check_process()
        if _running_loop() is not self.loop:
            raise UsedElsewhere

    def check_process(self) -> None:
        """Refuse the child of a fork: the threads and connections of its parent are not with it."""
        if os.getpid() != self._process:
            raise UsedAfterFork

    def call_soon(self, call: Callable[..., None], *arguments: object) -> None:
        """Have the loop call this, from any thread; not from a child, and not once the loop is gone."""
        if os.getpid() == self._process and not self.loop.is_closed():
            self.loop.call_soon_threadsafe(call, *arguments)


def _running_loop() -> asyncio.AbstractEventLoop | None:
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None
