"""One hq process per database file: a lock on a file beside it, held for life, that names its holder."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path
from weakref import WeakSet

from hq.errors import DatabaseInUse

_held: WeakSet[ProcessLock] = WeakSet()


class ProcessLock:
    """The lock on `<database>-lock`. The system frees it with the process, however that ends."""

    def __init__(self, database: Path) -> None:
        self._path = database.with_name(database.name + "-lock")
        self._file: int | None = None

    def take(self) -> None:
        """Take the lock or raise DatabaseInUse, naming the process that has it."""
        file = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            holder = os.read(file, 32).decode("ascii", "replace").strip() or "unknown"
            os.close(file)
            raise DatabaseInUse(
                f"process {holder} holds this database ({self._path}); stop it, or connect to it instead"
            ) from error
        os.ftruncate(file, 0)
        os.pwrite(file, f"{os.getpid()}\n".encode(), 0)
        self._file = file
        _held.add(self)

    def free(self) -> None:
        """Let go. The file stays: removing it would let two processes lock two files of one name."""
        if self._file is not None:
            os.close(self._file)
            self._file = None


def _forget() -> None:
    # The child of a fork has its parent's lock, and would keep it when the parent has ended.
    for lock in list(_held):
        lock.free()


os.register_at_fork(after_in_child=_forget)
