"""Every error hq tells, once: what happened, who can fix it, and a stable code.

The docstring of a class is its default text. `CallerError` is the caller's to fix and certainly changed
nothing; `BrokenInvariant` is hq's own fault and stops the queue rather than go on wrongly.
"""

from __future__ import annotations

import inspect
from typing import ClassVar


class HQError(Exception):
    """Something went wrong in hq."""

    code: ClassVar[str] = "error"

    def __init__(self, detail: str | None = None) -> None:
        super().__init__(detail or inspect.cleandoc(type(self).__doc__ or ""))


class CallerError(HQError):
    """The request was refused and nothing has changed."""

    code = "refused"


class InvalidInput(CallerError):
    """A value is malformed or out of its range."""

    code = "invalid_input"


class QueueNotFound(CallerError):
    """There is no queue of this name."""

    code = "queue_not_found"


class QueueExists(CallerError):
    """There is already a queue of this name with other settings."""

    code = "queue_exists"


class MessageNotFound(CallerError):
    """There is no such message: it never was, or it is settled."""

    code = "message_not_found"


class LeaseNotHeld(CallerError):
    """This token is not the message's latest, or the message is not leased."""

    code = "lease_not_held"


class LeaseExpired(CallerError):
    """The lease ended before this call; the message may already be with another holder."""

    code = "lease_expired"


class MessageNotWaiting(CallerError):
    """Only a waiting message can be changed; this one is leased."""

    code = "message_not_waiting"


class MessageNotFailed(CallerError):
    """Only a failed message can be requeued."""

    code = "message_not_failed"


class PayloadTooLarge(CallerError):
    """The payload is larger than this queue takes."""

    code = "payload_too_large"


class QueueFull(CallerError):
    """The queue holds as many messages as its capacity allows."""

    code = "queue_full"


class RateLimited(CallerError):
    """The queue's rate is used up for now."""

    code = "rate_limited"

    def __init__(self, retry_at: int) -> None:
        super().__init__()
        self.retry_at = retry_at


class ScheduleNotFound(CallerError):
    """There is no schedule of this name in the queue."""

    code = "schedule_not_found"


class TaskNotFound(CallerError):
    """There is no running task of this number in the queue."""

    code = "task_not_found"


class TooManyTasks(CallerError):
    """The queue runs as many tasks as it may; wait for one to end or cancel one."""

    code = "too_many_tasks"


class SettingFixed(CallerError):
    """This setting is fixed when the queue is created."""

    code = "setting_fixed"


class BrokenInvariant(HQError):
    """hq's own rules contradict each other; the queue stops instead of going on wrongly."""

    code = "broken_invariant"


class Overloaded(CallerError):
    """The queue has more requests waiting than it takes; try again shortly."""

    code = "overloaded"


class MemoryFull(CallerError):
    """The byte budget of this process is used up; try again shortly."""

    code = "memory_full"


class Closed(CallerError):
    """The system is closed; open it again."""

    code = "closed"


class OutcomeUnknown(HQError):
    """It may or may not have happened: storage did not say. Look before you repeat it."""

    code = "outcome_unknown"


class Unreachable(HQError):
    """The server does not answer; what was asked of it has changed nothing."""

    code = "unreachable"


class NotStored(HQError):
    """Storage could not write this, and certainly has not; nothing has changed."""

    code = "not_stored"


class NotOwner(HQError):
    """Another node has taken over this queue; nothing has changed."""

    code = "not_owner"


class QueueUnavailable(HQError):
    """The queue cannot be loaded at present; the log of its node says why."""

    code = "queue_unavailable"


class StorageError(HQError):
    """Storage cannot do what hq needs; its operator can help."""

    code = "storage"


class JournalDamaged(StorageError):
    """Events in the journal are damaged; the queue stops, and `hq doctor` says where."""

    code = "journal_damaged"


class RowDamaged(StorageError):
    """A stored message is damaged; it is told, never served."""

    code = "row_damaged"


class SnapshotDamaged(StorageError):
    """What a queue stored of itself is damaged; the queue stops, and `hq doctor` says where."""

    code = "snapshot_damaged"


class SchemaTooNew(StorageError):
    """This database was written by a newer hq; run that version, or restore an older backup."""

    code = "schema_too_new"


class DatabaseInUse(StorageError):
    """Another hq process holds this database; stop it, or connect to it instead."""

    code = "database_in_use"


class StoreNotEmpty(CallerError):
    """A backup is restored where there is no database yet; name a new file or an empty schema."""

    code = "store_not_empty"


class DatabaseLocked(StorageError):
    """Another program has locked the database file; close it there and try again."""

    code = "database_locked"


class DatabaseCorrupt(StorageError):
    """The file is no SQLite database, or a damaged one; restore a backup or name another file."""

    code = "database_corrupt"


class DatabaseReadOnly(StorageError):
    """The database file or its folder cannot be written by this user; change its owner or mode."""

    code = "database_read_only"


class DatabaseMissing(StorageError):
    """The folder of the database is not there or cannot be entered; make it first."""

    code = "database_missing"


class StorageFull(StorageError):
    """The disk is full; make room and hq goes on by itself."""

    code = "storage_full"


class StorageTimeout(StorageError):
    """Storage did not answer in time; look at the disk and its load."""

    code = "storage_timeout"


class DatabaseUnreachable(StorageError):
    """The database cannot be reached; see that it runs and that the URL leads to it."""

    code = "database_unreachable"


class ClockOff(StorageError):
    """The clocks of this machine and of the database differ by too much; set them right."""

    code = "clock_off"


class StorageUnsafe(StorageError):
    """The database did not take a setting that durability rests on; hq does not start on it."""

    code = "storage_unsafe"


class NotAttached(CallerError):
    """This task's worker is not attached to a system: call attach, or run the worker, first.

    A system of hq.blocking is for enqueue_blocking, any other for enqueue.
    """

    code = "not_attached"


class JobFailed(HQError):
    """The job is a dead letter; this is the error of its last attempt."""

    code = "job_failed"


class NotFinished(HQError):
    """The job is not over yet."""

    code = "not_finished"


class UsedAfterFork(CallerError):
    """This system was opened before the process forked; open one of its own in the child."""

    code = "used_after_fork"


class UsedElsewhere(CallerError):
    """A system works in the event loop that opened it; in threads and scripts use hq.blocking."""

    code = "used_elsewhere"


class UnsupportedUrl(CallerError):
    """hq opens memory:, sqlite:///path, a path, postgresql://user@host/database, or http://host:port."""

    code = "unsupported_url"


class ConfigInvalid(CallerError):
    """The configuration has a key that is unknown, or a value that is not allowed."""

    code = "config_invalid"


class PayloadUnreadable(CallerError):
    """The payload is not what its content type says; its bytes are in `body`."""

    code = "payload_unreadable"


class JournalPruned(HQError):
    """This part of the journal is no longer kept."""

    code = "journal_pruned"

    def __init__(self, first: int) -> None:
        super().__init__(f"this part of the journal is no longer kept; what there is begins at {first}")
        self.first = first
