"""Deep backlogs on SQLite, each in a process of its own so that its memory can be told.

    python -m tests.scale.scenarios blocked_group --size 1000000

prints what the process held at most beyond an empty system, in MB. `make soak` runs all of them at full size.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import resource
import sys
import tempfile
from collections.abc import Awaitable, Callable, Iterable
from pathlib import Path

from hq.actors.limits import Limits
from hq.actors.node import Node
from hq.backends.sqlite import SqliteBackend
from hq.domain.commands import Complete, Count, Enqueue, Receive
from hq.domain.messages import Options
from hq.domain.settings import DAY_MS, Settings

FULL_BUDGET = 256 << 20
FULL_SIZES = {
    "blocked_group": 1_000_000,
    "delayed": 1_000_000,
    "late_priority": 1_000_000,
    "many_queues": 10_000_000,
    "large_payloads": 10_000,
}
SIDE_BY_SIDE = 1_000
LARGE = bytes(256 << 10)


async def enqueue_all(
    node: Node, commands: Iterable[tuple[str, Enqueue]], side_by_side: int = SIDE_BY_SIDE
) -> None:
    """Enqueue many, so many at a time."""
    waiting: list[tuple[str, Enqueue]] = []
    for command in commands:
        waiting.append(command)
        if len(waiting) == side_by_side:
            await asyncio.gather(*(node.ask(*one) for one in waiting))
            waiting.clear()
    await asyncio.gather(*(node.ask(*one) for one in waiting))


async def first_payload(node: Node, name: str) -> bytes:
    """What a receive gives first; it is completed."""
    [delivery] = await node.receive(name, Receive(), 0)
    await node.ask(name, Complete(delivery.message, delivery.token))
    return delivery.payload


async def blocked_group(node: Node, size: int) -> None:
    """A group whose first message is leased hides nothing of the others."""
    await node.create("jobs", Settings(lease_ms=DAY_MS))
    await node.ask("jobs", Enqueue(b"first", Options(group="blocked")))
    await node.receive("jobs", Receive(), 0)
    blocked = Options(group="blocked")
    await enqueue_all(node, (("jobs", Enqueue(b"blocked", blocked)) for _ in range(size)))
    await node.ask("jobs", Enqueue(b"free", Options(group="free")))
    await node.ask("jobs", Enqueue(b"plain"))

    assert await first_payload(node, "jobs") == b"free"
    assert await first_payload(node, "jobs") == b"plain"
    assert await node.receive("jobs", Receive(), 0) == []
    assert (await node.ask("jobs", Count())).ready == size


async def delayed(node: Node, size: int) -> None:
    """Messages delayed for a year are not walked through."""
    await node.create("jobs", Settings())
    later = Options(delay_ms=365 * DAY_MS)
    await enqueue_all(node, (("jobs", Enqueue(b"later", later)) for _ in range(size)))
    await node.ask("jobs", Enqueue(b"now"))

    assert await first_payload(node, "jobs") == b"now"
    assert await node.receive("jobs", Receive(), 0) == []
    assert (await node.ask("jobs", Count())).delayed == size


async def late_priority(node: Node, size: int) -> None:
    """A late message of a high priority comes before a deep backlog, and the backlog stays in order."""
    await node.create("jobs", Settings())
    await enqueue_all(node, (("jobs", Enqueue(b"%d" % number)) for number in range(size)))
    await node.ask("jobs", Enqueue(b"urgent", Options(priority=9)))

    assert await first_payload(node, "jobs") == b"urgent"
    for number in range(min(size, 3_000)):
        assert await first_payload(node, "jobs") == b"%d" % number


async def many_queues(node: Node, size: int) -> None:
    """Many queues of ten thousand messages share one budget."""
    names = [f"q.{number}" for number in range(size // 10_000)]
    for name in names:
        await node.create(name, Settings())
    each = size // len(names)
    await enqueue_all(node, ((name, Enqueue(b"%d" % n)) for n in range(each) for name in names))

    for name in names:
        assert await first_payload(node, name) == b"0"
        assert (await node.ask(name, Count())).ready == each - 1


async def large_payloads(node: Node, size: int) -> None:
    """Large payloads are in storage, not in memory."""
    await node.create("jobs", Settings())
    await enqueue_all(node, (("jobs", Enqueue(LARGE)) for _ in range(size)), side_by_side=4)

    for _ in range(20):
        assert len(await first_payload(node, "jobs")) == len(LARGE)


async def empty(node: Node, _: int) -> None:
    """What a process holds before it has anything to hold."""
    await node.create("jobs", Settings())


SCENARIOS: dict[str, Callable[[Node, int], Awaitable[None]]] = {
    "blocked_group": blocked_group,
    "delayed": delayed,
    "late_priority": late_priority,
    "many_queues": many_queues,
    "large_payloads": large_payloads,
    "empty": empty,
}


async def run(name: str, size: int, budget: int) -> None:
    """One scenario; prints the most this process held, in MB."""
    limits = Limits(memory_bytes=budget, checkpoint_bytes=budget // 8, checkpoint_events=20_000)
    with tempfile.TemporaryDirectory(prefix="hq-scale-") as folder:
        backend = SqliteBackend(Path(folder) / "hq.db")
        await backend.open()
        try:
            async with Node(backend, limits=limits) as node:
                await SCENARIOS[name](node, size)
        finally:
            await backend.close()
    print(json.dumps({"mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024}))


def main() -> None:
    """Run the scenario named."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("scenario", choices=list(SCENARIOS))
    parser.add_argument("--size", type=int, default=None)
    parser.add_argument("--budget", type=int, default=FULL_BUDGET)
    arguments = parser.parse_args(sys.argv[1:])
    size = arguments.size or FULL_SIZES.get(arguments.scenario, 0)
    asyncio.run(run(arguments.scenario, size, arguments.budget))


if __name__ == "__main__":
    main()
