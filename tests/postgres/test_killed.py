"""Nodes that are killed while applications enqueue: every message that was committed comes once."""

import sys
from itertools import count
from signal import SIGKILL

import anyio
import pytest

from hq.actors.node import Node
from hq.domain.commands import Count, Receive
from hq.domain.settings import Settings
from tests.postgres.applications import asyncpg_connection, message
from tests.postgres.conftest import SHORT

NODE = f"""
import asyncio, sys
from hq.actors.node import Node
from hq.backends.postgres import PostgresBackend, Shape, Term

async def main(url, schema):
    backend = PostgresBackend(url, shape=Shape(schema=schema), term=Term({SHORT.time_s}, {SHORT.margin_s}))
    await backend.open()
    async with Node(backend) as node:
        await asyncio.Event().wait()

asyncio.run(main(*sys.argv[1:]))
"""
KILLS = 5


@pytest.mark.slow
async def test_a_node_that_is_killed_loses_and_doubles_nothing(
    opened, admin, table, postgres_url, postgres_schema
):
    backend = await opened()
    await backend.create("jobs", Settings())
    await backend.close()
    numbers = count()
    committed = []

    async def enqueue_for_ever():
        while True:
            payload = b"%d" % next(numbers)
            await asyncpg_connection(postgres_url, message("jobs", payload, schema=postgres_schema))
            committed.append(payload)

    async def taken():
        return await admin.fetchval(f"SELECT coalesce(max(last), 0) FROM {table('journal')}")

    with anyio.fail_after(60):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(enqueue_for_ever)
            for kill in range(KILLS):
                node = await anyio.open_process([sys.executable, "-c", NODE, postgres_url, postgres_schema])
                before = await taken()
                # It claims the queue, takes what has gathered, and dies at another place each time.
                while await taken() < before + 2 + 7 * kill:
                    await anyio.lowlevel.checkpoint()
                node.send_signal(SIGKILL)
                await node.wait()
            # One that is under way may be committed though it is given up here.
            tasks.cancel_scope.cancel()

        async with Node(await opened()) as node:
            while (stats := await node.ask("jobs", Count())).inbox or stats.enqueued < len(committed):
                pass
            payloads = []
            while deliveries := await node.receive("jobs", Receive(1_000), 0):
                payloads += [one.payload for one in deliveries]

    assert payloads[: len(committed)] == committed
    assert len(payloads) <= len(committed) + 1
    assert len(set(payloads)) == len(payloads)
