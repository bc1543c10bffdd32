"""Backups: a SQLite file that holds a whole store, of either database, as of one moment.

A restored store has a new incarnation, so that an id it gives was never given before. What was given before
the backup stays good, up to the last sequence that each queue then had.
"""

from __future__ import annotations

import os
import secrets
import shutil
import sqlite3
from collections import defaultdict
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from importlib import import_module
from pathlib import Path
from urllib.parse import quote

from hq.backends.sqlite.trouble import named
from hq.errors import DatabaseCorrupt, DatabaseMissing, InvalidInput, StorageError, StoreNotEmpty

INCARNATION_BITS = 32
NOTE_FORMER = """
    WITH ends (queue, last) AS (SELECT queue, max(last) FROM journal GROUP BY queue)
    INSERT OR REPLACE INTO former (queue, incarnation, sequence)
    SELECT q.number, s.incarnation, max(coalesce(c.mark, 0), coalesce(e.last, 0))
    FROM queues q CROSS JOIN store s
    LEFT JOIN checkpoints c ON c.queue = q.number LEFT JOIN ends e ON e.queue = q.number
    WHERE true"""
# No lake has it: a lake belongs to one incarnation.
RENEW = "UPDATE store SET incarnation = ?, archived_to = 0"
HAS_INBOX = "SELECT 1 FROM sqlite_schema WHERE name = 'inbox'"


def copy_file(database: Path, to: Path) -> None:
    """Copy a database as of one moment, whoever writes it meanwhile; runs in a thread."""
    with making(to) as part, told(), closing(reading(database)) as source:
        source.execute("VACUUM INTO ?", (str(part),))


def restore_file(backup: Path, to: Path) -> None:
    """Make a database of a backup; runs in a thread."""
    check(backup)
    with making(to) as part, told():
        with closing(reading(backup)) as source:
            if source.execute(HAS_INBOX).fetchone():
                raise InvalidInput("the backup holds messages of an inbox, which only Postgres has")
        shutil.copyfile(backup, part)
        renew(part)


def renew(path: Path) -> None:
    """Bring a copy of a store up to date, and give it an incarnation of its own."""
    make_schema(path)
    with closing(sqlite3.connect(path)) as made, made:
        made.execute(NOTE_FORMER)
        made.execute(RENEW, (secrets.randbits(INCARNATION_BITS),))


def make_schema(path: Path) -> None:
    """Make the tables of a file, or bring them up to date."""
    # Alembic takes a quarter of a second to import.
    import_module("hq.backends.sqlite.migrate").migrate(path)


def check(backup: Path) -> None:
    """Raise if a file is no backup, or a damaged one."""
    if not backup.is_file():
        raise DatabaseMissing(f"there is no file {backup}")
    with told(), closing(reading(backup)) as source:
        [(verdict,), *_] = source.execute("PRAGMA quick_check(1)").fetchall()
        if verdict != "ok":
            raise DatabaseCorrupt(f"{backup} is damaged: {verdict}")
        try:
            source.execute("SELECT incarnation FROM store").fetchone()
        except sqlite3.OperationalError:
            raise InvalidInput(f"{backup} is no backup of hq") from None


@contextmanager
def making(to: Path) -> Iterator[Path]:
    """A file that is there when it is whole and on the disk, or not at all."""
    part = begin(to)
    try:
        yield part
        finish(part, to)
    finally:
        part.unlink(missing_ok=True)


def begin(to: Path) -> Path:
    """Where a new file is made until it is whole."""
    if to.exists():
        raise StoreNotEmpty(f"{to} is there already; name a new file")
    part = to.with_name(f"{to.name}.part")
    part.unlink(missing_ok=True)
    return part


def finish(part: Path, to: Path) -> None:
    """The file is whole: bring it to the disk and to its place."""
    try:
        part.chmod(0o600)
        _to_disk(part)
        part.rename(to)
        _to_disk(to.parent)
    except OSError as error:
        raise StorageError(f"{to} cannot be written: {error.strerror}") from error


def reading(path: Path) -> sqlite3.Connection:
    """A connection that writes nothing."""
    return sqlite3.connect(f"file:{quote(str(path))}?mode=ro", uri=True, isolation_level=None)


@contextmanager
def told() -> Iterator[None]:
    """SQLite's errors by hq's names."""
    try:
        yield
    except sqlite3.Error as error:
        raise named(error) from error


def grouped(rows: Iterable[tuple[int, int, int]]) -> dict[int, dict[int, int]]:
    """Former incarnations by queue."""
    former: defaultdict[int, dict[int, int]] = defaultdict(dict)
    for queue, incarnation, sequence in rows:
        former[queue][incarnation] = sequence
    return dict(former)


def _to_disk(path: Path) -> None:
    opened = os.open(path, os.O_RDONLY)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)
