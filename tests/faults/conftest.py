"""The shim, compiled once per session, and empty databases."""

import asyncio
from uuid import uuid4

import pytest

from tests.conftest import execute, in_database
from tests.faults.shim import build


@pytest.fixture(scope="session")
def shim(tmp_path_factory):
    return build(tmp_path_factory.mktemp("shim"))


@pytest.fixture
def postgres_database(postgres_server):
    """A database of the test's own: processes that are killed leave much behind."""
    name = f"hq_test_{uuid4().hex[:12]}"
    asyncio.run(execute(postgres_server, f"CREATE DATABASE {name}"))
    yield in_database(postgres_server, name)
    asyncio.run(execute(postgres_server, f"DROP DATABASE {name} WITH (FORCE)"))
