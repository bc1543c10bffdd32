"""Behind a pooler in transaction mode hq works as without: it keeps nothing in a session."""

import os
import re
import shutil
import subprocess
from contextlib import AsyncExitStack, ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory

import anyio
import pytest

from hq.actors.limits import Limits as ActorLimits
from hq.actors.node import Node
from hq.domain.commands import Complete, Count, Enqueue, Receive
from hq.domain.settings import Settings
from hq.errors import StorageError
from tests.postgres.cluster import NOBODY
from tests.postgres.pooler import Pooler
from tests.postgres.wire import listening, place_of, socket_url

SERVERS = 3
PROGRAM = shutil.which("pgbouncer")

PGBOUNCER = """
[databases]
* = {server} user=postgres
[pgbouncer]
listen_addr =
listen_port = 5432
unix_socket_dir = {folder}
auth_type = any
pool_mode = transaction
default_pool_size = 3
server_round_robin = 1
"""
# Many checkpoints and fetches, in a life that lasts a moment.
TIGHT = ActorLimits(head=5, chunk=5, checkpoint_events=20)


@pytest.fixture
async def pooled(postgres_url, tmp_path):
    """Puts a pooler before the server; it, and the URL that leads through it. Ask for it before `opened`."""
    async with AsyncExitStack() as stack:

        async def start(*, tracks):
            pooler = Pooler(postgres_url, SERVERS, tracks=tracks)
            stack.push_async_callback(pooler.close)
            return pooler, await stack.enter_async_context(listening(tmp_path, postgres_url, pooler.serve))

        yield start


async def work_through(backend):
    """A life with everything in it: four queues, six workers, checkpoints, and a look at the journal."""
    done = 0
    async with Node(backend, limits=TIGHT) as node:
        for number in range(4):
            await node.create(f"q{number}", Settings())

        async def work(number):
            nonlocal done
            queue = f"q{number % 4}"
            for turn in range(15):
                await node.ask(queue, Enqueue(b"%d %d" % (number, turn)))
                for one in await node.receive(queue, Receive(), 0):
                    await node.ask(queue, Complete(one.message, one.token))
                    done += 1

        async with anyio.create_task_group() as workers:
            for number in range(6):
                workers.start_soon(work, number)
        left = [await node.ask(f"q{number}", Count()) for number in range(4)]
    assert done + sum(stats.ready for stats in left) == 6 * 15
    assert sum(stats.completed for stats in left) == done > 0


@pytest.mark.parametrize("tracks", [True, False])
async def test_hq_works_behind_a_pooler_that_changes_servers_after_each_transaction(pooled, opened, tracks):
    pooler, url = await pooled(tracks=tracks)

    await work_through(await opened(url=url, prepared=tracks))

    assert pooler.handovers > 50, "clients were given each other's servers"


async def test_names_that_a_pooler_does_not_track_are_told_as_an_error_and_not_as_done(pooled, opened):
    _, url = await pooled(tracks=False)

    with pytest.raises(StorageError, match=r"26000|42P05"):
        await opened(url=url, prepared=True)


def installed():
    """Whether to prepare with the PgBouncer there is, if any; the pooler above stands in for all."""
    if PROGRAM is None:
        return []
    said = subprocess.run([PROGRAM, "--version"], capture_output=True, text=True, check=True).stdout
    tracks = tuple(map(int, re.search(r"(\d+)\.(\d+)", said).groups())) >= (1, 21)
    return [False, True] if tracks else [False]


@pytest.mark.parametrize("prepared", installed())
async def test_hq_works_behind_the_pgbouncer_that_is_installed(pgbouncer, opened, prepared):
    url = pgbouncer("max_prepared_statements = 200\n" if prepared else "")

    await work_through(await opened(url=url, prepared=prepared))


@pytest.fixture
def pgbouncer(postgres_url):
    """PgBouncer itself in transaction mode; like Postgres it does not run as root."""
    with TemporaryDirectory(prefix="hq-pgbouncer-") as name, ExitStack() as stack:
        folder = Path(name)
        ids = {}
        if os.geteuid() == 0:
            ids = {"user": NOBODY, "group": NOBODY}
            os.chown(folder, NOBODY, NOBODY)

        host, port = place_of(postgres_url)
        server = f"host={host} port={port}"

        def start(more):
            (folder / "ini").write_text(PGBOUNCER.format(folder=folder, server=server) + more)
            process = stack.enter_context(subprocess.Popen([PROGRAM, folder / "ini"], cwd=folder, **ids))
            stack.callback(process.terminate)
            return socket_url(postgres_url, folder)

        yield start
