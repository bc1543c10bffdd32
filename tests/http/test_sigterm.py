"""SIGTERM to a real `hq serve`: it answers who waits, exits with 0, and what it took is there again."""

import asyncio
import re
import signal
import socket
import subprocess
from contextlib import suppress

import anyio
import httpx
import pytest

from tests.http.process import hq_serve
from tests.http.raw import connected, statuses

GRACE_S = 2
POLLS = 200
POLL = b"POST /queues/emails/poll?wait_ms=60000 HTTP/1.1\r\nHost: hq\r\n\r\n"
BATCHES = 10
WAITING = re.compile(r'^hq_queue_waiting_receives{queue="emails"} (\d+)\.0$', re.MULTILINE)

pytestmark = pytest.mark.slow


@pytest.fixture(params=["hypercorn", "uvicorn"])
def serving(request, tmp_path):
    """Starts a server, on the same file each time."""

    def start():
        flags = "--database", str(tmp_path / "hq.db"), "--engine", request.param
        return hq_serve(*flags, HQ_SERVER__GRACE_S=str(GRACE_S))

    return start


async def test_long_polls_are_answered_and_the_process_ends(serving, until):
    with serving() as (process, address):
        async with httpx.AsyncClient(base_url=address) as client, asyncio.TaskGroup() as tasks:
            await client.post("/queues?name=emails")
            polls = [tasks.create_task(poll_until_closed(address)) for _ in range(POLLS)]

            async def all_wait():
                return WAITING.findall((await client.get("/metrics")).text) == [str(POLLS)]

            await until(all_wait)
            process.send_signal(signal.SIGTERM)
        assert await anyio.to_thread.run_sync(process.wait, GRACE_S) == 0

    answers = [poll.result() for poll in polls]
    assert [statuses(answer) for answer in answers] == [[200]] * POLLS
    assert all(answer.endswith(b'{"messages":[]}') for answer in answers)


async def poll_until_closed(address):
    async with connected(address) as connection:
        await connection.send(POLL)
        return await connection.read()


def test_being_told_again_to_stop_changes_nothing(serving):
    with serving() as (process, address):
        httpx.post(f"{address}/queues?name=emails")
        for _ in range(BATCHES):
            sent = httpx.post(f"{address}/queues/emails/messages", json=[{"payload": "x" * 1_000}] * 1_000)
            assert sent.status_code == 200, sent.text
        while process.poll() is None:
            process.send_signal(signal.SIGTERM)
            with suppress(subprocess.TimeoutExpired):
                process.wait(0.001)
        assert process.returncode == 0

    with serving() as (_, address):
        assert httpx.get(f"{address}/queues/emails/stats").json()["ready"] == BATCHES * 1_000


def test_a_connection_that_says_nothing_does_not_hold_it_up(serving):
    with serving() as (process, address):
        where = httpx.URL(address)
        with (
            socket.create_connection((where.host, where.port)),
            socket.create_connection((where.host, where.port)) as half,
        ):
            half.sendall(b"POST /queues/emails/enqueue HTTP/1.1\r\nHost: hq\r\nContent-Length: 9\r\n\r\nx")
            httpx.get(f"{address}/healthz")
            process.send_signal(signal.SIGTERM)
            assert process.wait(2 * GRACE_S) == 0
