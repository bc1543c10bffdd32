"""hq export and hq import: messages as lines of NDJSON, taken up again where they were left."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator
from contextlib import ExitStack
from pathlib import Path
from typing import IO, TYPE_CHECKING, Annotated, Any

import typer

from hq.cli import messages
from hq.cli.command import QueueName, command
from hq.cli.lines import Refusals, lines_of, parts, size_of, written
from hq.cli.show import line
from hq.cli.target import Target
from hq.errors import HQError, InvalidInput

if TYPE_CHECKING:
    from hq.system.queue import Queue
    from hq.system.seen import SeenMessage

DeadLetters = Annotated[bool, typer.Option("--dead-letters", help="The dead letters instead.")]
To = Annotated[
    Path | None,
    typer.Option("--file", help="The file to write; one that is there goes on after its last line."),
]
From = Annotated[Path, typer.Option("--file", help="The file; - reads stdin.")]
Source = Annotated[
    str, typer.Option("--source", help="What this import is called: lines of another one are other messages.")
]
PAGE = 500
TAIL_BYTES = 1 << 16


def add_to(app: typer.Typer) -> None:
    """Make them commands."""
    command(app, "export")(export)
    command(app, "import")(import_lines)


async def export(at: Target, queue: QueueName, *, file: To = None, dead_letters: DeadLetters = False) -> None:
    """Write the messages of a queue, oldest first, and leave them where they are."""
    there = at.queue(queue)
    with ExitStack() as stack:
        out: IO[bytes] = sys.stdout.buffer if file is None else stack.enter_context(_opened(file))
        after = None if file is None else _last_id(out, file)
        advance = stack.enter_context(at.show.progress("export", total=None))
        exported = 0
        async for found in _pages(there, after, dead_letters=dead_letters):
            rows = (messages.seen(queue, one) for one in found)
            out.write(b"".join(line(row).encode() + b"\n" for row in rows))
            exported += len(found)
            advance.to(exported)
        if file is not None:
            written(out)
            at.show.done(f"exported {exported}", {"queue": queue, "exported": exported})
        else:
            out.flush()


async def import_lines(at: Target, queue: QueueName, *, file: From, source: Source = "") -> int:
    """Enqueue the lines of an export, or of any file of messages.

    An import that was interrupted is run again: what it had enqueued is known for a week, and is not enqueued
    twice.
    """
    there = at.queue(queue)
    imported, duplicates, read, refused = 0, 0, 0, Refusals()
    size = None if str(file) == "-" else size_of(file)
    with lines_of(file) as lines, at.show.progress("import", total=size) as advance:
        for part in parts(lines):
            told = await there.import_lines(part, source=source)
            accepted = [one for one in told if not isinstance(one, HQError)]
            again = sum(one.duplicate for one in accepted)
            imported, duplicates = imported + len(accepted) - again, duplicates + again
            refused.note(part, told)
            read += sum(len(text) + 1 for _, text in part)
            advance.to(read)
    counted: dict[str, Any] = {
        "queue": queue, "imported": imported, "duplicates": duplicates, "refused": refused.count,
    }  # fmt: skip
    known = f"; {duplicates} were there already" if duplicates else ""
    at.show.done(f"imported {imported}{known}", counted)
    return refused.tell()


async def _pages(queue: Queue, after: str | None, *, dead_letters: bool) -> AsyncIterator[list[SeenMessage]]:
    read = queue.dead_letters if dead_letters else queue.browse
    found = await read(after=after, limit=PAGE)
    while found:
        yield found
        found = await read(after=found[-1].id, limit=PAGE) if len(found) == PAGE else []


def _opened(file: Path) -> IO[bytes]:
    try:
        return file.open("r+b" if file.exists() else "w+b")
    except OSError as error:
        raise InvalidInput(f"{file} cannot be written: {error.strerror}") from None


def _last_id(out: IO[bytes], file: Path) -> str | None:
    """The id of the last whole line, after which to go on; a line that was cut short is written anew."""
    end = out.seek(0, 2)
    kept = end
    while kept > 0:
        start = max(0, kept - TAIL_BYTES)
        out.seek(start)
        found = out.read(kept - start).rfind(b"\n")
        if found >= 0:
            kept = start + found + 1
            break
        kept = start
    out.truncate(kept)
    out.seek(kept)
    return _id_of(_line_before(out, kept), file) if kept else None


def _line_before(out: IO[bytes], end: int) -> bytes:
    """The line that ends here."""
    start, text = end - 1, b""
    while start > 0 and b"\n" not in text:
        step = min(TAIL_BYTES, start)
        start -= step
        out.seek(start)
        text = out.read(step) + text
    out.seek(end)
    return text.rpartition(b"\n")[2]


def _id_of(text: bytes, file: Path) -> str:
    import msgspec

    try:
        said = msgspec.json.decode(text)
        if isinstance(said, dict) and isinstance(said.get("id"), str):
            return str(said["id"])
    except msgspec.DecodeError:
        pass
    raise InvalidInput(f"{file} does not end with a line of an export; name another file")
