"""What pruning may remove, and how much at once."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from hq.backends.codec import decode_snapshot
from hq.backends.port import Retention
from hq.domain.tasks import Scope
from hq.errors import SnapshotDamaged

log = logging.getLogger("hq.retention")

# Others wait while something is removed: no longer than this, as far as can be told from the time before.
STEP_S = 0.02
FIRST_STEP = 16
# Of the journal one step removes no more than this: an entry may have megabytes.
STEP_BYTES = 4 << 20


class Pace:
    """How many things of a kind may be removed at once: fewer if it took long, more if it did not."""

    def __init__(self) -> None:
        self._most = FIRST_STEP

    def within(self, limit: int) -> int:
        """So many, but no more than a limit."""
        self._most = min(self._most, limit)
        return self._most

    def took(self, seconds: float, removed: int) -> None:
        """To remove so many took so long."""
        if seconds > STEP_S:
            self._most = max(1, self._most // 2)
        elif seconds < STEP_S / 2 and removed >= self._most:
            self._most *= 2


class Kept(NamedTuple):
    """How much of a journal there is, and up to which position it is archived."""

    size: int
    archived: int


def doomed(
    oldest: Iterable[Any], marks: Mapping[int, int], now: int, retention: Retention, kept: Kept
) -> tuple[int, int]:
    """How many of the oldest rows (position, queue, first, last, at, bytes) may go, and what that frees."""
    count = freed = 0
    for position, queue, _, last, at, length in oldest:
        wanted = is_wanted(position, at, now, retention, Kept(kept.size - freed, kept.archived))
        if wanted or last > marks.get(queue, last) or (count and freed + length > STEP_BYTES):
            break
        count, freed = count + 1, freed + length
    return count, freed


def is_wanted(position: int, at: int, now: int, retention: Retention, kept: Kept) -> bool:
    """Whether the oldest entry is to be kept for its age, or because it is not archived."""
    if retention.unarchived_bytes is not None and position > kept.archived:
        return kept.size <= retention.unarchived_bytes
    return at > now - retention.keep_ms and kept.size <= retention.keep_bytes


def tell_lost(first: int, last: int, archived: int, retention: Retention) -> None:
    """Tell the operator of entries that went before they were archived."""
    if retention.unarchived_bytes is not None and last > archived:
        log.error(
            "the journal was pruned before it was archived: archive it, or raise unarchived_bytes",
            extra={"first": max(first, archived + 1), "last": last, "archived": archived},
        )


def purges_in(queue: int, snapshots: Iterable[Any]) -> dict[Scope, int]:
    """The purges a queue's snapshot tells of; none if it is damaged, which loading tells."""
    try:
        return {
            scope: sequence
            for mark, blob in snapshots
            for scope, sequence in decode_snapshot(queue, mark, blob).purged.items()
            if sequence
        }
    except SnapshotDamaged:
        return {}
