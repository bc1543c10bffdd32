"""The memory backend, with appends that wait for a word and end as told, and fetches that fail."""

from collections import deque
from collections.abc import Sequence

import anyio

from hq.backends.memory import MemoryBackend
from hq.backends.port import Batch, Ending
from hq.domain.lookups import Found, Lookup
from hq.errors import StorageError


class ScriptedBackend(MemoryBackend):
    """`hold()` keeps appends waiting until `let_go()`; `script` says how the next ones end.

    An ending of UNKNOWN writes nothing unless `written_when_unknown` is set. `fetches` says of the next ones
    whether they succeed.
    """

    def __init__(self) -> None:
        super().__init__()
        self.script: deque[Ending] = deque()
        self.written_when_unknown = False
        self.appends = 0
        self.fetches: deque[bool] = deque()
        self._gate: anyio.Event | None = None

    def hold(self) -> None:
        self._gate = anyio.Event()

    def let_go(self) -> None:
        assert self._gate is not None
        self._gate.set()
        self._gate = None

    async def append(self, batches: Sequence[Batch]) -> list[Ending]:
        self.appends += 1
        if self._gate is not None:
            await self._gate.wait()
        ending = self.script.popleft() if self.script else Ending.DURABLE
        if ending is Ending.DURABLE or (ending is Ending.UNKNOWN and self.written_when_unknown):
            endings = await super().append(batches)
            return endings if ending is Ending.DURABLE else [ending] * len(batches)
        return [ending] * len(batches)

    async def fetch(self, queue: int, lookups: Sequence[Lookup]) -> list[Found]:
        if self.fetches and not self.fetches.popleft():
            raise StorageError
        return await super().fetch(queue, lookups)
