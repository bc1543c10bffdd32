"""SQLite's errors in hq's words: what went wrong, what to do, and whether anything may have been written."""

from __future__ import annotations

import sqlite3

from hq.backends.port import Ending
from hq.errors import (
    DatabaseCorrupt,
    DatabaseLocked,
    DatabaseMissing,
    DatabaseReadOnly,
    StorageError,
    StorageFull,
)

_BASIC = 0xFF
_NAMED: dict[int, type[StorageError]] = {
    sqlite3.SQLITE_BUSY: DatabaseLocked,
    sqlite3.SQLITE_LOCKED: DatabaseLocked,
    sqlite3.SQLITE_CORRUPT: DatabaseCorrupt,
    sqlite3.SQLITE_NOTADB: DatabaseCorrupt,
    sqlite3.SQLITE_READONLY: DatabaseReadOnly,
    sqlite3.SQLITE_PERM: DatabaseReadOnly,
    sqlite3.SQLITE_CANTOPEN: DatabaseMissing,
    sqlite3.SQLITE_FULL: StorageFull,
}
# A statement in autocommit that ends so has been rolled back, and its frames are no commit: the write of the
# commit frame itself did not succeed. A failed sync is not among them: the frames are whole, and a recovery
# would find them (Postgres learned it as "fsyncgate").
_ROLLED_BACK = {
    sqlite3.SQLITE_BUSY,
    sqlite3.SQLITE_LOCKED,
    sqlite3.SQLITE_READONLY,
    sqlite3.SQLITE_FULL,
    sqlite3.SQLITE_CANTOPEN,
    sqlite3.SQLITE_CONSTRAINT,
    sqlite3.SQLITE_TOOBIG,
    sqlite3.SQLITE_NOTADB,
}


def named(error: sqlite3.Error) -> StorageError:
    """The error as hq tells it."""
    code = _code(error)
    cls = _NAMED.get(code & _BASIC, StorageError)
    words = (cls.__doc__ or "").strip()
    return cls(f"{words} (SQLite: {error})")


def ending_of(error: sqlite3.Error) -> Ending:
    """How an append in autocommit ended that raised this."""
    code = _code(error)
    if code & _BASIC in _ROLLED_BACK or code == sqlite3.SQLITE_IOERR_WRITE:
        return Ending.REFUSED
    return Ending.UNKNOWN


def _code(error: sqlite3.Error) -> int:
    # An error of the Python module itself, such as an integer that is too large, has no code.
    code: int = getattr(error, "sqlite_errorcode", 0)
    return code
