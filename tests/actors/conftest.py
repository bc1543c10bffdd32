"""A node on the memory backend, with a clock that stands still."""

import pytest

from hq.actors.limits import Limits
from hq.actors.node import Node
from hq.backends.memory import MemoryBackend
from hq.testing import FrozenClock, SeededChance


@pytest.fixture
def anyio_backend():
    return "asyncio"


@pytest.fixture
def clock():
    return FrozenClock()


@pytest.fixture
def backend():
    return MemoryBackend()


@pytest.fixture
def new_node(backend, clock):
    def build(on=None, **limits):
        return Node(on or backend, clock=clock, chance=SeededChance(), limits=Limits(**limits))

    return build


@pytest.fixture
async def node(new_node):
    async with new_node() as node:
        yield node
