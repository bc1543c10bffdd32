"""A lake: tables of Parquet files by day, as its newest manifest names them.

Only who holds the lake writes. A file comes into its table under a name of its own, then the manifest names
it, then what it replaces goes. A job that was killed leaves files that no manifest names: the next one that
holds the lake takes them away before anything else, so a plain look at the directory finds no row twice
once a job has ended well.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import NamedTuple

import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession

from hq.pipeline import manifest as manifests
from hq.pipeline.errors import LakeEmpty, LakeInvalid
from hq.pipeline.files import Files, digest
from hq.pipeline.manifest import TABLES, DataFile, Manifest

STAGING = "_staging"
WAIT_S = 3_600.0


class Staged(NamedTuple):
    """A file that was written aside, and what it is to be in the lake."""

    path: str
    file: DataFile


class Lake:
    """The lake in some files."""

    def __init__(self, files: Files, *, wait_s: float = WAIT_S) -> None:
        self.files = files
        self._wait_s = wait_s

    def manifest(self) -> Manifest:
        """The manifest in force; LakeEmpty if there is none."""
        found = manifests.newest(self.files)
        if found is None:
            raise LakeEmpty
        return found

    @contextmanager
    def held(self, incarnation: int | None = None) -> Iterator[Manifest]:
        """The lake to oneself, and clean; made for this store if it is not there and one is named."""
        with self.files.held(self._wait_s):
            found = manifests.newest(self.files)
            if found is None:
                if incarnation is None:
                    raise LakeEmpty
                if any(self.files.below(table) for table in TABLES):
                    raise LakeInvalid(
                        "there are tables in this directory, but no manifest: it is no lake of hq"
                    )
                found = Manifest(0, incarnation)
                manifests.publish(self.files, found)
            self._sweep(found)
            yield found

    def read(self, spark: SparkSession, table: str, manifest: Manifest | None = None) -> DataFrame:
        """A table as a frame, with the day of its rows; LakeEmpty if it has none."""
        named = (manifest or self.manifest()).files(table)
        if not named:
            raise LakeEmpty(f"the lake has no {table} yet: run hq pipeline archive, then hq pipeline build")
        return self.frame(spark, table, named)

    def frame(self, spark: SparkSession, table: str, named: Iterable[DataFile]) -> DataFrame:
        """Some files of a table as a frame."""
        return spark.read.option("basePath", self.files.uri(table)).parquet(
            *(self.files.uri(file.path) for file in named)
        )

    def stage(self, table: str, name: str, write: Callable[[str], None]) -> list[Staged]:
        """Have files written aside, in a folder for each day, and look at what came."""
        folder = f"{STAGING}/{table}"
        write(self.files.uri(folder))
        paths = [path for path in self.files.below(folder) if path.endswith(".parquet")]
        return [self._staged(table, name, path, number) for number, path in enumerate(paths)]

    def enter(self, staged: Iterable[Staged]) -> tuple[DataFile, ...]:
        """Move what was staged into its table, where it is not in the lake until a manifest names it."""
        entered = tuple(staged)
        for path, file in entered:
            self.files.move(path, file.path)
        return tuple(file for _, file in entered)

    def publish(self, manifest: Manifest) -> Manifest:
        """Put a manifest in force, and take away what it replaces."""
        manifests.publish(self.files, manifest)
        self._sweep(manifest)
        return manifest

    def _staged(self, table: str, name: str, path: str, number: int) -> Staged:
        day = path.split("/")[2]
        with self.files.open(path) as opened:
            total = digest(opened)
            size = opened.tell()
            rows = pq.ParquetFile(opened).metadata.num_rows
        return Staged(path, DataFile(f"{table}/{day}/{name}.{number}.parquet", rows, size, total))

    def _sweep(self, manifest: Manifest) -> None:
        """Take away what killed jobs have left, and what was replaced."""
        self.files.remove(STAGING)
        for table in TABLES:
            named = {file.path for file in manifest.files(table)}
            for path in self.files.below(table):
                if path not in named:
                    self.files.remove(path)
