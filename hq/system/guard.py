"""Where a system may be used: in the process and event loop that opened it, until it is closed."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from threading import get_ident

from hq.errors import Closed, UsedAfterFork, UsedElsewhere

_forks = 0


def _forked() -> None:
    global _forks  # noqa: PLW0603 what a fork changes is the process
    _forks += 1


os.register_at_fork(after_in_child=_forked)


class Guard:
    """Made in the loop that opens a system, and asked before each of its verbs."""

    __slots__ = ("_forks", "_thread", "closed", "loop")

    def __init__(self) -> None:
        self._forks = _forks
        self._thread = get_ident()
        self.loop = asyncio.get_running_loop()
        self.closed = False

    def check(self) -> None:
        """Refuse a use that could only hang or do harm."""
        # A thread runs one loop at a time. To ask which would be a call of the system, for every verb.
        if get_ident() != self._thread or _forks != self._forks or not self.loop.is_running():
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
        if _forks != self._forks:
            raise UsedAfterFork

    def call_soon(self, call: Callable[..., None], *arguments: object) -> None:
        """Have the loop call this, from any thread; not from a child, and not once the loop is gone."""
        if _forks == self._forks and not self.loop.is_closed():
            self.loop.call_soon_threadsafe(call, *arguments)


def _running_loop() -> asyncio.AbstractEventLoop | None:
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None
