"""The process that is killed: one hq system on a store, used by tasks that record a history.

`work` makes the queues, or finds them, and lets producers and consumers loose until it is killed. `drain`
receives and completes all there is. `look` does nothing. The last two write what is left to a file, and then
die as suddenly as if they had been killed, so that nothing is tidied up.

`work` on the address of a server is the same over HTTP. Then the server is killed, and this ends when its
last connection is gone.

On stdout: an S before the store is opened, an R when it is ready, a dot for every line of the history.
"""

import json
import os
import signal
from argparse import ArgumentParser
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from random import Random

import anyio

import hq
from tests.checkers.history import Asked, Recorder
from tests.faults.clients import QUEUES, Client
from tests.faults.over_http import HttpSystem, ServerGone

DRAIN_LEASE_MS = 60_000
DRAIN_SECONDS = 60
TIGHT_SHARE = 0.7
PAGE = 500

# Small enough that a life of a second forgets, reads back and writes many checkpoints, in many chunks.
TIGHT = hq.Limits(head=10, chunk=10, checkpoint_events=60, checkpoint_ms=100, idle_ms=200)


class TellingRecorder(Recorder):
    """A recorder that says on stdout that it has written."""

    def _write(self, **line) -> None:
        super()._write(**line)
        tell(b".")


def opened(database: str, limits: hq.Limits | None = None):
    """A system; on Postgres with an ownership so short that the next life does not wait long."""
    return hq.open(database, limits=limits, postgres={"ownership_s": 3})


def tell(sign: bytes) -> None:
    os.write(1, sign)


async def work(place: str, recorder: Recorder, random: Random, clients: int) -> None:
    if place.startswith("http:"):
        with suppress(ServerGone):
            await work_with(lambda: HttpSystem(place), recorder, random, clients)
        return
    limits = TIGHT if random.random() < TIGHT_SHARE else None
    async with opened(place, limits) as system:
        tell(b"R")
        await work_with(lambda: system, recorder, random, clients)


async def work_with(system: Callable, recorder: Recorder, random: Random, clients: int) -> None:
    """`system` is called for every client: over HTTP each has a connection of its own."""
    operator = system()
    for name, settings in QUEUES.items():
        key = recorder.invoke("operator", "create_queue", name, Asked())
        await operator.create_queue(name, **changed_in(settings))
        recorder.ok(key)
    life = f"{random.getrandbits(32):08x}"
    async with anyio.create_task_group() as tasks:
        for number in range(clients):
            for role in ("produce", "consume"):
                client = Client(f"{life} {role} {number}", system(), recorder, Random(random.random()))
                tasks.start_soon(until_gone, getattr(client, role))


async def until_gone(work_on: Callable[[], Awaitable[None]]) -> None:
    """What a client asked last has no answer then, which is how a history knows what is unknown."""
    with suppress(ServerGone):
        await work_on()


async def drain(database: str, recorder: Recorder, result: Path) -> None:
    async with opened(database) as system:
        tell(b"R")
        client = Client("drain", system, recorder, Random(0))
        with anyio.fail_after(DRAIN_SECONDS):
            for queue in await system.queues():
                while await is_live(queue):
                    for message in await client.receive(queue.name, 100, DRAIN_LEASE_MS, 200):
                        await client.settle("complete", queue.name, message)
        write_and_die(await everything(system), result)


async def look(database: str, result: Path) -> None:
    async with opened(database) as system:
        tell(b"R")
        write_and_die(await everything(system), result)


async def is_live(queue: hq.Queue) -> bool:
    stats = await queue.stats()
    return stats.ready + stats.delayed + stats.leased > 0


async def everything(system: hq.System) -> dict:
    """For each queue its counts, and of every message where it is and how far it has come."""
    found = {}
    for queue in await system.queues():
        messages = [*await all_pages(queue.browse), *await all_pages(queue.dead_letters)]
        stats = asdict(await queue.stats())
        found[queue.name] = {
            # A claim at every opening has a sequence of its own.
            "stats": {
                word: count for word, count in stats.items() if type(count) is int and word != "sequence"
            },
            "messages": [[one.id, one.state, one.receives, one.attempts] for one in messages],
        }
    return found


def write_and_die(found: dict, result: Path) -> None:
    result.write_text(json.dumps(found))
    os.kill(os.getpid(), signal.SIGKILL)


async def all_pages(page) -> list[hq.SeenMessage]:
    found = await page(limit=PAGE)
    while more := await page(after=found[-1], limit=PAGE) if found else None:
        found += more
    return found


def changed_in(settings: hq.Settings) -> dict:
    """The keywords that make these settings out of the defaults."""
    default = hq.Settings()
    names = settings.__dataclass_fields__
    return {
        name: getattr(settings, name) for name in names if getattr(settings, name) != getattr(default, name)
    }


def main() -> None:
    parser = ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("role", choices=("work", "drain", "look"))
    parser.add_argument("place", help="the URL of a store, or to work with, the address of a server")
    parser.add_argument("--history", type=Path)
    parser.add_argument("--result", type=Path)
    parser.add_argument("--seed", type=int)
    parser.add_argument("--clients", type=int)
    asked = parser.parse_args()
    tell(b"S")
    if asked.role == "work":
        anyio.run(work, asked.place, TellingRecorder(asked.history), Random(asked.seed), asked.clients)
    elif asked.role == "drain":
        anyio.run(drain, asked.place, TellingRecorder(asked.history), asked.result)
    else:
        anyio.run(look, asked.place, asked.result)


if __name__ == "__main__":
    main()
