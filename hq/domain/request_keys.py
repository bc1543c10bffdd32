"""Dedup keys that are no producer's: a client gives one to a request that it may have to send again."""

from __future__ import annotations

_PREFIX = "hq-request:"


def request_key(unique: str) -> str:
    """A key for one request."""
    return _PREFIX + unique


def producers_key(key: str | None) -> str | None:
    """The key as its producer knows it: none, if the producer gave none."""
    return None if key is None or key.startswith(_PREFIX) else key
