"""What routes take as query parameters. What hq does not know, it refuses."""

from __future__ import annotations

from msgspec import UNSET, UnsetType

from hq.http.models import Taken


class NoQuery(Taken, kw_only=True):
    """No query parameters."""


class SettingsQuery(Taken, kw_only=True):
    """Plain settings as query parameters."""

    max_attempts: int | UnsetType = UNSET
    lease_ms: int | UnsetType = UNSET
    delay_ms: int | UnsetType = UNSET
    ttl_ms: int | UnsetType = UNSET
    dedup_ms: int | UnsetType = UNSET
    dedup_scope: str | UnsetType = UNSET
    groups: str | UnsetType = UNSET
    concurrency: int | UnsetType = UNSET
    concurrency_per_key: int | UnsetType = UNSET
    capacity: int | UnsetType = UNSET
    max_payload_bytes: int | UnsetType = UNSET
    dead_letter_queue: str | UnsetType = UNSET
    failed_ms: int | UnsetType = UNSET
    visibility_timeout_seconds: int | UnsetType = UNSET
    visibility_ms: int | UnsetType = UNSET
    dlq: str | UnsetType = UNSET


class CreateQuery(SettingsQuery, kw_only=True):
    """A queue to be made, all in the query."""

    name: str | UnsetType = UNSET


class ListQuery(Taken, kw_only=True):
    """A page of the list, with or without counts, which wake every queue of the page."""

    after: str = ""
    limit: int = 100
    counts: bool = False


class EnqueueQuery(Taken, kw_only=True):
    """Options of one message, for the route whose body is the payload."""

    priority: int | UnsetType = UNSET
    group: str | UnsetType = UNSET
    concurrency_key: str | UnsetType = UNSET
    dedup_key: str | UnsetType = UNSET
    idempotency_key: str | UnsetType = UNSET
    dedup_ms: int | UnsetType = UNSET
    delay_ms: int | UnsetType = UNSET
    ttl_ms: int | UnsetType = UNSET
    max_attempts: int | UnsetType = UNSET
    lease_ms: int | UnsetType = UNSET
    result_ms: int | UnsetType = UNSET


class OutcomeQuery(Taken, kw_only=True):
    """How long to wait until it is over."""

    wait_ms: int = 0


class ReceiveQuery(Taken, kw_only=True):
    """How long to wait for a message, and for how long to lease it."""

    wait_ms: int = 0
    lease_ms: int | None = None
    holder: str | None = None


class PollQuery(ReceiveQuery, kw_only=True):
    """The same, for up to so many messages."""

    batch: int = 1
    visibility_ms: int | None = None


class PrefixQuery(PollQuery, kw_only=True):
    """The same, over all queues under a prefix."""

    prefix: str


class PeekQuery(Taken, kw_only=True):
    """How many to show."""

    limit: int = 1


class PageQuery(Taken, kw_only=True):
    """A page: what comes after an id."""

    after: str | None = None
    limit: int = 100


class GroupQuery(Taken, kw_only=True):
    """One group, or the whole queue."""

    group: str | None = None


class PauseQuery(GroupQuery, kw_only=True):
    """The same, and why."""

    reason: str = ""


class KeyQuery(Taken, kw_only=True):
    """A dedup key, and its group where keys are per group."""

    dedup_key: str
    group: str | None = None


class QueueEventsQuery(Taken, kw_only=True):
    """After which event, and which kinds, separated by commas."""

    after: str | None = None
    kinds: str | None = None


class EventsQuery(QueueEventsQuery, kw_only=True):
    """The same, of one queue or of all under a prefix."""

    queue: str | None = None
    prefix: str | None = None


class JournalQuery(Taken, kw_only=True):
    """From where and up to where, how many entries at most, of which queue, and which columns of them."""

    after: int = 0
    upto: int = 1 << 62
    limit: int = 1_000
    queue: str | None = None
    columns: str | None = None


class BoundsQuery(Taken, kw_only=True):
    """After which position, how many events are asked to reach how far, and up to where they are counted."""

    after: int = 0
    events: int | None = None
    upto: int | None = None


class ExportQuery(Taken, kw_only=True):
    """Which messages, from where and up to where by sequence, how many at most, and which columns of them."""

    table: str = "messages"
    after: int = 0
    upto: int = (1 << 58) - 1
    limit: int = 1_000
    columns: str | None = None


class ImportQuery(Taken, kw_only=True):
    """Which file the lines are of, and the number of their first."""

    source: str = ""
    first: int = 1


class ExamineQuery(Taken, kw_only=True):
    """How many damaged things to tell of."""

    most: int = 100
