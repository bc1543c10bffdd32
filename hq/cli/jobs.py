"""What the commands of hq pipeline do: a session, the job, and one line that says what came of it."""

from __future__ import annotations

import json
import re
import signal
import threading
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from time import perf_counter
from types import TracebackType
from typing import Any, NamedTuple, Self

import msgspec
import typer
from pyspark.errors import PySparkException

from hq.cli.progress import working
from hq.errors import InvalidInput
from hq.pipeline import session
from hq.pipeline.archive import Archived, archive, by_spark
from hq.pipeline.build import build
from hq.pipeline.compact import compact
from hq.pipeline.dead import dead
from hq.pipeline.errors import JobStopped
from hq.pipeline.expire import expire as expire_days
from hq.pipeline.files import LocalFiles
from hq.pipeline.lake import Lake
from hq.pipeline.load import Loading, load
from hq.pipeline.page import page, percent, span_of
from hq.pipeline.query import query
from hq.pipeline.replay import Replay, counts, replay
from hq.pipeline.report import Objective, report, write_tables
from hq.pipeline.store import Place
from hq.pipeline.verify import verify
from pyspark_hq.errors import HqError

_SPAN = re.compile(r"(\d+(?:\.\d+)?)\s*(ms|s|m|h|d)")
_UNIT_MS = {"ms": 1, "s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
_TOLD = re.compile(r"(?:pyspark_hq|hq)(?:\.\w+)*\.errors\.\w+: (.+)")


class Span(NamedTuple):
    """What a report is of."""

    since: int | None
    until: int | None
    objective: Objective


class Job:
    """A Spark session as long as a command runs, and what it prints."""

    def __init__(self, master: str, memory: str, *, as_json: bool) -> None:
        self._as_json = as_json
        self._begun = perf_counter()
        self._spark = session(master, name="hq pipeline", settings={"spark.driver.memory": memory})
        self._spark.sparkContext.setLogLevel("OFF")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._spark.stop()
        if isinstance(error, HqError):
            raise JobStopped(str(error)) from error
        if isinstance(error, PySparkException):
            found = _TOLD.findall(str(error))
            raise JobStopped(found[0] if found else str(error).partition("\n")[0]) from error

    def place(self, url: str, token_file: str | None) -> Place:
        """Where the store is."""
        return Place(url, token_file)

    def archive(
        self, lake: Path, place: Place, max_rows: int, *, accept_loss: bool, every: float | None
    ) -> None:
        """Once, or again and again until SIGTERM or Ctrl-C."""
        over = threading.Event()
        if every is not None:
            for number in (signal.SIGTERM, signal.SIGINT):
                signal.signal(number, lambda *_: over.set())
        while True:
            with working(self._spark, "archive"):
                write = by_spark(self._spark, place)
                done = archive(_lake(lake), place, write, max_rows=max_rows, accept_loss=accept_loss)
            if every is None or done.rows:
                self._say(_archived(done), done._asdict())
            if every is None or over.wait(every):
                return

    def build(self, lake: Path) -> None:
        """All tables."""
        with working(self._spark, "build"):
            done = build(self._spark, _lake(lake))
        text = f"{done.events:,} events built into {done.messages:,} messages and {done.attempts:,} attempts"
        self._say(text, done._asdict())

    def compact(self, lake: Path) -> None:
        """Days before today."""
        with working(self._spark, "compact"):
            done = compact(self._spark, _lake(lake), today=datetime.now(UTC).date().isoformat())
        self._say(f"{done.before:,} files of {done.days} days are {done.after:,} now", done._asdict())

    def verify(self, lake: Path) -> None:
        """What is wrong, if anything is."""
        with working(self._spark, "verify"):
            wrong = verify(self._spark, _lake(lake))
        if not self._as_json:
            for problem in wrong:
                typer.echo(problem)
        self._say(f"{len(wrong)} problems" if wrong else "the lake is whole", {"problems": wrong})
        if wrong:
            raise typer.Exit(1)

    def span(self, since: str | None, until: str | None, slo: str, target: float) -> Span:
        """Of what to report."""
        if not 0 < target < 1:
            raise InvalidInput("target is a share between 0 and 1, such as 0.99")
        now = round(datetime.now(UTC).timestamp() * 1_000)
        begin = (
            None if since is None else now - span_ms(since) if _SPAN.fullmatch(since) else instant_ms(since)
        )
        return Span(begin, None if until is None else instant_ms(until), Objective(span_ms(slo), target))

    def report(self, lake: Path, out: Path, span: Span, queue: str | None) -> None:
        """On the terminal, as a page, and as tables."""
        with working(self._spark, "build"):
            build(self._spark, _lake(lake))
        with working(self._spark, "report"):
            made = report(
                self._spark, _lake(lake), span.objective, since=span.since, until=span.until, queue=queue
            )
        write_tables(made, out)
        (out / "report.html").write_text(page(made))
        if not self._as_json:
            _print_table(_SUMMARY, [_summary(one) for one in made.queues])
        self._say(f"{len(made.queues)} queues: {out / 'report.html'}", msgspec.to_builtins(made))

    def dead(self, lake: Path, queue: str | None, limit: int) -> None:
        """Signatures."""
        with working(self._spark, "dead"):
            found = dead(self._spark, _lake(lake), queue=queue, limit=limit)
        if not self._as_json:
            rows = [(one.queue, f"{one.messages:,}", _clock(one.first_at), _clock(one.last_at), one.reason,
                     one.signature, one.samples[0]) for one in found]  # fmt: skip
            _print_table(("queue", "messages", "first", "last", "reason", "error", "one of them"), rows)
        total = sum(one.messages for one in found)
        self._say(f"{total:,} dead letters of {len(found)} kinds", [one._asdict() for one in found])

    def sql(self, lake: Path, statement: str, limit: int) -> None:
        """Rows."""
        with working(self._spark, "sql"):
            frame = query(self._spark, _lake(lake), statement)
            rows = [row.asDict() for row in frame.limit(limit).collect()]
        if not self._as_json:
            _print_table(frame.columns, [[_cell(row[name]) for name in frame.columns] for row in rows])
        self._say(f"{len(rows):,} rows", rows)

    def wanted(
        self, where: str, to: str | None, name: str | None, rate: int | None, dedup_ms: int | None
    ) -> Replay:
        """What to replay."""
        return Replay(where, to, name, rate, dedup_ms)

    def replay(self, lake: Path, place: Place, wanted: Replay, *, dry_run: bool) -> None:
        """Count, or do it."""
        if dry_run:
            with working(self._spark, "count"):
                found = counts(self._spark, _lake(lake), wanted)
            told = ", ".join(f"{count:,} to {queue}" for queue, count in found.items()) or "nothing"
            self._say(f"would replay {told}", {"would": found})
            return
        with working(self._spark, "replay"):
            sent = replay(self._spark, _lake(lake), place, wanted)
        told = ", ".join(
            f"{one.added:,} to {queue} ({one.known:,} were there)" for queue, one in sent.items()
        )
        self._say(
            f"replay {wanted.key}: {told or 'nothing'}", {queue: one._asdict() for queue, one in sent.items()}
        )

    def loading(
        self, queue: str, key: str | None, payload: str | None, kind: str | None, dedup_ms: int | None
    ) -> Loading:
        """What to load, and how."""
        return Loading(queue, key, payload, kind, dedup_ms)

    def load(self, place: Place, files: Sequence[str], loading: Loading) -> None:
        """Into the queue."""
        with working(self._spark, f"load into {loading.queue}"):
            sent = load(self._spark, place, files, loading)
        self._say(f"{sent.added:,} messages added, {sent.known:,} were there before", sent._asdict())

    def _say(self, text: str, told: object) -> None:
        _say(text, told, perf_counter() - self._begun, as_json=self._as_json)


def expire(lake: Path, keep: str, *, as_json: bool) -> None:
    """Without Spark: nothing is read."""
    begun = perf_counter()
    before = (datetime.now(UTC) - timedelta(milliseconds=span_ms(keep))).date().isoformat()
    done = expire_days(_lake(lake), before=before)
    text = f"{done.files:,} files of days before {before} are gone"
    _say(text, done._asdict(), perf_counter() - begun, as_json=as_json)


def span_ms(text: str) -> int:
    """Milliseconds of a span as people write it."""
    said = _SPAN.fullmatch(text)
    if said is None:
        raise InvalidInput(f"a span is a number with ms, s, m, h or d, as in 10s, not {text!r}")
    return round(float(said[1]) * _UNIT_MS[said[2]])


def instant_ms(text: str) -> int:
    """Milliseconds since the epoch of an instant in ISO 8601; UTC where it names no zone."""
    try:
        instant = datetime.fromisoformat(text)
    except ValueError:
        raise InvalidInput(f"an instant is written as in 2026-03-01T12:00, not {text!r}") from None
    return round((instant if instant.tzinfo else instant.replace(tzinfo=UTC)).timestamp() * 1_000)


_SUMMARY = (
    "queue",
    "enqueued",
    "completed",
    "wait p50",
    "p99",
    "work p50",
    "p99",
    "failed",
    "depth",
    "in time",
)


def _summary(one: Any) -> list[str]:
    wait, work = one.wait_ms, one.work_ms
    return [
        one.queue, f"{one.enqueued:,}", f"{one.completed:,}",
        span_of(wait and wait.p50), span_of(wait and wait.p99),
        span_of(work and work.p50), span_of(work and work.p99),
        f"{one.failed:,}", f"{one.depth:,}", percent(one.attained),
    ]  # fmt: skip


def _archived(done: Archived) -> str:
    told = "" if done.told else "; no server was told, so none prunes"
    return f"{done.rows:,} events archived in {done.segments} segments, up to position {done.upto:,}{told}"


def _say(text: str, told: object, seconds: float, *, as_json: bool) -> None:
    typer.echo(json.dumps(told, default=str) if as_json else f"{text} ({seconds:.1f} s)")


def _print_table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    widths = [max(len(row[place]) for row in [heads, *rows]) for place in range(len(heads))]
    for row in [heads, *rows]:
        typer.echo("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())


def _cell(value: object) -> str:
    return "" if value is None else str(value)


def _clock(at: int) -> str:
    return datetime.fromtimestamp(at / 1_000, UTC).isoformat(timespec="seconds")


def _lake(folder: Path) -> Lake:
    return Lake(LocalFiles(folder))
