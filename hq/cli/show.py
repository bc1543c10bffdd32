"""What a command prints: tables for people, JSON with stable keys for programs."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import msgspec

Row = Mapping[str, Any]
WIDE = 1 << 16


class Advance:
    """How far a long piece of work is; told on a terminal, silent elsewhere."""

    def __init__(self, bar: Any = None, task: Any = None) -> None:
        self._bar, self._task = bar, task

    def to(self, done: float) -> None:
        """It is so far."""
        if self._bar is not None:
            self._bar.update(self._task, completed=done)


class Show:
    """Prints on standard output, in one of two ways."""

    def __init__(self, *, as_json: bool) -> None:
        self.as_json = as_json

    def rows(self, rows: Iterable[Row], columns: Sequence[str], *, nothing: str = "none") -> None:
        """Several things of one kind: a table of some columns, or all that is known as one JSON array."""
        found = list(rows)
        if self.as_json:
            self.json(found)
        elif found:
            table(columns, ([text(row.get(column)) for column in columns] for row in found))
        else:
            print(nothing)

    def record(self, record: Row) -> None:
        """One thing: a line for each of its parts, or a JSON object."""
        if self.as_json:
            self.json(record)
        else:
            width = max(map(len, record))
            for name, value in record.items():
                print(f"{name:{width}}  {text(value)}")

    def done(self, sentence: str, record: Row) -> None:
        """What was done: a sentence, or what it says as a JSON object."""
        if self.as_json:
            self.json(record)
        else:
            print(sentence)

    def line(self, record: Row) -> None:
        """One thing of a stream: a line of NDJSON."""
        print(line(record))

    def json(self, value: Any) -> None:
        """One JSON value."""
        print(line(value))

    @contextmanager
    def progress(self, what: str, total: float | None) -> Iterator[Advance]:
        """A bar on standard error as long as the work goes on."""
        if self.as_json or not sys.stderr.isatty():
            yield Advance()
            return
        from rich.console import Console
        from rich.progress import Progress

        with Progress(console=Console(stderr=True), transient=True) as bar:
            yield Advance(bar, bar.add_task(what, total=total))


def line(value: Any) -> str:
    """A JSON value in one line."""
    return msgspec.json.encode(value).decode()


def text(value: Any) -> str:
    """A value as people read it."""
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return value if isinstance(value, str) else line(value)


def table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """A table that is cut to the width of a terminal, and to none elsewhere."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    made = Table(*columns, box=None, pad_edge=False, header_style="bold")
    for row in rows:
        made.add_row(*(Text(one) for one in row))
    if sys.stdout.isatty():
        Console().print(made)
        return
    for shown in Console(width=WIDE).render_lines(made, pad=False):
        print("".join(segment.text for segment in shown).rstrip())
