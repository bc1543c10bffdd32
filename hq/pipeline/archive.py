"""The journal into the lake: every event once, whoever is killed and whoever else tries.

A segment is a range of positions that are final. It is written aside, its rows are counted against the
journal's own count, and then one manifest names its files and how far the lake reaches. Only then is the
server told, and only then may it prune.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from msgspec import structs
from pyspark.sql import SparkSession

from hq.pipeline.errors import AnotherStore, EventsLost, RowsDiffer
from hq.pipeline.lake import Lake
from hq.pipeline.manifest import Manifest
from hq.pipeline.store import Place
from pyspark_hq.stores import Span, Store

MAX_ROWS = 1_000_000
ROWS_PER_FILE = 125_000
# Of the instant itself, whatever time zone Spark is set to.
DAY = "date_from_unix_date(CAST(unix_millis(at) DIV 86400000 AS INT)) AS day"

Write = Callable[[Span, int, str], None]
"""Writes the events of a range, so many, below a folder."""


class Archived(NamedTuple):
    """What a run has done."""

    rows: int
    segments: int
    upto: int
    told: bool


def archive(  # noqa: PLR0913 - each is a choice of its own
    lake: Lake,
    place: Place,
    write: Write,
    *,
    max_rows: int = MAX_ROWS,
    accept_loss: bool = False,
    on_segment: Callable[[int, int], None] = lambda _, __: None,
) -> Archived:
    """Bring the lake to where the journal is now. `on_segment` hears which position of which is reached."""
    with place.opened() as store:
        bounds = store.bounds()
        with lake.held(bounds.incarnation) as found:
            _check(found, bounds.incarnation)
            manifest = _from_there(found, bounds.pruned, accept_loss=accept_loss)
            before, segments = manifest.rows("events"), 0
            told = _tell(place, manifest)
            while manifest.archived < bounds.last:
                upto = min(bounds.last, store.reach(manifest.archived, max_rows))
                manifest = _segment(lake, manifest, store, write, upto)
                segments += 1
                told = _tell(place, manifest)
                on_segment(manifest.archived, bounds.last)
    return Archived(manifest.rows("events") - before, segments, manifest.archived, told)


def by_spark(spark: SparkSession, place: Place) -> Write:
    """Events as Spark reads and writes them."""

    def write(span: Span, rows: int, folder: str) -> None:
        parts = max(1, min(-(-rows // ROWS_PER_FILE), 2 * spark.sparkContext.defaultParallelism))
        events = (
            spark.read.format("hq")
            .options(**place.options, from_position=span.after + 1, to_position=span.upto, partitions=parts)
            .load()
        )
        events.selectExpr("*", DAY).write.partitionBy("day").option("compression", "zstd").parquet(folder)

    return write


def _segment(lake: Lake, manifest: Manifest, store: Store, write: Write, upto: int) -> Manifest:
    span = Span(manifest.archived, upto)
    expected = store.count(span)
    name = f"{span.after:019d}-{span.upto:019d}"
    staged = lake.stage("events", name, lambda folder: write(span, expected, folder))
    rows = sum(file.rows for _, file in staged)
    if rows != expected:
        raise RowsDiffer(
            f"positions {span.after + 1} to {span.upto} of the journal have {expected} events, {rows} were"
            " written: nothing was published"
        )
    files = lake.enter(staged)
    return lake.publish(
        manifest.following({"events": (*manifest.files("events"), *files)}, archived=span.upto)
    )


def _check(manifest: Manifest, incarnation: int) -> None:
    if manifest.incarnation != incarnation:
        raise AnotherStore


def _from_there(manifest: Manifest, pruned: int, *, accept_loss: bool) -> Manifest:
    """Where to go on: what was pruned before there was a lake is not missed, what was pruned since is."""
    if pruned <= manifest.archived:
        return manifest
    if manifest.archived == manifest.begins:
        return structs.replace(manifest, archived=pruned, begins=pruned)
    if not accept_loss:
        raise EventsLost(
            f"the lake has positions up to {manifest.archived}, but the journal begins at {pruned + 1}: what"
            " is between was pruned; say that the loss is accepted to go on without it"
        )
    return structs.replace(manifest, archived=pruned, lost=(*manifest.lost, (manifest.archived, pruned)))


def _tell(place: Place, manifest: Manifest) -> bool:
    return place.tell_archived(manifest.archived, manifest.incarnation, f"{manifest.number:08d}")
