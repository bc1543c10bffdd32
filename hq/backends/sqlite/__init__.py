"""SQLite: the port over one file that one process holds."""

from hq.backends.sqlite.backend import SqliteBackend
from hq.backends.sqlite.opening import Durability, Limits

__all__ = ["Durability", "Limits", "SqliteBackend"]
