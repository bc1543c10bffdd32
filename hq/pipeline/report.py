"""What a lake says of queues over a span of time: rates, percentiles, depth, dead letters, objectives.

Counts are those of five-minute windows, so the span begins and ends with one. Percentiles of the whole span
are exact; those of its parts come from sketches, which add up.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession

from hq.errors import InvalidInput
from hq.pipeline.facts import WINDOW_MS
from hq.pipeline.lake import Lake

WEEK_MS = 7 * 24 * 3_600_000
POINTS = 288
"""A plot has about so many."""
SHARES = (0.5, 0.95, 0.99)

# Of the tables that may have no rows, what is asked of them.
_COLUMNS = {
    "attempts": "queue string, received_at timestamp, ended_at timestamp, wait_ms long, work_ms long",
    "messages": (
        "queue string, outcome string, reason string, leases long, enqueued_at timestamp, ended_at timestamp"
    ),
}
_COUNTED = (
    "enqueued", "received", "completed", "retried", "released", "lapsed", "failed", "expired", "depth",
)  # fmt: skip
_COUNTS = """
SELECT queue, sum(enqueued) AS enqueued, sum(received) AS received, sum(completed) AS completed,
       sum(retried) AS retried, sum(released) AS released, sum(lapsed) AS lapsed, sum(failed) AS failed,
       sum(expired) AS expired
FROM {stats} WHERE {inside} GROUP BY queue
"""
_DEPTHS = "SELECT queue, sum(change) AS depth FROM {stats} WHERE window_start < {until} GROUP BY queue"
_WAITS = """
SELECT queue, percentile(wait_ms, array(0.5D, 0.95D, 0.99D)) AS wait_ms,
       count_if(wait_ms <= {slo_ms}) AS in_time, count(wait_ms) AS waits
FROM {attempts} WHERE {received} GROUP BY queue
"""
_WORKS = """
SELECT queue, percentile(work_ms, array(0.5D, 0.95D, 0.99D)) AS work_ms FROM {attempts} WHERE {ended}
GROUP BY queue
"""
_ENDS = """
SELECT queue, avg(leases) AS attempts,
       percentile(unix_millis(ended_at) - unix_millis(enqueued_at), array(0.5D, 0.95D, 0.99D))
           FILTER (WHERE outcome = 'completed') AS total_ms
FROM {messages} WHERE {ended} AND outcome IN ('completed', 'failed') GROUP BY queue
"""
_OLDEST = """
SELECT queue, max(unix_millis({until}) - unix_millis(enqueued_at)) AS oldest_ms
FROM {messages} WHERE outcome = 'open' GROUP BY queue
"""
_REASONS = """
SELECT queue, coalesce(reason, '') AS reason, count(*) AS messages
FROM {messages} WHERE {ended} AND outcome = 'failed' GROUP BY 1, 2 ORDER BY queue, messages DESC, reason
"""
# Depth is what has changed since the lake begins, so every window counts, also those before the span.
_WINDOWS = """
SELECT queue, unix_millis(window_start) DIV {step} * {step} AS start,
       sum(enqueued) AS enqueued, sum(completed) AS completed, sum(retried) AS retried, sum(failed) AS failed,
       sum(change) AS change, sum(waits) AS waits, sum(works) AS works,
       kll_merge_agg_bigint(wait_sketch) AS wait_sketch, kll_merge_agg_bigint(work_sketch) AS work_sketch
FROM {stats} WHERE window_start < {until} GROUP BY 1, 2
"""
_POINTS = """
SELECT queue, start, enqueued, completed, retried, failed,
       sum(change) OVER (PARTITION BY queue ORDER BY start) AS depth,
       CASE WHEN waits > 0 THEN kll_sketch_get_quantile_bigint(wait_sketch, array(0.5D, 0.95D, 0.99D)) END
           AS wait_ms,
       CASE WHEN works > 0 THEN kll_sketch_get_quantile_bigint(work_sketch, array(0.5D, 0.95D, 0.99D)) END
           AS work_ms
