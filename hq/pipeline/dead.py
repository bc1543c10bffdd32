"""Dead letters by what went wrong: errors that differ only in numbers and names are one signature."""

from __future__ import annotations

from typing import NamedTuple

from pyspark.sql import SparkSession

from hq.pipeline.lake import Lake

SAMPLES = 3
_SIGNATURES = """
SELECT queue, coalesce(reason, '') AS reason,
       substring(trim(regexp_replace(regexp_replace(regexp_replace(
           split(coalesce(error, ''), '\\n')[0],
           '[0-9a-fA-F]{{8}}-[0-9a-fA-F-]{{27}}|0x[0-9a-fA-F]+|\\\\b[0-9a-fA-F]{{16,}}\\\\b', '<id>'),
           '"[^"]*"|\\\\x27[^\\\\x27]*\\\\x27', '<text>'),
           '[0-9]+', '<n>')), 1, 200) AS signature,
       count(*) AS messages, unix_millis(min(ended_at)) AS first_at, unix_millis(max(ended_at)) AS last_at,
       slice(sort_array(collect_list(message_id)), 1, {samples}) AS samples
FROM {messages} WHERE outcome = 'failed'
GROUP BY 1, 2, 3 ORDER BY messages DESC, queue, signature
"""


class Signature(NamedTuple):
    """One way in which messages of a queue fail."""

    queue: str
    reason: str
    signature: str
    messages: int
    first_at: int
    last_at: int
    samples: list[str]


def dead(spark: SparkSession, lake: Lake, *, queue: str | None = None, limit: int = 20) -> list[Signature]:
    """The most frequent ways first, at most so many."""
    messages = lake.read(spark, "messages")
    if queue is not None:
        messages = messages.where(messages.queue == queue)
    found = spark.sql(_SIGNATURES.replace("{samples}", str(SAMPLES)), messages=messages).limit(limit)
    return [Signature(*row) for row in found.collect()]
