"""Ending under load breaks no promise (F-1). More of it: `python -m tests.faults.kill_loop --kills 2000`."""

import signal

import pytest

from tests.faults.kill_loop import KillLoop, Plan, Run, report

GRACE_S = 8

ENGINES = pytest.mark.parametrize("engine", ["hypercorn", "uvicorn"])


def check(run: Run, *, done: int, cut_off: int) -> None:
    """No promise is broken, and the run was worth something: work was done, and ends fell into its middle."""
    assert run.violations == [], report(run)
    outcomes = run.outcomes()
    assert outcomes["enqueue", "ok"] > done
    assert outcomes["complete", "ok"] > done
    assert outcomes["enqueue", "unknown"] > cut_off
    assert outcomes["receive", "unknown"] > cut_off


@pytest.mark.slow
def test_no_promise_is_broken_by_twenty_five_kills(tmp_path):
    check(KillLoop(tmp_path, Plan(kills=25)).run(), done=500, cut_off=10)


@pytest.mark.slow
@ENGINES
def test_no_promise_is_broken_by_killing_a_server_under_load(tmp_path, engine):
    check(KillLoop(tmp_path, Plan(kills=5, engine=engine)).run(), done=200, cut_off=3)


@pytest.mark.slow
@ENGINES
def test_a_server_that_is_told_to_stop_under_load_loses_nothing(tmp_path, engine):
    run = KillLoop(tmp_path, Plan(kills=3, engine=engine, ending=signal.SIGTERM)).run()

    check(run, done=100, cut_off=3)
    assert max(run.ends) < GRACE_S
    # A connection may close just as a request comes in; but whatever is answered, is answered with certainty.
    assert [one for one in run.history if one.unknown and one.code] == []


@pytest.mark.slow
def test_no_promise_is_broken_by_twenty_five_kills_on_postgres(tmp_path, postgres_database):
    check(KillLoop(tmp_path, Plan(kills=25), postgres_database).run(), done=500, cut_off=10)
