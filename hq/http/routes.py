"""The table of routes: everything else about HTTP is made from it."""

from __future__ import annotations

import enum
from typing import Any, NamedTuple

import msgspec

from hq.errors import HQError
from hq.http import extents as x
from hq.http import models as m
from hq.http import queries as q
from hq.http import reports
from hq.http.calls import Handler
from hq.http.dialects.dialect import Dialect
from hq.http.handlers import (
    about,
    backup,
    events,
    export,
    health,
    imports,
    journal,
    look,
    operate,
    queues,
    receive,
    schedules,
    send,
    settle,
    tasks,
)
from hq.http.problems import reply_of
from hq.http.replies import Reply

EVENTS = "text/event-stream"
TABLE = ("application/x-ndjson", "application/vnd.apache.arrow.stream")


class Scope(enum.Enum):
    """What a caller must be allowed to do."""

    ENQUEUE = "enqueue"
    RECEIVE = "receive"
    MANAGE = "manage"
    READ = "read"
    ADMIN = "admin"
    PUBLIC = "public"


class Route(NamedTuple):
    """One address and method: who may, what it takes, what it gives, and who answers.

    `express` routes are also served by the express lane. `writes` says that a timeout leaves it unknown
    whether it happened.
    """

    method: str
    path: str
    scope: Scope
    handler: Handler
    summary: str
    query: type[msgspec.Struct | bytes] = q.NoQuery
    """What its query is: a type, or bytes if the handler reads it, or not."""
    body: Any = None
    """What its body is: a type, or several that it may be; bytes if hq does not look inside."""
    reply: Any = None
    """The same of its reply; a content type, or several, if it is no JSON."""
    status: int = 200
    express: bool = False
    writes: bool = False
    dialect: Dialect | None = None
    """Whose route it is, if it is not hq's own; its path begins after the dialect's prefix."""

    @property
    def address(self) -> str:
        """Where it is on the main port."""
        return self.path if self.dialect is None else self.dialect.prefix + self.path

    def tell(self, error: HQError, now: int) -> Reply:
        """An error as those who ask here know it."""
        return reply_of(error, now) if self.dialect is None else self.dialect.tell(error, now)


