"""What durability costs an application: cycles of enqueue, receive, complete on SQLite, each durable.

The baseline is plain sqlite3 in the same folder: WAL, synchronous FULL, an integer key, one commit each for
INSERT, UPDATE RETURNING and DELETE. Runs of hq and of the baseline take turns; medians are compared. hq runs
on uvloop, after calm_collector(), as a busy application would; 512 workers run without these two as well.

    python -P benchmarks/embedded.py --seconds 5 --runs 5
    python -P benchmarks/embedded.py --quick
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import json
import random
import sqlite3
import sys
import tempfile
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any, TypeVar

import uvloop

import hq

Figure = TypeVar("Figure")
PYTHONS_OWN = gc.get_threshold()
PAYLOAD = bytes(200)
SMALL, LARGE = 1_000, 1_000_000
BACKLOG_CYCLES = 900
BACKLOG_ROUNDS = 10
BACKLOG_LIMITS = hq.Limits(memory_bytes=64 << 20)


def baseline(folder: Path, seconds: float) -> float:
    """Cycles a second of plain sqlite3."""
    path = folder / "baseline.db"
    path.unlink(missing_ok=True)
    database = sqlite3.connect(path, isolation_level=None)
    database.execute("PRAGMA journal_mode=WAL")
    database.execute("PRAGMA synchronous=FULL")
    database.execute("CREATE TABLE jobs (id INTEGER PRIMARY KEY, state INTEGER, payload BLOB)")
    cycles, started = 0, perf_counter()
    while perf_counter() - started < seconds:
        database.execute("INSERT INTO jobs (state, payload) VALUES (0, ?)", (PAYLOAD,))
        [(job,)] = database.execute(
            "UPDATE jobs SET state = 1 WHERE id = (SELECT min(id) FROM jobs WHERE state = 0) RETURNING id"
        ).fetchall()
        database.execute("DELETE FROM jobs WHERE id = ?", (job,))
        cycles += 1
    elapsed = perf_counter() - started
    database.close()
    return cycles / elapsed


def fast(work: Coroutine[Any, Any, Figure]) -> Figure:
    """Run on uvloop, with the collector calmed."""
    hq.calm_collector()
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(work)


def plainly(work: Coroutine[Any, Any, Figure]) -> Figure:
    """Run on asyncio's own loop, with the collector as Python sets it."""
    gc.unfreeze()
    gc.set_threshold(*PYTHONS_OWN)
    return asyncio.run(work)


async def worked(workers: int, seconds: float, cycle: Callable[[], Awaitable[int]]) -> float:
    """Cycles a second of so many workers at once."""
    stop = perf_counter() + seconds

    async def work() -> int:
        done = 0
        while perf_counter() < stop:
            done += await cycle()
        return done

    started = perf_counter()
    done = await asyncio.gather(*(work() for _ in range(workers)))
    return sum(done) / (perf_counter() - started)


async def cycles(folder: Path, workers: int, queues: int, seconds: float) -> float:
    """Cycles a second over so many queues."""
    async with hq.open(str(folder / f"cycles-{queues}.db")) as system:
        handles = [await system.create_queue(f"q.{number}") for number in range(queues)]

        for handle in handles:
            await handle.stats()  # awake, as in a system that has run for a while

        async def cycle() -> int:
            queue = random.choice(handles)
            await queue.enqueue(PAYLOAD)
            messages = await queue.receive()
            for message in messages:
                await queue.complete(message)
            return len(messages)

        return await worked(workers, seconds, cycle)


async def enqueues(folder: Path, keyed: str, seconds: float) -> float:
    """Enqueues a second of 64 workers, with or without a new dedup key each."""
    async with hq.open(str(folder / "keys.db")) as system:
        queue = await system.create_queue(keyed, dedup_ms=86_400_000)
        numbers = iter(range(1 << 60))
        salt = random.getrandbits(64)

        async def cycle() -> int:
            key = f"{salt}-{next(numbers)}" if keyed == "keyed" else None
            await queue.enqueue(PAYLOAD, dedup_key=key)
            return 1

        return await worked(64, seconds, cycle)


async def fill(path: Path, count: int, *, keyed: bool) -> None:
    """Store so many waiting messages."""
    async with hq.open(str(path)) as system:
        queue = await system.create_queue(
            "keyed" if keyed else "jobs", **({"dedup_ms": 86_400_000} if keyed else {})
        )
        for first in range(0, count, 1_000):
            numbers = range(first, min(first + 1_000, count))
            await asyncio.gather(
                *(queue.enqueue(PAYLOAD, dedup_key=f"stored-{n}" if keyed else None) for n in numbers)
            )


async def backlog_child(path: str) -> None:
    """In a process of its own: how long opening takes, the rate of receive + complete, the memory held.

    Every round opens the file again, so that what it takes out comes from the file, and puts as much back.
    """
    opened_s, spent = [], 0.0
    for _ in range(BACKLOG_ROUNDS):
        started = perf_counter()
        async with hq.open(path, limits=BACKLOG_LIMITS) as system:
            queue = system.queue("jobs")
            await take_out(queue, 1, workers=1)
            opened_s.append(perf_counter() - started)
            started = perf_counter()
            await take_out(queue, BACKLOG_CYCLES, workers=64)
            spent += perf_counter() - started
            await queue.enqueue_many([PAYLOAD] * (BACKLOG_CYCLES + 1))
    rate = BACKLOG_CYCLES * BACKLOG_ROUNDS / spent
    print(json.dumps({"opened_s": median(opened_s), "rate": rate, "mb": resident_mb()}))


