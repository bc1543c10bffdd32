"""What a backlog costs cl-sqs: dequeue and delete with a million messages in 10,000 groups, and with 1,000.

Both are SQLite files, full durability, asked through the application of the server without a network by 64
consumers. The large one is opened anew once it is filled. Rounds of 1,000 messages take turns; the small
backlog is filled again for each. Medians are compared: the large one must give at least 0.7 of the rate.

    python -P benchmarks/dialects.py
    python -P benchmarks/dialects.py --quick
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any

import hq
from hq.domain.commands import Enqueue
from hq.domain.messages import Options
from hq.http.app import create_dialect_app
from hq.http.calls import Api, Terms
from hq.http.dialects.cl_sqs import CL_SQS, QUEUE, SETTINGS
from hq.http.door import Door

SMALL = 1_000
CONSUMERS = 64
BATCH = 500
LEAST = 0.7
REOPENED = 3
PAYLOAD = "x" * 200


async def ask(app: Door, method: str, query: str) -> tuple[int, dict[bytes, bytes]]:
    """The status and the headers of an answer."""
    said: list[dict[str, Any]] = []

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message: dict[str, Any]) -> None:
        said.append(message)

    scope = {
        "type": "http", "method": method, "path": "/queue", "query_string": query.encode(),
        "http_version": "1.1", "headers": [(b"host", b"hq")],
    }  # fmt: skip
    await app(scope, receive, send)
    return said[0]["status"], dict(said[0]["headers"])


async def fill(api: Api, count: int, groups: int) -> None:
    """Put messages into the groups by turns."""
    await api.node.create(QUEUE, SETTINGS)
    number = api.node.number(QUEUE)
    for first in range(0, count, BATCH):
        commands = [
            Enqueue(f"{one} {PAYLOAD}".encode(), Options(group=f"g{one % groups}", dedup_key=str(one)))
            for one in range(first, min(first + BATCH, count))
        ]
        told = await api.node.post_many(number, commands)
        assert not any(isinstance(one, Exception) for one in told), told


async def drain(app: Door, count: int) -> float:
    """Dequeue and delete so many; how many a second."""
    left = count

    async def consume() -> None:
        nonlocal left
        while left > 0:
            left -= 1
            status, headers = await ask(app, "GET", "")
            assert status == 200, status
            receipt = headers[b"message-receipt-id"].decode()
            status, _ = await ask(app, "DELETE", f"receipt-id={receipt}")
            assert status == 200, status

    begun = perf_counter()
    await asyncio.gather(*(consume() for _ in range(CONSUMERS)))
    return count / (perf_counter() - begun)


async def measure(messages: int, groups: int, rounds: int) -> tuple[float, float]:
    """The rates with the large backlog and with the small one."""
    large: list[float] = []
    small: list[float] = []
    with tempfile.TemporaryDirectory() as folder:
        paths = [Path(folder) / name for name in ("large.db", "small.db")]
        begun = perf_counter()
        async with hq.open(f"sqlite:///{paths[0]}") as much:
            await fill(Api(much.line, Terms()), messages, groups)
        print(f"filled with {messages:,} messages in {groups:,} groups in {perf_counter() - begun:.0f} s")
        for _ in range(REOPENED):
            # Or the figure would be that of the checkpoint of the filling, and of replaying what it lacks.
            async with hq.open(f"sqlite:///{paths[0]}") as much:
                await drain(create_dialect_app(Api(much.line, Terms()), CL_SQS), SMALL)
        async with hq.open(f"sqlite:///{paths[0]}") as much, hq.open(f"sqlite:///{paths[1]}") as little:
            apis = Api(much.line, Terms()), Api(little.line, Terms())
            apps = [create_dialect_app(api, CL_SQS) for api in apis]
            await drain(apps[0], SMALL)
            for _ in range(rounds):
                large.append(await drain(apps[0], SMALL))
                await fill(apis[1], SMALL, SMALL)
                small.append(await drain(apps[1], SMALL))
                print(f"large {large[-1]:8,.0f}/s   small {small[-1]:8,.0f}/s")
    return median(large), median(small)


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("--messages", type=int, default=1_000_000)
    parser.add_argument("--groups", type=int, default=10_000)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--quick", action="store_true", help="20,000 messages in 2,000 groups, 3 rounds")
    options = parser.parse_args()
    if options.quick:
        options.messages, options.groups, options.rounds = 20_000, 2_000, 3
    large, small = asyncio.run(measure(options.messages, options.groups, options.rounds))
    print(f"dequeue + delete: {large:,.0f}/s of {small:,.0f}/s, {large / small:.2f}x; at least {LEAST}x")
    return 0 if large >= LEAST * small else 1


if __name__ == "__main__":
    sys.exit(main())