ROUTES = [
    Route("POST", "/queues", Scope.MANAGE, queues.create, "Create a queue, or find it if it is the same",
          q.CreateQuery, m.NewQueue, m.QueueShown, 201, writes=True),
    Route("GET", "/queues", Scope.READ, queues.list_all, "List queues by name",
          q.ListQuery, reply=list[m.QueueShown]),
    Route("GET", "/queues/{queue}", Scope.READ, queues.show, "Show a queue", reply=m.QueueShown),
    Route("PUT", "/queues/{queue}", Scope.MANAGE, queues.change, "Change some settings; null clears one",
          q.SettingsQuery, m.ChangedSettings, m.QueueShown, writes=True),
    Route("DELETE", "/queues/{queue}", Scope.MANAGE, queues.delete, "Delete a queue with all it holds",
          status=204, writes=True),
    Route("POST", "/queues/{queue}/enqueue", Scope.ENQUEUE, send.enqueue, "Enqueue the body as it is",
          q.EnqueueQuery, bytes, m.Accepted, express=True, writes=True),
    Route("POST", "/queues/{queue}/messages", Scope.ENQUEUE, send.enqueue_json,
          "Enqueue one JSON message, an array of them, or NDJSON",
          body=(m.NewMessage, list[m.NewMessage]), reply=(m.Accepted, m.Results), status=201,
          express=True, writes=True),
    Route("GET", "/queues/{queue}/receive", Scope.RECEIVE, receive.receive, "Receive one message, or null",
          q.ReceiveQuery, reply=m.Received | None, express=True),
    Route("POST", "/queues/{queue}/poll", Scope.RECEIVE, receive.poll, "Receive up to `batch` messages",
          q.PollQuery, reply=m.Polled, express=True),
    Route("POST", "/receive", Scope.RECEIVE, receive.receive_under,
          "Receive from any queue under a prefix", q.PrefixQuery, reply=m.Polled),
    Route("PUT", "/messages/{id}/complete", Scope.RECEIVE, settle.complete_by_id, "Complete by id",
          reply=m.Settled, express=True, writes=True),
    Route("PUT", "/messages/{id}/fail", Scope.RECEIVE, settle.fail_by_id, "Fail by id",
          reply=m.Settled, express=True, writes=True),
    Route("POST", "/queues/{queue}/ack", Scope.RECEIVE, settle.complete, "Complete one message or many",
          body=(m.HeldComplete, list[m.HeldComplete]), reply=(m.Settled, m.Results), express=True,
          writes=True),
    Route("POST", "/queues/{queue}/nack", Scope.RECEIVE, settle.retry, "Retry one message or many later",
          body=(m.HeldRetry, list[m.HeldRetry]), reply=(m.Settled, m.Results), express=True, writes=True),
    Route("POST", "/queues/{queue}/fail", Scope.RECEIVE, settle.fail, "Make one message or many dead letters",
          body=(m.HeldFail, list[m.HeldFail]), reply=(m.Settled, m.Results), writes=True),
    Route("POST", "/queues/{queue}/release", Scope.RECEIVE, settle.release,
          "Give one message or many back without blame",
          body=(m.Held, list[m.Held]), reply=(m.Settled, m.Results), writes=True),
    Route("POST", "/queues/{queue}/extend", Scope.RECEIVE, settle.extend, "Extend one lease or many",
          body=(m.HeldExtend, list[m.HeldExtend]), reply=(m.Settled, m.Results), writes=True),
    Route("POST", "/queues/{queue}/progress", Scope.RECEIVE, settle.report,
          "Say how far the work on one message or many is",
          body=(m.HeldProgress, list[m.HeldProgress]), reply=(m.Settled, m.Results), writes=True),
    Route("GET", "/queues/{queue}/stats", Scope.READ, look.stats, "The queue in numbers", reply=m.Stats),
    Route("GET", "/queues/{queue}/peek", Scope.READ, look.peek, "The next messages, left where they are",
          q.PeekQuery, reply=m.Page),
    Route("GET", "/queues/{queue}/messages", Scope.READ, look.browse,
          "Messages that wait or are leased, oldest first", q.PageQuery, reply=m.Page),
    Route("GET", "/queues/{queue}/messages/{id}", Scope.READ, look.get, "One message", reply=m.Shown),
    Route("GET", "/queues/{queue}/messages/{id}/explain", Scope.READ, look.explain,
          "Why a message is not being received", reply=m.Explanation),
    Route("GET", "/queues/{queue}/messages/{id}/outcome", Scope.READ, look.outcome,
          "What came of a message, or how far it is", q.OutcomeQuery, reply=m.Outcome),
    Route("DELETE", "/queues/{queue}/messages/{id}", Scope.MANAGE, settle.delete, "Delete a message",
          reply=m.Settled, writes=True),
    Route("POST", "/queues/{queue}/delete", Scope.MANAGE, settle.delete_many, "Delete one message or many",
          body=(m.Named, list[m.Named]), reply=(m.Settled, m.Results), writes=True),
    Route("POST", "/queues/{queue}/requeue", Scope.MANAGE, settle.requeue,
          "Bring one dead letter or many back",
          body=(m.Named, list[m.Named]), reply=(m.Settled, m.Results), writes=True),
    Route("PUT", "/queues/{queue}/by-key", Scope.ENQUEUE, settle.replace,
          "Give the waiting message that holds a dedup key a new payload",
          q.KeyQuery, bytes, m.Settled, writes=True),
    Route("DELETE", "/queues/{queue}/by-key", Scope.MANAGE, settle.delete_by_key,
          "Delete the message that holds a dedup key", q.KeyQuery, reply=m.Settled, writes=True),
    Route("POST", "/queues/{queue}/purge", Scope.MANAGE, operate.purge, "Take out what waits or is leased",
          reply=m.Purged, writes=True),
    Route("POST", "/queues/{queue}/pause", Scope.MANAGE, operate.pause, "Accept messages, hand none out",
          q.PauseQuery, reply=m.Paused, writes=True),
    Route("POST", "/queues/{queue}/resume", Scope.MANAGE, operate.resume, "Hand messages out again",
          q.GroupQuery, reply=m.Paused, writes=True),
    Route("GET", "/queues/{queue}/dlq", Scope.READ, look.dead_letters, "Dead letters, oldest first",
          q.PageQuery, reply=m.Page),
    Route("DELETE", "/queues/{queue}/dlq", Scope.MANAGE, operate.purge_dead_letters,
          "Take out all dead letters", reply=m.Purged, writes=True),
    Route("POST", "/queues/{queue}/dlq/requeue", Scope.MANAGE, tasks.requeue_dead_letters,
          "Start bringing dead letters back", body=m.RequeueTask, reply=m.TaskStarted, status=202,
          writes=True),
    Route("GET", "/queues/{queue}/tasks", Scope.READ, tasks.list_all, "The tasks that run",
          reply=list[m.TaskShown]),
    Route("POST", "/queues/{queue}/tasks", Scope.MANAGE, tasks.start,
          "Start requeueing, moving or deleting many messages", body=m.NewTask, reply=m.TaskStarted,
          status=202, writes=True),
    Route("GET", "/queues/{queue}/tasks/{task}", Scope.READ, tasks.show, "How far a task is",
          reply=m.TaskShown),
    Route("DELETE", "/queues/{queue}/tasks/{task}", Scope.MANAGE, tasks.cancel, "Stop a task where it is",
          reply=m.TaskCancelled, writes=True),
    Route("GET", "/queues/{queue}/schedules", Scope.READ, schedules.list_all, "Schedules by name",
          reply=list[m.ScheduleShown]),
    Route("GET", "/queues/{queue}/schedules/{name}", Scope.READ, schedules.show, "One schedule",
          reply=m.ScheduleShown),
    Route("PUT", "/queues/{queue}/schedules/{name}", Scope.MANAGE, schedules.put,
          "Add a schedule or change it", body=m.NewSchedule, reply=m.ScheduleShown, writes=True),
    Route("DELETE", "/queues/{queue}/schedules/{name}", Scope.MANAGE, schedules.remove, "Remove a schedule",
          status=204, writes=True),
    Route("POST", "/queues/{queue}/compact", Scope.MANAGE, operate.compact,
          "Give free space of the store back", reply=m.Compacted),
    Route("GET", "/queues/{queue}/export", Scope.READ, export.export,
          "Messages or dead letters in bulk, as NDJSON or Arrow", q.ExportQuery, reply=TABLE),
    Route("POST", "/queues/{queue}/import", Scope.ENQUEUE, imports.import_lines,
          "Enqueue lines of NDJSON, as an export has them; a line that comes again is known",
          q.ImportQuery, bytes, reports.Imported, writes=True),
    Route("GET", "/journal", Scope.ADMIN, journal.journal, "Every event of every queue, as NDJSON or Arrow",
          q.JournalQuery, reply=TABLE),
    Route("GET", "/journal/bounds", Scope.ADMIN, journal.bounds, "Which positions the journal has",
          q.BoundsQuery, reply=x.JournalBounds),
    Route("PUT", "/journal/archived", Scope.ADMIN, journal.archived, "Say up to where a lake has the journal",
          body=x.NewArchived, reply=x.Archived, writes=True),
    Route("GET", "/events", Scope.READ, events.events, "What happens, as server-sent events",
          q.EventsQuery, reply=EVENTS),
    Route("GET", "/queues/{queue}/events", Scope.READ, events.queue_events,
          "What happens to a queue, as server-sent events", q.QueueEventsQuery, reply=EVENTS),
    Route("GET", "/backup", Scope.ADMIN, backup.backup, "All there is, as a file that can be restored",
          reply=backup.SQLITE),
    Route("GET", "/examine", Scope.ADMIN, health.examine,
          "Read all that is stored, and tell what cannot be read", q.ExamineQuery, reply=reports.Examined),
    Route("GET", "/metrics", Scope.READ, about.metrics, "For Prometheus", reply="text/plain"),
    Route("GET", "/openapi.json", Scope.PUBLIC, about.openapi, "This, for programs", reply=dict[str, Any]),
    Route("GET", "/docs", Scope.PUBLIC, about.page, "This, for people", reply="text/html"),
    Route("GET", "/healthz", Scope.PUBLIC, health.healthz, "Whether the process runs", reply=m.Health),
    Route("GET", "/readyz", Scope.PUBLIC, health.readyz, "Whether it can store", reply=m.Readiness),
]  # fmt: skip
