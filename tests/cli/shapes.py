"""What `--json` prints: every key there is, and nothing else."""

from typing import Any

import msgspec


class Strict(msgspec.Struct, forbid_unknown_fields=True):
    """A JSON object with these keys."""


class Numbers(Strict):
    queue: str
    ready: int
    delayed: int
    leased: int
    failed: int
    moving: int
    enqueued: int
    completed: int
    expired: int
    deleted: int
    purged: int
    moved: int
    receives: int
    retries: int
    lapses: int
    paused: str | None
    next_lease_end: int | None
    sequence: int
    inbox: int
    oldest_age_ms: int | None


class Moving(Numbers, kw_only=True):
    enqueued_per_s: float | None
    completed_per_s: float | None
    retries_per_s: float | None
    failed_per_s: float | None


class Shown(Strict):
    queue: str
    settings: dict[str, Any]


class ShownWithStats(Shown):
    stats: Numbers


class Deleted(Strict):
    queue: str
    deleted: bool


class Paused(Strict):
    queue: str
    group: str | None
    paused: bool


class Purged(Strict):
    queue: str
    purged: int


class Requeued(Strict):
    queue: str
    requeued: int


class Compacted(Strict):
    queue: str
    compacted: bool


class Enqueued(Strict):
    id: str
    duplicate: bool


class ManyEnqueued(Strict):
    queue: str
    enqueued: int
    refused: int


class Attempt(Strict):
    receives: int
    holder: str | None
    received_at: int
    ended_at: int
    outcome: str
    error: str | None


class Message(Strict, kw_only=True):
    id: str
    queue: str
    payload: Any
    content_type: str
    headers: dict[str, str]
    priority: int | None
    group: str | None
    concurrency_key: str | None
    dedup_key: str | None
    attempts: int
    receives: int
    enqueued_at: int
    origin_id: str | None
    history: list[Attempt]
    lease_expires_at: int | None


class Seen(Message, kw_only=True):
    state: str
    available_at: int
    expires_at: int | None
    holder: str | None
    reason: str | None
    error: str | None


class Held(Message, kw_only=True):
    token: str


class Settled(Strict):
    id: str
    state: str
    until: int | None


class Blocker(Strict):
    code: str
    until: int | None
    message_id: str | None
    reason: str | None


class Explained(Strict):
    id: str
    state: str
    blockers: list[Blocker]


class Schedule(Strict):
    name: str
    every_ms: int | None
    cron: str | None
    timezone: str | None
    missed: str
    catch_up: int
    last_at: int | None
    next_ticks: list[int]
    next: str


class Unscheduled(Strict):
    queue: str
    name: str
    removed: bool


class Health(Strict):
    status: str
    durability: str


class Finding(Strict):
    verdict: str
    about: str
    finding: str


class Setting(Strict, rename={"place": "from"}):
    key: str
    value: Any
    place: str


class Diagnosis(Strict):
    findings: list[Finding]
    settings: list[Setting]


class Measured(Strict):
    messages: int
    clients: int
    batch: int
    bytes: int
    durability: str
    seconds: float
    messages_per_s: float
    cycle_p50_ms: float
    cycle_p99_ms: float
