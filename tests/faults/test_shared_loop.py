"""The death of whoever holds a shared file breaks no promise: `python -m tests.faults.shared_loop`."""

import pytest

from tests.faults.kill_loop import Plan, report
from tests.faults.shared_loop import SharedLoop


@pytest.mark.slow
def test_no_promise_is_broken_when_four_share_a_file_and_its_holder_is_killed(tmp_path):
    run = SharedLoop(tmp_path, Plan(kills=3, clients=2, most_lines=600)).run()

    assert run.violations == [], report(run)
    outcomes = run.outcomes()
    assert outcomes["enqueue", "ok"] > 200
    assert outcomes["complete", "ok"] > 200
