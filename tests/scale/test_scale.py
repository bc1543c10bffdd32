"""A twentieth of the deep backlogs, on a twentieth of the memory; `make soak` runs them whole."""

import json
import subprocess
import sys

import pytest

from tests.scale.scenarios import FULL_BUDGET, FULL_SIZES

PART = 20
FULL_MB = 400


def held_mb(scenario, size):
    command = [sys.executable, "-m", "tests.scale.scenarios", scenario]
    command += ["--size", str(size), "--budget", str(FULL_BUDGET // PART)]
    run = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert run.returncode == 0, run.stderr[-2_000:]
    return json.loads(run.stdout)["mb"]


@pytest.fixture(scope="module")
def empty_mb():
    return held_mb("empty", 0)


@pytest.mark.slow
@pytest.mark.parametrize("scenario", FULL_SIZES)
def test_order_is_right_and_memory_bounded_behind_a_deep_backlog(scenario, empty_mb):
    held = held_mb(scenario, FULL_SIZES[scenario] // PART)

    # Some of what a process holds does not shrink with the sizes: pools, caches, the last batch.
    assert held - empty_mb < FULL_MB / PART + 40