FROM {windows} ORDER BY queue, start
"""


class Percentiles(NamedTuple):
    """The half, nineteen of twenty, and ninety-nine of a hundred took no longer."""

    p50: float
    p95: float
    p99: float


class Objective(msgspec.Struct, frozen=True):
    """That this share of messages is received within so long after they are ready."""

    wait_ms: int = 10_000
    share: float = 0.99


class QueueReport(msgspec.Struct, frozen=True, kw_only=True):
    """One queue over the span. Where nothing happened there are no percentiles."""

    queue: str
    enqueued: int = 0
    received: int = 0
    completed: int = 0
    retried: int = 0
    released: int = 0
    lapsed: int = 0
    failed: int = 0
    expired: int = 0
    per_minute: float = 0.0
    """Completed messages."""
    depth: int = 0
    oldest_ms: int | None = None
    attempts: float | None = None
    wait_ms: Percentiles | None = None
    work_ms: Percentiles | None = None
    total_ms: Percentiles | None = None
    retry_rate: float | None = None
    failure_rate: float | None = None
    lapse_rate: float | None = None
    attained: float | None = None
    """The share of receives that met the objective."""
    budget_left: float | None = None
    """What is left of the receives that may miss it: 1 is all of them, below 0 is more than there were."""
    reasons: tuple[tuple[str, int], ...] = ()


class Point(msgspec.Struct, frozen=True, kw_only=True):
    """One queue in one part of the span."""

    queue: str
    start: int
    enqueued: int
    completed: int
    retried: int
    failed: int
    depth: int
    wait_ms: Percentiles | None = None
    work_ms: Percentiles | None = None


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """All of it. Instants are milliseconds since the epoch."""

    since: int
    until: int
    step_ms: int
    objective: Objective
    queues: tuple[QueueReport, ...]
    points: tuple[Point, ...]


def report(  # noqa: PLR0913 - each is a choice of its own
    spark: SparkSession,
    lake: Lake,
    objective: Objective,
    *,
    since: int | None = None,
    until: int | None = None,
    queue: str | None = None,
) -> Report:
    """What happened from one instant up to another: in the last seven days the lake has, if none is said."""
    tables = _Tables(spark, lake, queue)
    last = tables.last_window()
    until = last + WINDOW_MS if until is None else -(-until // WINDOW_MS) * WINDOW_MS
    since = (until - WEEK_MS if since is None else since) // WINDOW_MS * WINDOW_MS
    since = max(since, tables.first_window())
    if since >= until:
        raise InvalidInput("there is nothing in the lake between since and until")
    step = max(1, -(-(until - since) // (POINTS * WINDOW_MS))) * WINDOW_MS
    return Report(
        since=since,
        until=until,
        step_ms=step,
        objective=objective,
        queues=tables.queues(since, until, objective),
        points=tables.points(since, until, step),
    )


class _Tables:
    """The tables of a lake, asked one question at a time."""

    def __init__(self, spark: SparkSession, lake: Lake, queue: str | None) -> None:
        self._spark = spark
        manifest = lake.manifest()
        self._frames = {"stats": lake.read(spark, "stats_5m", manifest)}
        for table, columns in _COLUMNS.items():
            has_rows = bool(manifest.files(table))
            self._frames[table] = (
                lake.read(spark, table, manifest) if has_rows else spark.createDataFrame([], columns)
            )
        if queue is not None:
            self._frames = {name: frame.where(frame.queue == queue) for name, frame in self._frames.items()}

    def last_window(self) -> int:
        return self._window("max")

    def first_window(self) -> int:
        return self._window("min")

    def queues(self, since: int, until: int, objective: Objective) -> tuple[QueueReport, ...]:
        found: dict[str, dict[str, Any]] = {}
        for statement in (_COUNTS, _DEPTHS, _WAITS, _WORKS, _ENDS, _OLDEST):
            for row in self._asked(statement, since, until, slo_ms=objective.wait_ms).collect():
                found.setdefault(row.queue, {}).update(row.asDict())
        reasons: dict[str, list[tuple[str, int]]] = {}
        for row in self._asked(_REASONS, since, until).collect():
            reasons.setdefault(row.queue, []).append((row.reason, row.messages))
        minutes = (until - since) / 60_000
        return tuple(
            _of_queue(found[queue], reasons.get(queue, ()), minutes, objective) for queue in sorted(found)
        )

    def points(self, since: int, until: int, step: int) -> tuple[Point, ...]:
        windows = self._asked(_WINDOWS, since, until, step=step)
        return tuple(
            Point(**{**row.asDict(), "wait_ms": _three(row.wait_ms), "work_ms": _three(row.work_ms)})
            for row in self._spark.sql(_POINTS, windows=windows).collect()
            if row.start + step > since
        )

    def _asked(self, statement: str, since: int, until: int, **values: int) -> DataFrame:
        def within(column: str) -> str:
            return f"{column} >= timestamp_millis({since}) AND {column} < timestamp_millis({until})"

        said = {
            "{inside}": within("window_start"),
            "{received}": within("received_at"),
            "{ended}": within("ended_at"),
            "{until}": f"timestamp_millis({until})",
            **{f"{{{name}}}": str(value) for name, value in values.items()},
        }
        for name, text in said.items():
            statement = statement.replace(name, text)
        return self._spark.sql(statement, **self._named_in(statement))

    def _named_in(self, statement: str) -> dict[str, Any]:
        return {name: frame for name, frame in self._frames.items() if f"{{{name}}}" in statement}

    def _window(self, which: str) -> int:
        [(instant,)] = self._frames["stats"].selectExpr(f"unix_millis({which}(window_start))").collect()
        if instant is None:
            raise InvalidInput("the lake knows nothing of this queue")
        return int(instant)


def _of_queue(row: dict[str, Any], reasons: Any, minutes: float, objective: Objective) -> QueueReport:
    counts = {name: row.get(name) or 0 for name in _COUNTED}
    attained = _share(row.get("in_time"), row.get("waits"))
    missing = 1 - objective.share
    return QueueReport(
        queue=row["queue"],
        **counts,
        per_minute=counts["completed"] / minutes,
        oldest_ms=row.get("oldest_ms"),
        attempts=row.get("attempts"),
        wait_ms=_three(row.get("wait_ms")),
        work_ms=_three(row.get("work_ms")),
        total_ms=_three(row.get("total_ms")),
        retry_rate=_share(counts["retried"], counts["received"]),
        failure_rate=_share(counts["failed"], counts["completed"] + counts["failed"]),
        lapse_rate=_share(counts["lapsed"], counts["received"]),
        attained=attained,
        budget_left=None if attained is None or not missing else 1 - (1 - attained) / missing,
        reasons=tuple(reasons),
    )


def _share(part: int | None, whole: int | None) -> float | None:
    return None if part is None or not whole else part / whole


def _three(values: Any) -> Percentiles | None:
    return None if values is None or values[0] is None else Percentiles(*values)


def write_tables(made: Report, folder: Path) -> None:
    """The report as JSON, and its two tables as Parquet."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "report.json").write_bytes(msgspec.json.format(msgspec.json.encode(made)))
    for name, rows in (("queues", made.queues), ("points", made.points)):
        plain = [_flat(msgspec.to_builtins(row)) for row in rows]
        pq.write_table(pa.Table.from_pylist(plain), folder / f"{name}.parquet")


def _flat(row: dict[str, Any]) -> dict[str, Any]:
    """Percentiles as columns of their own."""
    flat: dict[str, Any] = {}
    for name, value in row.items():
        if name in {"wait_ms", "work_ms", "total_ms"}:
            values = value or [None] * len(SHARES)
            flat |= {f"{name.removesuffix('_ms')}_{part}_ms": one for part, one in
                     zip(Percentiles._fields, values, strict=True)}  # fmt: skip
        elif name == "reasons":
            flat[name] = [{"reason": reason, "messages": count} for reason, count in value]
        else:
            flat[name] = value
    return flat
