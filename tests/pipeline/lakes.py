"""Lakes to test with: what they hold, by the manifest and by a plain look at the directory."""

from pathlib import Path

import pyarrow.parquet as pq

from hq.pipeline.files import LocalFiles
from hq.pipeline.lake import Lake


def lake_at(folder: Path) -> Lake:
    return Lake(LocalFiles(folder), wait_s=30)


def rows_named(folder: Path, table: str, columns: list[str]) -> list[tuple]:
    """What the manifest's files hold."""
    named = lake_at(folder).manifest().files(table)
    return _rows([folder / file.path for file in named], columns)


def rows_found(folder: Path, table: str, columns: list[str]) -> list[tuple]:
    """What all files there hold."""
    return _rows(folder.glob(f"{table}/*/*.parquet"), columns)


def _rows(paths, columns) -> list[tuple]:
    found = []
    for path in paths:
        read = pq.ParquetFile(path).read(columns).to_pydict()
        found += zip(*(read[column] for column in columns), strict=True)
    return sorted(found)
