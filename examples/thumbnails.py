"""A script with a queue inside: files named on the command line are worked on once, even if it is killed.

    python examples/thumbnails.py thumbnails.db *.jpg

Run it again after a crash, with or without names: what was not done is done, what was done is not.
"""

from __future__ import annotations

import sys
from pathlib import Path

import hq


def main(database: str, names: list[str]) -> int:
    """Enqueue what is new, then work until nothing is left; how many were done."""
    with hq.blocking.open(database) as system:
        pictures = system.create_queue("pictures", max_attempts=3, dedup_ms=30 * 86_400_000)
        for name in names:
            pictures.enqueue({"name": name}, dedup_key=name)
        done = 0
        for message in pictures.consume(concurrency=1, wait_ms=0):
            with message:
                shrink(Path(message.payload["name"]))
                done += 1
        return done


def shrink(picture: Path) -> None:
    """Stand in for real work: the first kilobyte is thumbnail enough."""
    picture.with_suffix(".thumb").write_bytes(picture.read_bytes()[:1_024])


if __name__ == "__main__":
    print(main(sys.argv[1], sys.argv[2:]), "done")
