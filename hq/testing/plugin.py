"""Fixtures for the tests of applications; pytest finds them by itself where hq is installed.

They need the plugin of anyio, which comes with hq: mark tests with `anyio`, or set `anyio_mode = "auto"`.
"""

from __future__ import annotations

from collections.abc import AsyncIterator

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
