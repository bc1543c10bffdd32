"""The manifest of a lake: which files are its tables, and up to where they know the journal.

Every change of a lake is a new manifest, under the next number, and a number is taken once. So a change is
there whole or not at all, and of two at once one fails. A file that the newest manifest does not name is not
in the lake.
"""

from __future__ import annotations

from hashlib import sha256

import msgspec

from hq.pipeline.errors import LakeBusy, LakeTooNew, ManifestCorrupt
from hq.pipeline.files import UNFINISHED, Files

VERSION = 1
"""Grows when a table or the manifest changes its meaning; what is newer is not read."""
FOLDER = "_manifest"
KEPT = 16
"""Manifests that are kept, the newest of them in force."""
TABLES = ("events", "messages", "attempts", "stats_5m")


class DataFile(msgspec.Struct, frozen=True):
    """One Parquet file."""

    path: str
    rows: int
    bytes: int
    sha256: str

    @property
    def day(self) -> str:
        """The day its rows are of."""
        return self.path.split("/")[1].removeprefix("day=")

    @property
    def upto(self) -> int:
        """The last position that a file of events may have, which is the second half of its name."""
        return int(self.path.rpartition("/")[2].partition(".")[0].partition("-")[2])


class Manifest(msgspec.Struct, frozen=True):
    """What a lake holds: events after `begins`, up to `archived`; the other tables up to `built`."""

    number: int
    incarnation: int
    begins: int = 0
    archived: int = 0
    built: int = 0
    lost: tuple[tuple[int, int], ...] = ()
    """Positions after the first and up to the second, which no longer were when they were to be archived."""
    expired: str = ""
    """Days before this one were taken out of the lake."""
    tables: dict[str, tuple[DataFile, ...]] = {}

    def files(self, table: str) -> tuple[DataFile, ...]:
        """The files of a table."""
        return self.tables.get(table, ())

    def rows(self, table: str) -> int:
        """How many rows it has."""
        return sum(file.rows for file in self.files(table))

    def following(self, tables: dict[str, tuple[DataFile, ...]] | None = None, **changes: object) -> Manifest:
        """The next one: these tables anew, the others as they are."""
        merged = {**self.tables, **(tables or {})}
        return msgspec.structs.replace(self, number=self.number + 1, tables=merged, **changes)


class _Written(msgspec.Struct):
    version: int
    sha256: str
    lake: msgspec.Raw


def newest(files: Files) -> Manifest | None:
    """The manifest in force."""
    numbers = _numbers(files)
    return read(files, numbers[-1]) if numbers else None


def read(files: Files, number: int) -> Manifest:
    """The manifest of a number, if it is whole and of a version that is known."""
    path = _path(number)
    with files.open(path) as opened:
        content = opened.read()
    try:
        written = msgspec.json.decode(content, type=_Written)
        if written.version > VERSION:
            raise LakeTooNew(
                f"{path} of the lake has version {written.version}, newer than the {VERSION} known here:"
                " install the hq that wrote it"
            )
        if sum_of(bytes(written.lake)) != written.sha256:
            raise ManifestCorrupt(f"{path} of the lake was changed: its sum is not that of its content")
        return msgspec.json.decode(written.lake, type=Manifest)
    except msgspec.DecodeError as error:
        raise ManifestCorrupt(f"{path} of the lake cannot be read: {error}") from error


def publish(files: Files, manifest: Manifest) -> None:
    """Put a manifest in force, and forget old ones; LakeBusy if its number is taken."""
    lake = msgspec.json.encode(manifest)
    content = msgspec.json.encode(_Written(VERSION, sum_of(lake), msgspec.Raw(lake)))
    try:
        files.create(_path(manifest.number), content)
    except FileExistsError:
        raise LakeBusy("another job has written to this lake meanwhile; run this one again") from None
    for number in _numbers(files)[:-KEPT]:
        files.remove(_path(number))


def sum_of(content: bytes) -> str:
    """The SHA-256 of some bytes."""
    return sha256(content).hexdigest()


def _path(number: int) -> str:
    return f"{FOLDER}/{number:08d}.json"


def _numbers(files: Files) -> list[int]:
    names = [path.rpartition("/")[2] for path in files.below(FOLDER) if not path.endswith(UNFINISHED)]
    return [int(name.removesuffix(".json")) for name in names]
