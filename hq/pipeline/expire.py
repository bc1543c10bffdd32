"""Days that are old enough, out of the lake; whole days, so nothing is written anew."""

from __future__ import annotations

from typing import NamedTuple

from hq.pipeline.lake import Lake
from hq.pipeline.manifest import TABLES


class Expired(NamedTuple):
    """How many files went, and of which size."""

    files: int
    bytes: int


def expire(lake: Lake, *, before: str) -> Expired:
    """Take out what is of days before this one; what no build has seen stays."""
    with lake.held() as manifest:
        gone = [
            file
            for table in TABLES
            for file in manifest.files(table)
            if file.day < before and (table != "events" or file.upto <= manifest.built)
        ]
        if gone:
            paths = {file.path for file in gone}
            tables = {
                table: tuple(file for file in manifest.files(table) if file.path not in paths)
                for table in TABLES
            }
            lake.publish(manifest.following(tables, expired=before))
    return Expired(len(gone), sum(file.bytes for file in gone))
