"""The events of messages in order, each with what came before it: what all other tables are made from."""

from __future__ import annotations

from pyspark.sql import DataFrame, SparkSession

ENDS = ("completed", "retried", "released", "lapsed", "failed", "expired", "deleted", "move_started")
STATES = ("enqueued", "received", "extended", "requeued", *ENDS)
"""The events that change what a message is, or how long its lease is."""

_NOTHING = "CAST(NULL AS TIMESTAMP)"
# After an event: since when the message is ready, or since when it is leased, and by which receive.
_STATE = f"""
CASE WHEN event IN ('enqueued', 'retried', 'requeued')
         THEN named_struct('ready_at', available_at, 'received_at', {_NOTHING}, 'receives', 0)
     WHEN event IN ('released', 'lapsed')
         THEN named_struct('ready_at', at, 'received_at', {_NOTHING}, 'receives', 0)
     WHEN event = 'received'
         THEN named_struct('ready_at', {_NOTHING}, 'received_at', at, 'receives', receives)
     WHEN event <> 'extended'
         THEN named_struct('ready_at', {_NOTHING}, 'received_at', {_NOTHING}, 'receives', 0)
END
"""
_BEFORE = """
OVER (PARTITION BY message_id ORDER BY position, sequence
      ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)
"""
_IN_ORDER = f"""
SELECT *, last(state, true) {_BEFORE} AS prior, last(lease_expires_at, true) {_BEFORE} AS lease_end
FROM (SELECT *, {_STATE} AS state FROM {{events}})
"""  # noqa: S608 - constants
# A lease that ended by itself says so, or made a dead letter of a message that had no attempts left.
_TOLD = f"""
SELECT * EXCEPT (state, prior, lease_end),
       state.ready_at, prior.received_at, prior.receives AS attempt,
       CASE WHEN event = 'received'
            THEN greatest(unix_millis(at) - unix_millis(prior.ready_at), 0) END AS wait_ms,
       CASE WHEN event <> 'extended'
            THEN unix_millis(at) - unix_millis(prior.received_at) END AS work_ms,
       prior.received_at IS NOT NULL AND (event = 'lapsed' OR (
            event = 'failed' AND reason = 'attempts' AND error IS NULL AND at >= lease_end)) AS lapsed,
       coalesce(was, CASE WHEN prior.received_at IS NULL THEN 'waiting' ELSE 'leased' END) AS from_state
FROM ({_IN_ORDER})
"""  # noqa: S608 - constants


def timeline(spark: SparkSession, events: DataFrame) -> DataFrame:
    """Events of messages, with what was before each of them."""
    wanted = events.where(events.event.isin(*STATES) & events.message_id.isNotNull()).selectExpr(
        "position", "sequence", "event", "at", "coalesce(queue, '') AS queue", "message_id", "receives",
        "attempts", "holder", "lease_expires_at", "available_at", "was", "reason", "error", "priority",
        "`group`", "dedup_key", "origin_id", "content_type", "octet_length(payload) AS payload_bytes",
    )  # fmt: skip
    return spark.sql(_TOLD, events=wanted)
