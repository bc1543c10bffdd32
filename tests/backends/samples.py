"""One of each kind of event, a snapshot and rows with nothing left to its default, for round trips."""

from dataclasses import fields

from hq.domain import events as e
from hq.domain.checkpoint import Snapshot
from hq.domain.counters import Counters
from hq.domain.messages import FAILED, LEASED, NO_PRIORITY, PLAIN, WAITING, Attempt, Message, Options
from hq.domain.schedules import Missed, Planned, Schedule
from hq.domain.settings import Backoff, DedupScope, Groups, Rate, RetryPolicy, Settings
from hq.domain.tasks import Scope, Task, TaskKind

LONG = 1 << 57
BYTES = bytes(range(256))
TEXT = "Grüße, 世界 \U0001f600 \n\t\"'\\"

POLICY = RetryPolicy(Backoff.LINEAR, base_ms=5, factor=3, cap_ms=77, jitter_percent=50)
OPTIONS = Options(
    content_type="application/json",
    headers=(("traceparent", "00-ab"), (TEXT, TEXT), ("same", "1"), ("same", "2")),
    priority=-7,
    group=TEXT,
    dedup_key=TEXT,
    dedup_ms=1,
    delay_ms=2,
    ttl_ms=3,
    max_attempts=4,
    lease_ms=5,
    retry=POLICY,
)
KEYED = Options(concurrency_key=TEXT, priority=0)
SETTINGS = Settings(
    max_attempts=None,
    lease_ms=1,
    retry=POLICY,
    delay_ms=2,
    ttl_ms=3,
    dedup_ms=4,
    dedup_scope=DedupScope.GROUP,
    groups=Groups.FIFO,
    concurrency=5,
    concurrency_per_key=6,
    capacity=7,
    enqueue_rate=Rate(8, 9, 10),
    receive_rate=Rate(11, 12, 13),
    max_payload_bytes=14,
    dead_letter_queue="dead.letters",
    failed_ms=15,
)
HISTORY = (Attempt(1, TEXT, 2, 3, "retried", TEXT), Attempt(2, None, 4, 5, "lapsed", None))
SCHEDULE = Schedule("nightly", "0 3 * * *", BYTES, KEYED, Missed.CATCH_UP, catch_up=3, grace_ms=9)
TASK = Task(
    3, TaskKind.MOVE, Scope.FAILED, "target", TEXT, "attempts", Rate(1, 2, 3), up_to=LONG, cursor=5, done=6,
    next_at=7,
)  # fmt: skip
BARE_TASK = Task(4, TaskKind.REQUEUE, Scope.FAILED, None, None, None, None, up_to=1)

