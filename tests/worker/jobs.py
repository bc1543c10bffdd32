"""A worker for tests that start it as a process of its own; it leaves a line for every job it begins."""

import os
from pathlib import Path

import anyio
from anyio.lowlevel import checkpoint

import hq

worker = hq.Worker(lease_ms=1_000, grace_ms=10_000)
LOG = Path(os.environ.get("JOBS_LOG", os.devnull))


@worker.task("jobs")
async def job(name: str) -> None:
    """Work for ever the first time if it is told to; end when there is a file that says so."""
    attempts = hq.current_message().attempts
    await anyio.to_thread.run_sync(_note, f"{name} {attempts}")
    while name == "hang" and attempts == 1 and not LOG.with_suffix(".go").exists():
        await checkpoint()


def _note(line: str) -> None:
    with LOG.open("a") as log:
        log.write(line + "\n")
