"""Postgres: the port over one schema of a database."""

from hq.backends.postgres.backend import PostgresBackend, backend_of
from hq.backends.postgres.connections import Limits
from hq.backends.postgres.opening import Shape
from hq.backends.postgres.ownership import Term

__all__ = ["Limits", "PostgresBackend", "Shape", "Term", "backend_of"]
