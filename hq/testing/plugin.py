"""Fixtures for the tests of applications; pytest finds them by itself where hq is installed.

The async ones need the plugin of anyio, which comes with hq: mark tests with `anyio`, or set
`anyio_mode = "auto"`.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from importlib import import_module

import pytest

from hq.system.system import System
from hq.testing.clock import FrozenClock
from hq.testing.system import memory_system


@pytest.fixture
def hq_clock() -> FrozenClock:
    """The clock of `hq_system`, which moves when told."""
    return FrozenClock()


@pytest.fixture
async def hq_system(hq_clock: FrozenClock) -> AsyncIterator[System]:
    """A system in memory, of this test alone."""
    async with memory_system(hq_clock) as system:
        yield system


@pytest.fixture
def hq_server() -> Iterator[str]:
    """The address of a server in memory, of this test alone; it needs `hq-queue[server]`."""
    # Imported by who asks for it: it brings a web framework.
    with import_module("hq.testing.server").server() as address:
        yield address
