"""Progress of a job on stderr, as Spark counts its tasks."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from pyspark.sql import SparkSession
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

LOOK_EVERY_S = 0.25


@contextmanager
def working(spark: SparkSession, title: str) -> Iterator[None]:
    """Show how many tasks of those that run are done, as long as this lasts; nothing where nobody looks."""
    console = Console(stderr=True)
    if not console.is_terminal:
        yield
        return
    over = threading.Event()
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True) as progress:
        bar = progress.add_task(title, total=None)

        def look() -> None:
            tracker = spark.sparkContext.statusTracker()
            while not over.wait(LOOK_EVERY_S):
                stages = [tracker.getStageInfo(stage) for stage in tracker.getActiveStageIds()]
                known = [stage for stage in stages if stage is not None]
                if known:
                    done = sum(stage.numCompletedTasks for stage in known)
                    progress.update(bar, completed=done, total=sum(stage.numTasks for stage in known))

        watching = threading.Thread(target=look, daemon=True)
        watching.start()
        try:
            yield
        finally:
            over.set()
            watching.join()