_EVENTS = [
    lambda n: e.Enqueued(n, 1, BYTES, OPTIONS, -7, 3, 4, 5, 6, TEXT, HISTORY, takes_key=False),
    lambda n: e.Enqueued(n, 1, b"", PLAIN, NO_PRIORITY, 3, None, None, 6),
    lambda n: e.Received(n, 2, 1, 3, 2, BYTES[:32], TEXT, LONG),
    lambda n: e.Received(n, 2, 1, 3, 2, BYTES[:32], None, 9),
    lambda n: e.Completed(n, 3, 1, LEASED),
    lambda n: e.Completed(n, 3, 1, LEASED, BYTES, 99),
    lambda n: e.Retried(n, 4, 1, 99, TEXT),
    lambda n: e.Retried(n, 4, 1, 99, None),
    lambda n: e.Released(n, 5, 1, 0),
    lambda n: e.Lapsed(n, 6, 1),
    lambda n: e.Extended(n, 7, 1, LONG),
    lambda n: e.Failed(n, 8, 1, WAITING, "attempts", TEXT, 99),
    lambda n: e.Failed(n, 8, 1, LEASED, "failed", None, 99),
    lambda n: e.Expired(n, 9, 1),
    lambda n: e.Deleted(n, 10, 1, FAILED, "retention"),
    lambda n: e.Replaced(n, 11, 1, BYTES),
    lambda n: e.Requeued(n, 12, 1, 13, None, None, takes_key=True),
    lambda n: e.Requeued(n, 12, 1, 13, 14, 15, takes_key=False),
    lambda n: e.Purged(n, 13, Scope.FAILED, LONG),
    lambda n: e.MoveStarted(n, 14, 1, FAILED, 2, "dead.letters"),
    lambda n: e.Moved(n, 15, 1, 2),
    lambda n: e.MoveReturned(n, 16, 1, 2, 99),
    lambda n: e.MoveTaken(n, 17, 2, LONG),
    lambda n: e.Paused(n, 18, TEXT),
    lambda n: e.Resumed(n, 19),
    lambda n: e.GroupPaused(n, 20, TEXT, ""),
    lambda n: e.GroupResumed(n, 21, TEXT),
    lambda n: e.Configured(n, 22, SETTINGS, LONG, 2),
    lambda n: e.Claimed(n, 23, 1),
    lambda n: e.EnqueueRateSpent(n, 24, LONG),
    lambda n: e.ReceiveRateSpent(n, 25, LONG),
    lambda n: e.Scheduled(n, 26, SCHEDULE, LONG),
    lambda n: e.Unscheduled(n, 27, "nightly"),
    lambda n: e.Ticked(n, 28, "nightly", 2, 3, 1),
    lambda n: e.TaskStarted(n, 29, TASK),
    lambda n: e.TaskAdvanced(n, 30, BARE_TASK),
    lambda n: e.TaskEnded(n, 31, TASK, "cancelled"),
    lambda n: e.Progressed(n, 32, 1, BYTES),
    lambda n: e.Forgotten(n, 33, 1),
    lambda n: e.Duplicated(n, 34, 1, TEXT),
]
EVENTS = [event(number) for number, event in enumerate(_EVENTS, start=1)]

SNAPSHOT = Snapshot(
    settings=SETTINGS,
    sequence=LONG,
    time=2,
    epoch=3,
    counters=Counters(*range(1, 14)),
    purged={Scope.LIVE: 4, Scope.FAILED: 5},
    paused=TEXT,
    paused_groups={TEXT: "", "": TEXT},
    enqueue_mark=6,
    receive_mark=LONG,
    schedules={"nightly": Planned(SCHEDULE, 7, 8), "new": Planned(Schedule("new", "x"), 9)},
    tasks={3: TASK, 4: BARE_TASK},
    next_task=5,
    moves={1: 11, 2: LONG},
    next_move=3,
    taken={7: 8},
    used_at=9,
    changed_at=LONG,
)

_NAMES = [field.name for field in fields(Message)]
COLUMNS = _NAMES[: _NAMES.index("progress") + 1]


def row(sequence, options=PLAIN, payload=b"payload", **columns):
    """A waiting row, ready from its enqueue on, with other columns where given."""
    at = columns.get("enqueued_at", 0)
    started = {
        "rank": NO_PRIORITY if options.priority is None else options.priority,
        "enqueued_at": at,
        "available_at": at,
        "expires_at": None,
        "place": None,
        "dedup_until": at,
        "origin_id": None,
        "as_of": sequence,
    }
    return Message(sequence, options, payload, **{**started, **columns})


def columns(message):
    """All a row says, to compare; what memory notes beside it is left out."""
    return {name: getattr(message, name) for name in COLUMNS}


FULL_ROW = row(
    7, OPTIONS, BYTES, rank=-7, enqueued_at=1, available_at=2, expires_at=3, place=4, dedup_until=5,
    origin_id=TEXT, as_of=LONG, state=FAILED, holds_key=True, receives=6, attempts=5,
    token_hash=BYTES[:32], holder=TEXT, received_at=7, lease_expires_at=8, history=HISTORY, failed_at=9,
    kept_until=10, reason="attempts", error=TEXT, move=11, target="dead.letters",
    progress=BYTES,
)  # fmt: skip
