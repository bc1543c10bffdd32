"""What routes take and give, as JSON. A field that is not said takes no part."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
from msgspec import UNSET, Meta, Raw, UnsetType

QUEUE_NAME = {"pattern": r"^[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}$"}
"""For readers of the schema; the rule is queue_name's, which also refuses two dots in a row."""
Name = Annotated[str, Meta(extra_json_schema=QUEUE_NAME)]


class Taken(msgspec.Struct, forbid_unknown_fields=True):
    """Something hq reads: what it does not know, it refuses."""


class Given(msgspec.Struct, omit_defaults=True):
    """Something hq writes."""


class Retry(Taken, kw_only=True):
    """How long a retried message waits."""

    backoff: str = "exponential"
    base_ms: int | UnsetType = UNSET
    factor: int | UnsetType = UNSET
    cap_ms: int | UnsetType = UNSET
    jitter_percent: int | UnsetType = UNSET


class Rate(Taken, kw_only=True):
    """So many in so many milliseconds, and how many at once."""

    limit: int
    per_ms: int = 1_000
    burst: int = 1


class ChangedSettings(Taken, kw_only=True):
    """Settings of a queue; null clears those that can be without a value."""

    max_attempts: int | UnsetType | None = UNSET
    lease_ms: int | UnsetType = UNSET
    retry: Retry | UnsetType = UNSET
    delay_ms: int | UnsetType = UNSET
    ttl_ms: int | UnsetType | None = UNSET
    dedup_ms: int | UnsetType = UNSET
    dedup_scope: str | UnsetType = UNSET
    groups: str | UnsetType = UNSET
    concurrency: int | UnsetType | None = UNSET
    concurrency_per_key: int | UnsetType | None = UNSET
    capacity: int | UnsetType | None = UNSET
    enqueue_rate: Rate | UnsetType | None = UNSET
    receive_rate: Rate | UnsetType | None = UNSET
    max_payload_bytes: int | UnsetType = UNSET
    dead_letter_queue: str | UnsetType | None = UNSET
    failed_ms: int | UnsetType = UNSET
    visibility_timeout_seconds: int | UnsetType = UNSET
    visibility_ms: int | UnsetType = UNSET
    dlq: str | UnsetType | None = UNSET


class NewQueue(ChangedSettings, kw_only=True):
    """A queue to be made."""

    name: Name


class NewMessage(Taken, kw_only=True):
    """A message to be enqueued: `payload` is any JSON value, `payload_base64` any bytes."""

    payload: Raw | UnsetType = UNSET
    payload_base64: str | UnsetType = UNSET
    content_type: str | UnsetType = UNSET
    headers: dict[str, str] | UnsetType = UNSET
    priority: int | None = None
    group: str | None = None
    concurrency_key: str | None = None
    dedup_key: str | None = None
    idempotency_key: str | None = None
    dedup_ms: int | None = None
    delay_ms: int | None = None
    ttl_ms: int | None = None
    max_attempts: int | None = None
    lease_ms: int | None = None
    retry: Retry | None = None
    result_ms: int | None = None


class NewSchedule(Taken, kw_only=True):
    """What is enqueued again and again, and when: `every_ms`, or by `cron`."""

    every_ms: int | None = None
    cron: str | None = None
    timezone: str | None = None
    missed: str | None = None
    catch_up: int | None = None
    grace_ms: int | None = None
    payload: Raw | UnsetType = UNSET
    payload_base64: str | UnsetType = UNSET
    content_type: str | UnsetType = UNSET
    headers: dict[str, str] | UnsetType = UNSET
    priority: int | None = None
    group: str | None = None
    concurrency_key: str | None = None
    dedup_key: str | None = None
    dedup_ms: int | None = None
    delay_ms: int | None = None
    ttl_ms: int | None = None
    max_attempts: int | None = None
    lease_ms: int | None = None
    retry: Retry | None = None
    result_ms: int | None = None


class RequeueTask(Taken, kw_only=True):
    """Which dead letters to bring back, and how fast."""

    group: str | None = None
    reason: str | None = None
    rate: Rate | None = None


class NewTask(RequeueTask, kw_only=True):
    """What to do with which messages: `requeue`, `move` or `delete`, those that are `live` or `failed`."""

    kind: str
    scope: str
    target: str | None = None


class Named(Taken, kw_only=True):
    """A message by its id."""

    id: str


class Held(Named, kw_only=True):
    """A message by its id, and the token that shows that one holds it; or `by_id`, whoever holds it."""

    token: str | UnsetType = UNSET
    by_id: bool = False


class HeldComplete(Held, kw_only=True):
    """The same, with what came of the work: any JSON value, kept if the producer gave `result_ms`."""

    result: Raw | UnsetType = UNSET


class HeldProgress(Held, kw_only=True):
    """The same, with how far the work is: a small JSON value."""

    progress: Raw


class HeldRetry(Held, kw_only=True):
    """The same, with when it comes again and what went wrong."""

    delay_ms: int | None = None
    error: str | None = None


class HeldFail(Held, kw_only=True):
    """The same, with what went wrong."""

    error: str | None = None


class HeldExtend(Held, kw_only=True):
    """The same, with for how long from now."""

    lease_ms: int | None = None


