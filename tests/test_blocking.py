"""The guard that keeps hq from blocking the event loop does bite."""

import pytest
from blockbuster import BlockingError

import hq

SOURCE = "import os\ndef block():\n    os.stat('.')\n"


@pytest.fixture
def anyio_backend():
    return "asyncio"


async def test_a_blocking_call_of_hq_fails_the_test():
    namespace = {}
    exec(compile(SOURCE, hq.__file__, "exec"), namespace)

    with pytest.raises(BlockingError):
        namespace["block"]()
