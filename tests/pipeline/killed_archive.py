"""Archives a journal again and again, and is killed before and after every call that changes a file.

What writes the files of a segment is a loop here instead of Spark, so that a run takes little time; all else
is the pipeline's own. Reports a line for every run.
"""

import json
import os
import signal
import sys
from itertools import count
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from hq.pipeline.archive import archive
from hq.pipeline.files import LocalFiles
from hq.pipeline.lake import Lake
from hq.pipeline.store import Place
from pyspark_hq.stores import Span
from tests.pipeline.lakes import rows_found, rows_named
from tests.pipeline.serving import Served

EVENT = ["position", "sequence", "event", "message_id"]
FILES = 2


class Mortal(LocalFiles):
    """Files whose process dies at a step: two for every call, one before it and one after."""

    def __init__(self, root: Path, fatal: int) -> None:
        super().__init__(root)
        self._steps = count(1)
        self._fatal = fatal

    def create(self, *call):
        self._around(super().create, call)

    def move(self, *call):
        self._around(super().move, call)

    def remove(self, *call):
        self._around(super().remove, call)

    def _around(self, done, call):
        self._step()
        done(*call)
        self._step()

    def _step(self):
        if next(self._steps) == self._fatal:
            os.kill(os.getpid(), signal.SIGKILL)


def by_loop(place: Place):
    """What writes a segment in two files."""

    def write(span, rows, folder):
        with place.opened() as store:
            names = store.schema("events", None).names
            table = pa.Table.from_batches(store.events(span, None, names))
        day = Path(folder.removeprefix("file://")) / "day=2026-01-01"
        day.mkdir(parents=True)
        for number in range(FILES):
            part = table.slice(number * rows // FILES, (number + 1) * rows // FILES - number * rows // FILES)
            pq.write_table(part, day / f"{number}.parquet")

    return write


def run(url: str, folder: Path, fatal: int) -> int:
    """Archive in a process of its own; the signal that ended it."""
    child = os.fork()
    if not child:
        place = Place(url)
        archive(Lake(Mortal(folder, fatal), wait_s=60), place, by_loop(place), max_rows=30)
        os._exit(0)
    return os.WTERMSIG(os.waitpid(child, 0)[1])


def main() -> None:
    folder = Path(sys.argv[1])
    served = Served(folder / "hq.db")
    place, lake = Place(served.url), folder / "lake"
    served.create("emails")
    for fatal in count(1):
        served.enqueue("emails", range(30))
        served.enqueue("emails", range(30))
        killed = run(served.url, lake, fatal)
        told = served.ask("GET", "/journal/bounds")["archived"]
        manifests = list((lake / "_manifest").glob("*.json"))
        published = Lake(LocalFiles(lake)).manifest().archived if manifests else 0
        assert run(served.url, lake, 0) == 0
        named, found = rows_named(lake, "events", EVENT), rows_found(lake, "events", EVENT)
        report = {
            "fatal": fatal, "killed": killed, "told": told, "published": published, "events": len(named),
            "same": named == found == journal(place), "twice": len(named) - len(set(named)),
        }  # fmt: skip
        print(json.dumps(report), flush=True)
        if not killed:
            break
    served.stop()


def journal(place: Place) -> list[tuple]:
    """What the journal itself has."""
    found: list[tuple] = []
    with place.opened() as store:
        for batch in store.events(Span(0, store.bounds().last), None, EVENT):
            found += zip(*(column.to_pylist() for column in batch.columns), strict=True)
    return sorted(found)


if __name__ == "__main__":
    main()
