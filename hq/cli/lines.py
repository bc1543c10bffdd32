"""Files of lines: read as they are needed, enqueued many at a time."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from hq.cli.exits import worst
from hq.errors import HQError, InvalidInput

if TYPE_CHECKING:
    from hq.cli.target import Target
    from hq.system.keywords import Outgoing

MOST = 1_000
"""How many a queue is asked for at once."""
MOST_BYTES = 2 << 20
MOST_TOLD = 10

Line = tuple[int, bytes]


@contextmanager
def lines_of(file: Path) -> Iterator[Iterator[Line]]:
    """The lines of a file that say something, each with its number; `-` is standard input."""
    if str(file) == "-":
        yield _numbered(sys.stdin.buffer)
        return
    try:
        opened = file.open("rb")
    except OSError as error:
        raise InvalidInput(f"{file} cannot be read: {error.strerror}") from None
    with opened:
        yield _numbered(opened)


def size_of(file: Path) -> int | None:
    """How many bytes a file has; None if it is none."""
    return file.stat().st_size if file.is_file() else None


def parts(lines: Iterable[Line]) -> Iterator[list[Line]]:
    """The lines, as many at a time as one request takes."""
    part: list[Line] = []
    size = 0
    for line in lines:
        if part and (len(part) == MOST or size + len(line[1]) > MOST_BYTES):
            yield part
            part, size = [], 0
        part.append(line)
        size += len(line[1])
    if part:
        yield part


def payload_of(text: str, content_type: str | None) -> str:
    """A payload as it was said; without a content type it is JSON."""
    if content_type is None:
        _check(text.encode(errors="surrogateescape"), "the payload")
    return text


async def enqueue_lines(at: Target, queue: str, lines: Iterator[Line], options: dict[str, Any]) -> int:
    """Enqueue each line as a payload; the exit code says whether any was refused."""
    there = at.queue(queue)
    enqueued, refused = 0, Refusals()
    with at.show.progress("enqueue", total=None) as advance:
        for part in parts(lines):
            items = [_outgoing(line, options, enqueued) for line in part]
            told = await there.enqueue_many(items)
            refused.note(part, told)
            enqueued += len(told) - sum(isinstance(one, HQError) for one in told)
            advance.to(enqueued)
    at.show.done(f"enqueued {enqueued}", {"queue": queue, "enqueued": enqueued, "refused": refused.count})
    return refused.tell()


class Refusals:
    """Which lines were refused, and why; the first few are told, the others counted."""

    def __init__(self) -> None:
        self.count = 0
        self._first: list[tuple[int, HQError]] = []
        self._kinds: dict[str, HQError] = {}

    def note(self, part: list[Line], told: list[Any]) -> None:
        """What became of some lines."""
        for (number, _), one in zip(part, told, strict=True):
            if isinstance(one, HQError):
                self.count += 1
                self._kinds[one.code] = one
                if len(self._first) < MOST_TOLD:
                    self._first.append((number, one))

    def tell(self) -> int:
        """Say them on standard error; the exit code they make."""
        for number, error in self._first:
            print(f"hq: line {number}: {error}", file=sys.stderr)
        if self.count > len(self._first):
            print(f"hq: {self.count - len(self._first)} more lines were refused", file=sys.stderr)
        return worst(list(self._kinds.values())) if self.count else 0


def _numbered(file: IO[bytes]) -> Iterator[Line]:
    for number, text in enumerate(file, start=1):
        if text.strip():
            yield number, text.rstrip(b"\r\n")


def _outgoing(line: Line, options: dict[str, Any], enqueued: int) -> Outgoing:
    from hq.system.keywords import Outgoing

    number, text = line
    _check(text, f"line {number}", f"; {enqueued} before it are enqueued" if enqueued else "")
    return Outgoing(text, content_type="application/json", **options)


def _check(text: bytes, what: str, so_far: str = "") -> None:
    import msgspec

    try:
        text.decode()
        msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        raise InvalidInput(f"{what} is no JSON{so_far}") from None


def written(file: IO[bytes]) -> None:
    """See that what was written to a file is on the disk."""
    file.flush()
    os.fsync(file.fileno())
