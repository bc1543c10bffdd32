"""Settings of a queue, between JSON or a query and hq.Settings."""

from __future__ import annotations

from dataclasses import asdict, fields
from enum import Enum
from typing import Any

import msgspec
from msgspec import UNSET

from hq.backends.port import QueueRow
from hq.domain.settings import Backoff, Rate, RetryPolicy, Settings
from hq.errors import InvalidInput
from hq.http import models as m
from hq.http import queries as q

SECOND_MS = 1_000
_NAMES = frozenset(field.name for field in fields(Settings))


def said(taken: m.ChangedSettings | q.SettingsQuery) -> dict[str, Any]:
    """The settings that were said, under hq's own names and types."""
    given = {name: value for name in taken.__struct_fields__ if (value := getattr(taken, name)) is not UNSET}
    given.pop("name", None)
    seconds = given.pop("visibility_timeout_seconds", None)
    if seconds is not None:
        if seconds < 1:
            raise InvalidInput("visibility_timeout_seconds must be at least 1")
        _also(given, "lease_ms", seconds * SECOND_MS, "visibility_timeout_seconds")
    if "visibility_ms" in given:
        _also(given, "lease_ms", given.pop("visibility_ms"), "visibility_ms")
    if "dlq" in given:
        _also(given, "dead_letter_queue", given.pop("dlq"), "dlq")
    for name, value in given.items():
        if isinstance(value, m.Retry):
            given[name] = retry_policy(value)
        elif isinstance(value, m.Rate):
            given[name] = Rate(value.limit, value.per_ms, value.burst)
    return given


def retry_policy(retry: m.Retry) -> RetryPolicy:
    """A retry policy from JSON."""
    given = msgspec.structs.asdict(retry)
    try:
        backoff = Backoff(given.pop("backoff"))
    except ValueError:
        known = ", ".join(repr(one.value) for one in Backoff)
        raise InvalidInput(f"backoff must be one of {known}") from None
    return RetryPolicy(backoff, **{name: value for name, value in given.items() if value is not UNSET})


def shown(row: QueueRow, stats: m.Stats | msgspec.UnsetType = UNSET) -> m.QueueShown:
    """A queue as JSON shows it."""
    settings = row.settings
    return m.QueueShown(
        name=row.name,
        number=row.number,
        settings=plain(settings),
        visibility_timeout_seconds=settings.lease_ms / SECOND_MS,
        stats=stats,
    )


def plain(value: Settings | RetryPolicy) -> dict[str, Any]:
    """Settings as JSON has them."""
    return {key: _plain(held) for key, held in asdict(value).items()}


def _also(given: dict[str, Any], name: str, value: object, alias: str) -> None:
    if name in given:
        raise InvalidInput(f"{name} is given twice: {alias} means the same")
    given[name] = value


def _plain(value: Any) -> Any:
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, dict):
        return {key: _plain(held) for key, held in value.items()}
    return value
