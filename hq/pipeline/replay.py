"""Messages of the lake back into queues: those a predicate names, each once under the name of the replay.

A message's key is the replay's name and its id. The same replay run again adds what is missing; another name
is another replay.
"""

from __future__ import annotations

from hashlib import sha256
from typing import NamedTuple

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as f

from hq.errors import InvalidInput
from hq.pipeline.lake import Lake
from hq.pipeline.sending import Sent, send
from hq.pipeline.store import Place


class Replay(NamedTuple):
    """Which messages, as SQL over the table of messages, where to, and how fast."""

    where: str
    to: str | None = None
    """Another queue than they came from."""
    name: str | None = None
    rate: int | None = None
    dedup_ms: int | None = None

    @property
    def key(self) -> str:
        """Its name, or one made of what it says."""
        return self.name or sha256(f"{self.where}\n{self.to or ''}".encode()).hexdigest()[:16]


def chosen(spark: SparkSession, lake: Lake, replay: Replay) -> DataFrame:
    """The messages it names, with what they were enqueued with."""
    manifest = lake.manifest()
    messages = lake.read(spark, "messages", manifest).where(replay.where).select("message_id")
    enqueued = lake.read(spark, "events", manifest).where("event = 'enqueued' AND queue IS NOT NULL")
    return enqueued.join(messages, "message_id", "left_semi")


def counts(spark: SparkSession, lake: Lake, replay: Replay) -> dict[str, int]:
    """How many it would replay into each queue."""
    found = chosen(spark, lake, replay).groupBy(_target(replay).alias("queue")).count().collect()
    return {row["queue"]: row["count"] for row in sorted(found)}


def replay(spark: SparkSession, lake: Lake, place: Place, wanted: Replay) -> dict[str, Sent]:
    """Replay them; what became of it for each queue. A queue's messages go in the order they came in."""
    if wanted.rate is not None and wanted.rate < 1:
        raise InvalidInput("rate must be at least one message a second")
    sent = {}
    rows = chosen(spark, lake, wanted)
    for queue in counts(spark, lake, wanted):
        own = rows.where(_target(wanted) == queue).orderBy("position", "sequence")
        messages = own.selectExpr(
            "payload", "content_type", "headers", "priority", "`group`", "concurrency_key",
            f"concat('replay:{wanted.key}:', message_id) AS dedup_key",
        )  # fmt: skip
        sent[queue] = send(messages, place, queue, dedup_ms=wanted.dedup_ms, rate=wanted.rate)
    return sent


def _target(wanted: Replay) -> Column:
    return f.col("queue") if wanted.to is None else f.lit(wanted.to)
