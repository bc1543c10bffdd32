"""hq top: queues as they live, a look every second."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hq.cli.command import command
from hq.cli.numbers import numbers
from hq.cli.show import text
from hq.cli.target import Target

if TYPE_CHECKING:
    from rich.live import Live
    from rich.table import Table

    from hq.system.system import System

Every = Annotated[float, typer.Option("--every", min=0.1, max=3_600, help="Seconds between two looks.")]
Looks = Annotated[int | None, typer.Option("--looks", min=1, help="End after so many looks.")]
Prefix = Annotated[str, typer.Option("--prefix", help="Only queues at or below this.")]
COUNTED = ("enqueued", "completed", "retries", "failed")
COLUMNS = (
    "queue", "ready", "delayed", "leased", "failed", "in/s", "done/s", "retries/s", "oldest", "paused",
)  # fmt: skip
SECOND_MS = 1_000


def add_to(app: typer.Typer) -> None:
    """Make it a command."""
    command(app, "top")(top)


async def top(at: Target, *, every: Every = 1.0, looks: Looks = None, prefix: Prefix = "") -> None:
    """Watch queues: how much is in them, how fast it moves, how old it is.

    Ctrl-C ends it. What is no terminal gets a line for each queue and look, as JSON if it is asked for.
    """
    import anyio

    before: dict[str, dict[str, Any]] = {}
    seen_at = at.system.clock.now
    with _screen(at) as live:
        while looks is None or looks > 0:
            now = at.system.clock.now
            found = await _look(at.system, prefix)
            rows = [_moving(row, before.get(row["queue"]), now - seen_at) for row in found]
            _tell(at, live, rows)
            before, seen_at = {row["queue"]: row for row in found}, now
            looks = None if looks is None else looks - 1
            if looks != 0:
                await anyio.sleep(every)


async def _look(system: System, prefix: str) -> list[dict[str, Any]]:
    from hq.domain.names import is_under

    names = sorted(queue.name for queue in await system.queues())
    return [await numbers(system, system.queue(name)) for name in names if is_under(name, prefix)]


def _moving(row: dict[str, Any], before: dict[str, Any] | None, span_ms: int) -> dict[str, Any]:
    """A look with how fast things went since the one before; None at the first."""
    rates = {
        f"{name}_per_s": None if before is None else _rate(row[name] - before[name], span_ms)
        for name in COUNTED
    }
    return row | rates


def _rate(count: int, span_ms: int) -> float:
    return round(count * SECOND_MS / max(1, span_ms), 1)


@contextmanager
def _screen(at: Target) -> Iterator[Live | None]:
    """The whole of a terminal; nothing elsewhere."""
    if at.show.as_json or not sys.stdout.isatty():
        yield None
        return
    from rich.live import Live

    with Live(screen=True, auto_refresh=False) as live:
        yield live


def _tell(at: Target, live: Live | None, rows: list[dict[str, Any]]) -> None:
    if live is not None:
        live.update(_table(rows), refresh=True)
    elif at.show.as_json:
        for row in rows:
            at.show.line(row)
        sys.stdout.flush()
    else:
        at.show.rows(map(_shown, rows), COLUMNS, nothing="there is no queue")
        sys.stdout.flush()


def _table(rows: list[dict[str, Any]]) -> Table:
    from rich.table import Table
    from rich.text import Text

    made = Table(*COLUMNS, box=None, header_style="bold", expand=True)
    for row in rows:
        shown = _shown(row)
        style = "yellow" if row["paused"] is not None else "red" if row["failed"] else ""
        made.add_row(*(Text(text(shown[column])) for column in COLUMNS), style=style)
    return made


def _shown(row: dict[str, Any]) -> dict[str, Any]:
    age = row["oldest_age_ms"]
    return row | {
        "in/s": row["enqueued_per_s"],
        "done/s": row["completed_per_s"],
        "retries/s": row["retries_per_s"],
        "oldest": None if age is None else f"{age / SECOND_MS:.0f} s",
        "paused": None if row["paused"] is None else row["paused"] or "yes",
    }
