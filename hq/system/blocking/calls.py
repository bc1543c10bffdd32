"""Calls from a thread over to the event loop of a system."""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable
from concurrent.futures import Future
from typing import ParamSpec, TypeVar

from anyio.from_thread import BlockingPortal

from hq.errors import Closed, UsedAfterFork

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")


class Calls:
    """The way over. In the child of a fork nobody would answer, so it is refused there."""

    def __init__(self, portal: BlockingPortal) -> None:
        self._portal = portal
        self._process = os.getpid()
        self.closed = False

    def __call__(
        self,
        verb: Callable[Arguments, Awaitable[Result]],
        *arguments: Arguments.args,
        **keywords: Arguments.kwargs,
    ) -> Result:
        """The result of a verb; whoever is interrupted while it waits takes the call back."""
        if os.getpid() != self._process:
            raise UsedAfterFork
        if self.closed:
            raise Closed

        async def run() -> Result:
            return await verb(*arguments, **keywords)

        future = self._begin(run)
        try:
            return future.result()
        except BaseException:
            future.cancel()
            raise

    def _begin(self, run: Callable[[], Awaitable[Result]]) -> Future[Result]:
        try:
            return self._portal.start_task_soon(run)
        except RuntimeError:
            # The portal stopped between the look above and now.
            if self.closed:
                raise Closed from None
            raise
