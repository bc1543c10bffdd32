"""Damage is found in whatever is stored, on each backend that has a disk."""

import sqlite3
from contextlib import closing

import pytest

from hq.backends.sqlite import SqliteBackend
from hq.domain.checkpoint import Chunk, Snapshot
from hq.domain.settings import Settings
from tests.backends.samples import row


@pytest.fixture
def anyio_backend():
    return "asyncio"


@pytest.fixture
async def stored(tmp_path):
    """The path of a file that has 120 rows of messages and a snapshot."""
    backend = SqliteBackend(tmp_path / "hq.db")
    await backend.open()
    queue = (await backend.create("jobs", Settings())).number
    rows = [row(number) for number in range(1, 121)]
    await backend.checkpoint(queue, Chunk(rows, [], {}, Snapshot(Settings(), 120)), None)
    await backend.close()
    return tmp_path / "hq.db"


async def found(path, most=100):
    backend = SqliteBackend(path)
    await backend.open()
    try:
        return await backend.damage(most)
    finally:
        await backend.close()


async def test_what_is_whole_is_not_told(stored):
    assert await found(stored) == []


@pytest.mark.parametrize(
    ("damage", "count"),
    [
        ("UPDATE messages SET payload = x'00' WHERE sequence = 1", 1),
        ("UPDATE messages SET body = x'00' WHERE sequence IN (50, 51, 120)", 3),
        ("UPDATE messages SET available_at = available_at + 1 WHERE sequence = 100", 1),
        ("UPDATE checkpoints SET snapshot = x'00'", 1),
    ],
)
async def test_damage_is_told_wherever_it_is(stored, damage, count):
    with closing(sqlite3.connect(stored)) as file, file:
        file.execute(damage)
    assert len(await found(stored)) == count


async def test_no_more_is_told_than_was_asked_for(stored):
    with closing(sqlite3.connect(stored)) as file, file:
        file.execute("UPDATE messages SET payload = x'00'")
    assert len(await found(stored, 7)) == 7
