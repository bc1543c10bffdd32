"""The shim, compiled once per session."""

import pytest

from tests.faults.shim import build


@pytest.fixture(scope="session")
def shim(tmp_path_factory):
    return build(tmp_path_factory.mktemp("shim"))
