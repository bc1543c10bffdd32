"""Workers against the same client without handlers, and how soon a handler has what is enqueued.

    python benchmarks/workers.py             on a SQLite file, embedded
    python benchmarks/workers.py --url URL   elsewhere: memory:, or http://host:port of a running server

A worker with 100 async handlers keeps at least 0.7 of what a loop over receive and complete does in batches
of 100. From enqueue to handler it takes under 10 ms at the median embedded, under 20 ms over HTTP.
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
import tempfile
import time
from pathlib import Path

import hq

MESSAGES = 20_000
BATCH = 100
ROUNDS = 3
PINGS = 200


async def fill(queue: hq.Queue) -> None:
    """Enqueue all there is to work on."""
    for _ in range(MESSAGES // 1_000):
        await queue.enqueue_many([b"x" * 100] * 1_000)


async def by_loop(queue: hq.Queue) -> float:
    """Messages a second of a loop over receive and complete."""
    await fill(queue)
    began = time.perf_counter()
    while messages := await queue.receive(BATCH):
        await queue.complete(messages)
    return MESSAGES / (time.perf_counter() - began)


async def by_worker(system: hq.System, queue: hq.Queue) -> float:
    """The same of a worker with as many handlers as the loop has messages in a batch."""
    await fill(queue)
    worker = hq.Worker(concurrency=BATCH)
    handled = 0

    @worker.handle(queue.name)
    async def handle(_: hq.Message) -> None:
        nonlocal handled
        handled += 1
        if handled == MESSAGES:
            worker.stop()

    began = time.perf_counter()
    await worker.run(system)
    return MESSAGES / (time.perf_counter() - began)


async def pings(system: hq.System, queue: hq.Queue) -> list[float]:
    """Milliseconds from the call of enqueue until its handler begins."""
    worker = hq.Worker(concurrency=10)
    begun = asyncio.Event()
    at = 0.0

    @worker.handle(queue.name)
    async def handle(_: hq.Message) -> None:
        nonlocal at
        at = time.perf_counter()
        begun.set()

    took = []
    async with worker.running(system):
        for _ in range(PINGS):
            begun.clear()
            sent = time.perf_counter()
            await queue.enqueue(b"ping")
            await begun.wait()
            took.append((at - sent) * 1_000)
    return took


async def measure(url: str) -> None:
    """Alternate, so that both meet the same machine, and print medians."""
    async with hq.open(url) as system:
        queue = await system.create_queue("bench")
        loops, workers = [], []
        for _ in range(ROUNDS):
            loops.append(await by_loop(queue))
            workers.append(await by_worker(system, queue))
        ratio = statistics.median(worker / loop for worker, loop in zip(workers, loops, strict=True))
        print(f"loop in batches of {BATCH}   {statistics.median(loops):>8,.0f} messages/s")
        print(f"worker, {BATCH} handlers     {statistics.median(workers):>8,.0f} messages/s")
        print(f"ratio                   {ratio:>8.2f}   at least 0.70")
        took = await pings(system, queue)
        bound = 20 if url.startswith("http") else 10
        print(f"enqueue to handler      {statistics.median(took):>8.2f} ms at the median, under {bound}")
        print(f"                        {sorted(took)[int(0.99 * PINGS)]:>8.2f} ms at the 99th percentile")


def main() -> None:
    """Measure where told, or on a file that goes afterwards."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--url")
    url = parser.parse_args().url
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(measure(url or str(Path(folder) / "hq.db")))


if __name__ == "__main__":
    main()
