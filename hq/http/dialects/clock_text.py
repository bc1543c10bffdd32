"""Instants as SQLite writes them, in UTC."""

from __future__ import annotations

from datetime import UTC, datetime


def timestamp(milliseconds: int) -> str:
    """`YYYY-MM-DD HH:MM:SS.mmm`."""
    seconds, rest = divmod(milliseconds, 1_000)
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%d %H:%M:%S}.{rest:03d}"
