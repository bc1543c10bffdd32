"""Who waits for the end of which message, and is told when that is durable."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import anyio

from hq.domain.events import Completed, Deleted, Event, Expired, Failed, Moved, Purged
from hq.errors import Overloaded

_ENDS = (Completed, Failed, Expired, Deleted, Moved)


class Outcomes:
    """Of all queues of a node, so that it outlives the lives of their actors."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._count = 0
        self._queues: dict[int, dict[int, list[anyio.Event]]] = {}

    @contextmanager
    def on(self, queue: int, message: int) -> Iterator[anyio.Event]:
        """An event that is set when the message has ended, or may have."""
        if self._count >= self._most:
            raise Overloaded
        ended = anyio.Event()
        watched = self._queues.setdefault(queue, {})
        watched.setdefault(message, []).append(ended)
        self._count += 1
        try:
            yield ended
        finally:
            self._count -= 1
            watched[message].remove(ended)
            if not watched[message]:
                del watched[message]
            if not watched:
                self._queues.pop(queue, None)

    def heard(self, queue: int, events: Sequence[Event]) -> None:
        """These are durable."""
        watched = self._queues.get(queue)
        if not watched:
            return
        for event in events:
            if isinstance(event, _ENDS):
                for ended in watched.get(event.message, ()):
                    ended.set()
            elif isinstance(event, Purged):
                self.stir(queue)

    def stir(self, queue: int) -> None:
        """Anything may have happened in this queue: whoever watches it looks again."""
        for several in self._queues.get(queue, {}).values():
            for ended in several:
                ended.set()
