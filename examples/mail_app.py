"""A web app that answers at once and sends its mail through hq.

    pip install 'hq-queue[server]' && quart --app examples.mail_app run

One process does both here: it serves requests and works on the queue. To let another process work, leave
`worker.running` out and start `hq work examples.mail_app:worker`.
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack

from quart import Quart, request

import hq

DATABASE = os.environ.get("HQ_DATABASE", "mail.db")

app = Quart(__name__)
worker = hq.Worker(concurrency=5)
outbox: list[tuple[str, str]] = []
"""What was sent: a real app would talk to a mail server."""


@worker.task("mail", max_attempts=5, result_ms=600_000)
async def send_welcome(address: str, name: str) -> str:
    """Send one letter; whatever it raises is tried again later."""
    if "@" not in address:
        raise hq.Fail(f"{address!r} is no address")
    outbox.append((address, f"Welcome, {name}!"))
    return f"sent to {address}"


@app.while_serving
async def queueing() -> AsyncIterator[None]:
    """Open the queue with the app, and close it with the app."""
    async with AsyncExitStack() as stack:
        system = await stack.enter_async_context(hq.open(DATABASE))
        await stack.enter_async_context(worker.running(system))
        yield


@app.post("/users")
async def sign_up() -> tuple[dict[str, object], int]:
    """Accept a user; a second request for the same one sends no second letter."""
    user = await request.get_json()
    letter = send_welcome.options(dedup_key=f"welcome {user['address']}", dedup_ms=86_400_000)
    job = await letter.enqueue(user["address"], user["name"])
    return {"job": job.id, "duplicate": job.duplicate}, 202


@app.get("/jobs/<job_id>")
async def show(job_id: str) -> dict[str, object]:
    """How far a letter is; waits for it for a second."""
    outcome = await worker.outcome("mail", job_id, wait_ms=1_000)
    return {"state": outcome.state, "result": outcome.result, "error": outcome.error}