class QueueShown(Given, kw_only=True):
    """A queue: its name, all its settings, and its counts if they were asked for."""

    name: str
    number: int
    settings: dict[str, Any]
    visibility_timeout_seconds: float
    stats: Stats | UnsetType = UNSET


class Stats(Given, kw_only=True, omit_defaults=False):
    """A queue in numbers: what there is now, and what there was since it was made."""

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


class Accepted(Given, kw_only=True, omit_defaults=False):
    """The id of the message that now holds the payload; `duplicate` if an earlier one already did."""

    id: str
    message_id: str
    duplicate: bool


class ItemError(Given, kw_only=True):
    """Why one item of many was refused."""

    code: str
    detail: str
    retry_at: int | UnsetType = UNSET


class Failed(Given, kw_only=True):
    """One item of many that was refused."""

    error: ItemError


class Results(Given, kw_only=True):
    """A result or an error for each item, in their order."""

    results: list[Any]


class Settled(Given, kw_only=True, omit_defaults=False):
    """What became of a message, and when it comes again or its lease ends."""

    id: str
    state: str
    until: int | None = None


class Shown(Given, kw_only=True):
    """A message as it is. A payload that is no JSON and no text comes as `payload_base64`."""

    id: str
    queue: str
    state: str | UnsetType = UNSET
    payload: Raw | str | UnsetType = UNSET
    payload_base64: str | UnsetType = UNSET
    content_type: str
    headers: dict[str, str] | UnsetType = UNSET
    priority: int | None = None
    group: str | None = None
    concurrency_key: str | None = None
    dedup_key: str | None = None
    attempts: int
    receives: int
    enqueued_at: int
    available_at: int | UnsetType = UNSET
    expires_at: int | None = None
    failed_at: int | UnsetType = UNSET
    reason: str | None = None
    error: str | None = None
    origin_id: str | None = None
    holder: str | None = None
    history: list[Attempt] | UnsetType = UNSET
    lease_expires_at: int | UnsetType = UNSET
    progress: Raw | UnsetType = UNSET
    result_ms: int | None = None


class Received(Shown, kw_only=True):
    """A message that the caller now holds until `lease_expires_at`; `token` shows it."""

    token: str


class Attempt(Given, kw_only=True, omit_defaults=False):
    """One lease that ended without completing its message."""

    receives: int
    holder: str | None
    received_at: int
    ended_at: int
    outcome: str
    error: str | None


class Polled(Given, kw_only=True):
    """Messages that the caller now holds."""

    messages: list[Received]


class Page(Given, kw_only=True):
    """Messages; if there may be more, `next` is what to ask for `after`."""

    messages: list[Shown]
    next: str | UnsetType = UNSET


class Blocker(Given, kw_only=True, omit_defaults=False):
    """One reason why a message waits, until when, whose and why."""

    code: str
    until: int | None
    message_id: str | None
    reason: str | None


class Explanation(Given, kw_only=True):
    """Why a message is not being received; no blockers means it can be received now."""

    state: str
    blockers: list[Blocker]


class Outcome(Given, kw_only=True):
    """How far the work on a message is; completed, its `result`; failed, its `error`."""

    id: str
    state: str
    attempts: int
    progress: Raw | UnsetType = UNSET
    result: Raw | UnsetType = UNSET
    error: str | None = None


class Purged(Given, kw_only=True):
    """How many were taken out."""

    purged: int


class Paused(Given, kw_only=True):
    """Whether it is paused now."""

    paused: bool


class Health(Given, kw_only=True):
    """The process runs, and what time it has."""

    status: str
    now: int


class Readiness(Given, kw_only=True):
    """Whether requests can be served, and what an answer promises."""

    status: str
    durability: str
    queues: int


class TaskStarted(Given, kw_only=True):
    """The number of the task that now runs."""

    task: int


class TaskCancelled(Given, kw_only=True, omit_defaults=False):
    """How many messages it took before it was cancelled."""

    done: int


class TaskShown(Given, kw_only=True):
    """A task that runs, and how far it is."""

    task: int
    kind: str
    scope: str
    target: str | None = None
    group: str | None = None
    reason: str | None = None
    rate: Rate | None = None
    done: int
    percent: int


class ScheduleShown(Given, kw_only=True):
    """A schedule as it stands."""

    name: str
    every_ms: int | None = None
    cron: str | None = None
    timezone: str | None = None
    missed: str
    catch_up: int
    grace_ms: int
    last_at: int | None = None
    next_ticks: list[int]
    payload: Raw | str | UnsetType = UNSET
    payload_base64: str | UnsetType = UNSET
    content_type: str
    headers: dict[str, str] | UnsetType = UNSET
    priority: int | None = None
    group: str | None = None
    concurrency_key: str | None = None
    dedup_key: str | None = None
    dedup_ms: int | None = None
    delay_ms: int | None = None
    ttl_ms: int | None = None
    max_attempts: int | None = None
    lease_ms: int | None = None
    result_ms: int | None = None
    retry: dict[str, Any] | None = None


class Event(Given, kw_only=True):
    """Something that happened; `cursor` is its place in the journal."""

    cursor: str
    kind: str
    queue: str | None
    at: int
    message_id: str | None = None
    details: dict[str, Any] = {}
    hydra: list[str] = []


class Compacted(Given, kw_only=True):
    """Free space was given back."""

    status: str
