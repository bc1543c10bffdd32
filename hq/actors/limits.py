"""Every bound of an actor, named."""

from __future__ import annotations

from dataclasses import dataclass

from hq.domain.settings import DAY_MS

MEBIBYTE = 1 << 20
MESSAGE_BYTES = 1_000
"""What a message costs in memory beside its payload, roughly."""


@dataclass(frozen=True, slots=True)
class Limits:
    """How much an actor takes on, when it writes checkpoints and goes to sleep, and what storage keeps."""

    mailbox: int = 10_000
    waiters: int = 10_000
    batch: int = 2_000
    batch_bytes: int = 4 * MEBIBYTE
    head: int = 1_000
    checkpoint_events: int = 50_000
    checkpoint_bytes: int = 32 * MEBIBYTE
    checkpoint_ms: int = 60_000
    chunk: int = 500
    chunk_bytes: int = 4 * MEBIBYTE
    idle_ms: int = 60_000
    memory_bytes: int = 256 * MEBIBYTE
    loads: int = 6
    """How often a queue that cannot be loaded is tried before its callers are told so."""
    journal_ms: int = DAY_MS
    journal_bytes: int = 1024 * MEBIBYTE
    """The journal goes when it is older or larger than this, but never what no checkpoint has yet."""
    unarchived_bytes: int | None = None
    """If it is set, what is not archived is kept, whatever its age, until the journal is larger than this."""
    prune_every_ms: int = 60_000
    prune: int = 1_000
    """How many things one step of pruning removes at most."""