def resident_mb() -> float:
    """The most this process ever held; not ru_maxrss, which begins with what its parent held."""
    return int(Path("/proc/self/status").read_text().partition("VmHWM:")[2].split()[0]) / 1_024


async def take_out(queue: hq.Queue, count: int, workers: int) -> None:
    """Receive and complete so many messages, or fewer if there are none left."""
    left = iter(range(count))

    async def work() -> None:
        for _ in left:
            for message in await queue.receive():
                await queue.complete(message)

    await asyncio.gather(*(work() for _ in range(workers)))


async def backlog(path: Path) -> dict[str, float]:
    """The figures of a backlog, measured in a new process."""
    child = await asyncio.create_subprocess_exec(
        sys.executable, "-P", __file__, "--backlog", str(path), stdout=asyncio.subprocess.PIPE
    )
    output, _ = await child.communicate()
    figures: dict[str, float] = json.loads(output)
    return figures


def line(name: str, raw: Sequence[float], unit: str, of: float | None = None, aim: str = "") -> None:
    """Print one line of the table, a median, and the figures it is the median of."""
    value = median(raw)
    ratio = "" if of is None else f"{value / of:10.2f} x"
    print(f"{name:<52}{value:12,.1f} {unit:<4}{ratio:>12}  {aim}")
    if len(raw) > 1:
        print(f"    {' '.join(f'{figure:,.0f}' for figure in raw)}", flush=True)


def compare_cycles(folder: Path, seconds: float, runs: int) -> None:
    """Cycles against the baseline, in turns."""
    shapes = {
        "1 worker": (fast, 1, 1),
        "64 workers": (fast, 64, 1),
        "512 workers": (fast, 512, 1),
        "512 workers, asyncio, Python's own collecting": (plainly, 512, 1),
        "64 workers, 1,000 queues": (fast, 64, 1_000),
    }
    raw: dict[str, list[float]] = {"baseline": [], **{name: [] for name in shapes}}
    for _ in range(runs):
        raw["baseline"].append(baseline(folder, seconds))
        for name, (run, workers, queues) in shapes.items():
            raw[name].append(run(cycles(folder, workers, queues, seconds)))
    plain = median(raw["baseline"])
    aims = {"1 worker": "0.4 x", "64 workers": "10 x", "512 workers": "25 x"}
    for name, figures in raw.items():
        line(name, figures, "c/s", plain, f"aim {aims[name]}" if name in aims else "")
    one = median(raw["64 workers"])
    line("1,000 queues against one", raw["64 workers, 1,000 queues"], "c/s", one, "aim 0.5 x")


async def compare_keys(folder: Path, seconds: float, runs: int, stored: int) -> None:
    """Enqueues with new dedup keys against enqueues without."""
    await fill(folder / "keys.db", stored, keyed=True)
    raw: dict[str, list[float]] = {"unkeyed": [], "keyed": []}
    for _ in range(runs):
        for name, figures in raw.items():
            figures.append(await enqueues(folder, name, seconds))
    plain = median(raw["unkeyed"])
    line("enqueue without a key", raw["unkeyed"], "e/s")
    line(f"enqueue with a new key, {stored:,} stored", raw["keyed"], "e/s", plain, "aim 0.5 x")


async def compare_backlogs(folder: Path, runs: int, large: int) -> None:
    """A small backlog against a large one."""
    sizes = (0, SMALL, 10_000, large)
    raw: dict[int, list[dict[str, float]]] = {size: [] for size in sizes}
    for size in sizes:
        await fill(folder / f"backlog-{size}.db", size, keyed=False)
    for _ in range(runs):
        for size in sizes:
            raw[size].append(await backlog(folder / f"backlog-{size}.db"))

    def figures(size: int, name: str) -> list[float]:
        return [told[name] * (1e3 if name == "opened_s" else 1) for told in raw[size]]

    for title, name, unit, small, aim in (
        ("receive + complete", "rate", "c/s", SMALL, "aim 0.8 x"),
        ("open and first cycle", "opened_s", "ms", 10_000, "aim at most 2 x"),
        ("resident memory", "mb", "MB", 0, "aim at most 100 MB more"),
    ):
        few, many = figures(small, name), figures(large, name)
        line(f"{title}, {small:,} waiting", few, unit)
        line(f"{title}, {large:,} waiting", many, unit, median(few), aim)


def main() -> None:
    """Measure all, or the child's part."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seconds", type=float, default=5.0)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--quick", action="store_true", help="one short run of each, small sizes")
    parser.add_argument("--backlog", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.backlog:
        fast(backlog_child(arguments.backlog))
        return
    seconds, runs, large = arguments.seconds, arguments.runs, LARGE
    if arguments.quick:
        seconds, runs, large = 1.0, 1, 20_000
    with tempfile.TemporaryDirectory(prefix="hq-bench-") as name:
        folder = Path(name)
        compare_cycles(folder, seconds, runs)
        fast(compare_keys(folder, seconds, runs, large))
        fast(compare_backlogs(folder, runs, large))


if __name__ == "__main__":
    main()
