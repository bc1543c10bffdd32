"""A backup of the whole store, made beside all other work and sent as it is read."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

import anyio
from anyio.to_thread import run_sync as run

from hq.http.calls import Call
from hq.http.replies import Reply

SQLITE = "application/vnd.sqlite3"
CHUNK = 1 << 18


async def backup(call: Call) -> Reply:
    """A SQLite file that `hq restore` takes, for either kind of database."""
    call.line.guard.check()
    # One at a time: each takes as much room on the disk as there is in the store.
    async with call.api.backups:
        folder = await run(partial(TemporaryDirectory, prefix="hq-backup-"))
        made = Path(folder.name) / "backup.db"
        try:
            await call.node.copy(made)
        except BaseException:
            with anyio.CancelScope(shield=True):
                await run(folder.cleanup)
            raise
    return Reply(200, b"", SQLITE, stream=_sent(made, folder))


async def _sent(made: Path, folder: TemporaryDirectory[str]) -> AsyncGenerator[bytes]:
    try:
        async with await anyio.open_file(made, "rb") as file:
            while chunk := await file.read(CHUNK):
                yield chunk
    finally:
        with anyio.CancelScope(shield=True):
            await run(folder.cleanup)
