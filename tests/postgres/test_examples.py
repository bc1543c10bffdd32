"""The examples of the page on Postgres run as they stand, one after the other, in one database."""

import asyncio
import re
import subprocess
import sys
from pathlib import Path

import anyio
import asyncpg
import pytest

import hq
from tests.conftest import execute, in_database

PAGE = Path(__file__).resolve().parents[2] / "docs" / "postgres.md"
BLOCKS = re.findall(r"^```(python|sql)\n(.*?)^```$", PAGE.read_text(), re.MULTILINE | re.DOTALL)
WRITTEN = re.compile(r"postgresql(\+psycopg)?://hq@127\.0\.0\.1:5432/hq")
ROLE = "app"


@pytest.fixture
def url(postgres_server):
    """A database as the page has it: nobody else's, and with a role `app`."""
    name = "hq_test_page"
    for statement in (f"CREATE DATABASE {name}", f"CREATE ROLE {ROLE}"):
        asyncio.run(execute(postgres_server, statement))
    yield in_database(postgres_server, name)
    for statement in (f"DROP DATABASE {name} WITH (FORCE)", f"DROP ROLE {ROLE}"):
        asyncio.run(execute(postgres_server, statement))


def run(language, block, url):
    if language == "sql":
        asyncio.run(execute(url, block))
        return
    here = WRITTEN.sub(lambda found: url.replace("postgresql:", f"postgresql{found[1] or ''}:"), block)
    ran = subprocess.run(
        [sys.executable, "-W", "error", "-"],
        input=here, capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert ran.returncode == 0, ran.stderr


def test_the_examples_run_and_do_what_they_say(url):
    assert [language for language, _ in BLOCKS] == ["python", "python", "sql", "sql"]
    for language, block in BLOCKS:
        run(language, block, url)

    assert asyncio.run(welcomed(url)) == {"bob@example.org", "eve@example.org"}
    assert asyncio.run(may_call(url)) == [True, True, True]


async def welcomed(url):
    """Who is to be welcomed by what is in the queue."""
    async with hq.open(url) as system:
        with anyio.fail_after(10):
            messages = []
            while len(messages) < 2:
                messages += await system.queue("emails").receive(wait_ms=5_000)
        return {message.payload["welcome"] for message in messages}


async def may_call(url):
    connection = await asyncpg.connect(url)
    rows = await connection.fetch(
        f"SELECT has_function_privilege('{ROLE}', oid, 'EXECUTE') FROM pg_proc WHERE proname = 'enqueue'"
    )
    await connection.close()
    return [allowed for (allowed,) in rows]
