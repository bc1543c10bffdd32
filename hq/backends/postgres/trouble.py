"""Postgres's errors in hq's words, and how each ends an append.

An append is one statement and its own transaction. An error that the server sends while it runs has rolled
it back; so most codes mean refused. Unknown is whatever may come from a server, or a connection, that went
away: the commit may be done by then, or be waiting for a replica.
"""

from __future__ import annotations

import asyncpg
from sqlalchemy.exc import DBAPIError

from hq.backends.port import Ending
from hq.errors import (
    DatabaseCorrupt,
    DatabaseLocked,
    DatabaseMissing,
    DatabaseReadOnly,
    DatabaseUnreachable,
    StorageError,
    StorageFull,
    StorageTimeout,
)

_REFUSED, _UNKNOWN = Ending.REFUSED, Ending.UNKNOWN
_CLASS = 2

# By class, the first two signs of a code; and codes that differ from their class.
ENDINGS: dict[str, Ending] = {
    "00": _UNKNOWN,  # no error at all: whatever it is, it is not understood
    "01": _UNKNOWN,  # a warning
    "02": _UNKNOWN,
    "03": _REFUSED,
    "08": _UNKNOWN,  # the connection
    "08001": _REFUSED,  # was never made
    "08004": _REFUSED,
    "09": _REFUSED,
    "0A": _REFUSED,
    "0B": _REFUSED,
    "0F": _REFUSED,
    "0L": _REFUSED,
    "0P": _REFUSED,
    "0Z": _REFUSED,
    "10": _REFUSED,
    "20": _REFUSED,
    "21": _REFUSED,
    "22": _REFUSED,
    "23": _REFUSED,
    "24": _REFUSED,
    "25": _REFUSED,
    "25P03": _UNKNOWN,  # timeouts that end the connection
    "25P04": _UNKNOWN,
    "26": _REFUSED,
    "27": _REFUSED,
    "28": _REFUSED,
    "2B": _REFUSED,
    "2D": _REFUSED,
    "2F": _REFUSED,
    "34": _REFUSED,
    "38": _REFUSED,
    "39": _REFUSED,
    "3B": _REFUSED,
    "3D": _REFUSED,
    "3F": _REFUSED,
    "40": _REFUSED,
    "40003": _UNKNOWN,  # says so itself
    "42": _REFUSED,
    "44": _REFUSED,
    "53": _REFUSED,
    "54": _REFUSED,
    "55": _REFUSED,
    "57": _REFUSED,
    "57P01": _UNKNOWN,  # terminated, perhaps while it waited for a replica
    "57P02": _UNKNOWN,
    "57P04": _UNKNOWN,
    "57P05": _UNKNOWN,
    "58": _UNKNOWN,  # the system: a file that could not be written or synced
    "72": _REFUSED,
    "F0": _REFUSED,
    "HV": _UNKNOWN,  # foreign data, of which hq has none
    "P0": _REFUSED,
    "XX": _UNKNOWN,  # Postgres does not know what is wrong with itself
}

# Certainly rolled back, and likely to go better at once.
AGAIN = frozenset({"40001", "40P01", "55P03"})
# Why a connection may be refused now and not a moment later.
_RECONNECT = frozenset({"53300", "57P01", "57P02", "57P03", "08000", "08001", "08003", "08004", "08006"})

_NAMED: dict[str, type[StorageError]] = {
    "08": DatabaseUnreachable,
    "25006": DatabaseReadOnly,
    "3D": DatabaseMissing,
    "53100": StorageFull,
    "53300": DatabaseUnreachable,
    "55P03": DatabaseLocked,
    "57014": StorageTimeout,
    "57P": DatabaseUnreachable,
    "XX001": DatabaseCorrupt,
    "XX002": DatabaseCorrupt,
}

Trouble = (asyncpg.PostgresError, asyncpg.InterfaceError, asyncpg.InternalClientError, DBAPIError, OSError)


def ending_of(error: BaseException) -> Ending:
    """How an append ended that raised this after it was sent."""
    code = code_of(error)
    return ENDINGS.get(code) or ENDINGS.get(code[:_CLASS]) or Ending.UNKNOWN


def named(error: Exception) -> StorageError:
    """The error as hq tells it."""
    if isinstance(error, TimeoutError):
        return StorageTimeout("Postgres did not answer in time")
    code = code_of(error)
    if not code:
        return DatabaseUnreachable(f"Postgres cannot be reached: {str(error) or type(error).__name__}")
    cls = _NAMED.get(code) or _NAMED.get(code[:3]) or _NAMED.get(code[:_CLASS]) or StorageError
    return cls(f"Postgres says: {getattr(error, 'orig', None) or error} ({code})")


def may_reconnect(error: BaseException) -> bool:
    """Whether a connection that could not be made is worth another try."""
    code = code_of(error)
    return code in _RECONNECT if code else isinstance(error, OSError | asyncpg.InterfaceError)


def code_of(error: BaseException) -> str:
    """The SQLSTATE, if the server or the driver gave one."""
    if isinstance(error, DBAPIError) and error.orig is not None:
        return code_of(error.orig)
    if isinstance(error, StorageError) and error.__cause__ is not None:
        return code_of(error.__cause__)
    return getattr(error, "sqlstate", None) or ""
