"""A server that restarts under load, in order or by a crash: what was answered is there, and work goes on."""

import tempfile
from pathlib import Path

import anyio
import pytest
from anyio import to_thread

from hq.actors.limits import Limits as ActorLimits
from hq.actors.node import Node
from hq.backends.postgres import Term
from hq.domain.settings import Settings
from tests.postgres.cluster import Cluster
from tests.postgres.work import Work

RESTARTS = 2
LIMITS = ActorLimits(head=5, chunk=5, checkpoint_events=40)


@pytest.fixture(scope="module")
def server():
    """A server of its own, which nobody else minds."""
    cluster = Cluster(Path(tempfile.mkdtemp(prefix="hq-restarts-")))
    try:
        cluster.make()
        yield cluster
    finally:
        cluster.remove()


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["fast", "immediate"])
async def test_a_server_that_restarts_under_load_loses_nothing_that_was_answered(server, opened, mode):
    backend = await opened(url=server.url(), term=Term(time_s=5, margin_s=1))
    with anyio.fail_after(60):
        async with Node(backend, limits=LIMITS) as node:
            await node.create("jobs", Settings(max_attempts=None, lease_ms=200))
            work = Work(node, "jobs")
            async with anyio.create_task_group() as tasks:
                work.start(tasks)
                for _ in range(RESTARTS):
                    await work.more()
                    await to_thread.run_sync(server.stop, mode)
                    await to_thread.run_sync(server.start)
                    await work.more()
                work.stopping = True
            await work.drain()
