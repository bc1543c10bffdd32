"""What is made of a timeline: a row for every message, for every attempt, and for every five minutes."""

from __future__ import annotations

from pyspark.sql import DataFrame, SparkSession

WINDOW_MS = 300_000
DAY = "date_from_unix_date(CAST(unix_millis({at}) DIV 86400000 AS INT)) AS day"
_ORDER = "struct(position, sequence)"

# A dead letter stays one when it is moved to its queue of dead letters, or is kept no longer.
_MESSAGES = f"""
SELECT message_id, max(queue) AS queue,
       min(at) FILTER (WHERE event = 'enqueued') AS enqueued_at,
       min(at) FILTER (WHERE event = 'received') AS first_received_at,
       count_if(event = 'received') AS leases, count_if(event = 'retried') AS retries,
       count_if(lapsed) AS lapses, max(attempts) AS attempts,
       min_by(wait_ms, {_ORDER}) FILTER (WHERE event = 'received') AS wait_ms,
       sum(work_ms) AS work_ms,
       max_by(reason, {_ORDER}) FILTER (WHERE event = 'failed') AS reason,
       max_by(error, {_ORDER}) FILTER (WHERE error IS NOT NULL) AS error,
       max(priority) AS priority, max(`group`) AS `group`, max(dedup_key) AS dedup_key,
       max(origin_id) AS origin_id, max(content_type) AS content_type, max(payload_bytes) AS payload_bytes,
       max_by(struct(event, at, position, sequence), {_ORDER})
           FILTER (WHERE event NOT IN ('deleted', 'move_started') OR was <> 'failed') AS last,
       min(at) AS seen_at
FROM {{timeline}} GROUP BY message_id
"""  # noqa: S608 - constants
_OUTCOMES = f"""
SELECT * EXCEPT (last, seen_at),
       CASE WHEN last.event IN ('completed', 'failed', 'expired', 'deleted') THEN last.event
            WHEN last.event = 'move_started' THEN 'moved'
            WHEN purged_at IS NOT NULL THEN 'purged' ELSE 'open' END AS outcome,
       CASE WHEN last.event IN ('completed', 'failed', 'expired', 'deleted', 'move_started') THEN last.at
            ELSE purged_at END AS ended_at,
       {DAY.format(at="coalesce(enqueued_at, seen_at)")}
FROM (
    SELECT m.*, (SELECT min(p.at) FROM {{purges}} p
                 WHERE p.queue = m.queue
                   AND struct(p.position, p.sequence) > struct(m.last.position, m.last.sequence)) AS purged_at
    FROM ({_MESSAGES}) m)
"""  # noqa: S608 - constants
_ATTEMPTS = """
SELECT message_id, coalesce(CASE WHEN event = 'received' THEN receives END, attempt) AS receive,
       max(queue) AS queue, max(holder) FILTER (WHERE event = 'received') AS holder,
       min(at) FILTER (WHERE event = 'received') AS received_at,
       min(wait_ms) AS wait_ms,
       min(at) FILTER (WHERE event <> 'received') AS ended_at,
       coalesce(min(CASE WHEN lapsed THEN 'lapsed' ELSE event END) FILTER (WHERE event <> 'received'), 'open')
           AS result,
       min(work_ms) AS work_ms,
       max(reason) AS reason, max(error) AS error
FROM {timeline}
WHERE event = 'received' OR (received_at IS NOT NULL AND event <> 'extended')
GROUP BY message_id, coalesce(CASE WHEN event = 'received' THEN receives END, attempt)
"""
# What comes in and what leaves: the depth of a queue is the sum of all changes before.
_CHANGE = """
CASE WHEN event IN ('enqueued', 'requeued') THEN 1
     WHEN event IN ('completed', 'failed', 'expired', 'deleted', 'move_started')
          AND from_state IN ('waiting', 'leased') THEN -1 ELSE 0 END
"""
_STATS = f"""
SELECT queue, timestamp_millis((unix_millis(at) DIV {WINDOW_MS}) * {WINDOW_MS}) AS window_start,
       count_if(event = 'enqueued') AS enqueued, count_if(event = 'received') AS received,
       count_if(event = 'completed') AS completed, count_if(event = 'retried') AS retried,
       count_if(event = 'released') AS released, count_if(lapsed) AS lapsed,
       count_if(event = 'failed') AS failed, count_if(event = 'expired') AS expired,
       sum({_CHANGE}) AS change,
       count(wait_ms) AS waits, kll_sketch_agg_bigint(wait_ms) AS wait_sketch,
       count(work_ms) AS works, kll_sketch_agg_bigint(work_ms) AS work_sketch
FROM {{timeline}} GROUP BY 1, 2
UNION ALL
SELECT queue, timestamp_millis((unix_millis(at) DIV {WINDOW_MS}) * {WINDOW_MS}),
       0, 0, 0, 0, 0, 0, 0, 0, -count, 0, NULL, 0, NULL FROM {{purges}}
"""  # noqa: S608 - constants
COUNTS = (
    "enqueued", "received", "completed", "retried", "released", "lapsed", "failed", "expired", "change",
    "waits", "works",
)  # fmt: skip
_MERGED = f"""
SELECT queue, window_start, {", ".join(f"sum({name}) AS {name}" for name in COUNTS)},
       kll_merge_agg_bigint(wait_sketch) AS wait_sketch, kll_merge_agg_bigint(work_sketch) AS work_sketch,
       {DAY.format(at="window_start")}
FROM {{stats}} GROUP BY queue, window_start
"""  # noqa: S608 - constants
_PURGES = """
SELECT queue, position, sequence, at, CAST(get_json_object(detail, '$.count') AS BIGINT) AS count
FROM {events} WHERE event = 'purged' AND get_json_object(detail, '$.scope') = 'live'
"""


def purges(spark: SparkSession, events: DataFrame) -> DataFrame:
    """Every time a queue was emptied, and of how many messages."""
    return spark.sql(_PURGES, events=events)


def messages(spark: SparkSession, timeline: DataFrame, purged: DataFrame) -> DataFrame:
    """What came of each message."""
    return spark.sql(_OUTCOMES, timeline=timeline, purges=purged)


def attempts(spark: SparkSession, timeline: DataFrame) -> DataFrame:
    """What came of each lease."""
    made = spark.sql(_ATTEMPTS, timeline=timeline)
    return made.selectExpr("*", DAY.format(at="coalesce(received_at, ended_at)"))


def stats(spark: SparkSession, timeline: DataFrame, purged: DataFrame, before: DataFrame | None) -> DataFrame:
    """What happened in each five minutes, added to what is known of them."""
    made = spark.sql(_STATS, timeline=timeline, purges=purged)
    if before is not None:
        made = made.unionByName(before.select(made.columns))
    return spark.sql(_MERGED, stats=made)
