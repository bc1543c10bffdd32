"""A queue in numbers, as commands tell them."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hq.system.queue import Queue
    from hq.system.system import System

COLUMNS = ("queue", "ready", "delayed", "leased", "failed", "oldest_age_ms", "paused")


async def numbers(system: System, queue: Queue) -> dict[str, Any]:
    """Its stats, and how long its oldest message has been there."""
    stats = asdict(await queue.stats())
    oldest = await queue.browse(limit=1)
    age = max(0, system.clock.now - oldest[0].enqueued_at) if oldest else None
    return {"queue": queue.name, **stats, "oldest_age_ms": age}
