"""A process that is stopped beyond its ownership and wakes up writes nothing and leases nothing (F-15)."""

import signal
import time
from itertools import islice

import pytest

from tests.checkers.history import load
from tests.faults.kill_loop import KillLoop, Plan, report

LINES = 400


@pytest.mark.slow
def test_a_process_that_was_stopped_and_succeeded_breaks_no_promise_when_it_goes_on(
    tmp_path, postgres_database
):
    loop = KillLoop(tmp_path, Plan(clients=4), postgres_database)
    with loop.child("work") as (stopped, signs):
        see(signs, LINES)
        stopped.send_signal(signal.SIGSTOP)
        with loop.child("work") as (_, signs_of_successor):
            see(signs_of_successor, LINES)
            woken_at = time.monotonic_ns()
            stopped.send_signal(signal.SIGCONT)
            see(signs, LINES)
            see(signs_of_successor, LINES)
            assert stopped.poll() is None, "it goes on, and may enter again when it is free to"

    run = loop.judged()

    assert run.violations == [], report(run)
    woken = [one for one in load(loop.histories[0]) if one.invoked_at > woken_at]
    assert {one.outcome.value for one in woken} == {"unknown"}, "nothing it was asked then was done"
    assert {(one.verb, one.code) for one in woken} >= {("enqueue", "not_owner"), ("receive", "not_owner")}
    assert [one for one in load(loop.histories[1]) if one.ok and one.invoked_at > woken_at]


def see(signs, lines):
    """Return when a child has written so many lines more."""
    assert len(list(islice((sign for sign in signs if sign == "."), lines))) == lines
