"""The recorder and its file: what was recorded survives its writer, and what is missing is unknown."""

import signal
import subprocess
import sys
from itertools import count
from pathlib import Path

from tests.checkers.history import Asked, Operation, Outcome, Recorder, Told, fingerprint, load


def test_what_is_recorded_is_read_back(tmp_path):
    recorder = Recorder(tmp_path / "history", clock=count(1).__next__)
    asked = Asked(payload=fingerprint(b"x"), group="g", priority=0)
    key = recorder.invoke("producer", "enqueue", "work", asked)
    recorder.ok(key, [Told("a", sequence=1, duplicate=True, receives=0)], at=17)
    recorder.close()

    assert load(tmp_path / "history").operations == (
        Operation(
            client="producer",
            verb="enqueue",
            queue="work",
            invoked_at=1,
            asked=asked,
            returned_at=2,
            outcome=Outcome.OK,
            at=17,
            told=(Told("a", sequence=1, duplicate=True, receives=0),),
        ),
    )


def test_the_three_outcomes_are_kept_apart(tmp_path):
    recorder = Recorder(tmp_path / "history")
    recorder.ok(recorder.invoke("one", "complete", "work"))
    recorder.refused(recorder.invoke("two", "complete", "work"), "lease_expired")
    recorder.unknown(recorder.invoke("three", "complete", "work"), "outcome_unknown")

    operations = load(tmp_path / "history").operations

    assert [(one.outcome, one.code) for one in operations] == [
        (Outcome.OK, None),
        (Outcome.REFUSED, "lease_expired"),
        (Outcome.UNKNOWN, "outcome_unknown"),
    ]


def test_a_call_that_never_returned_is_unknown(tmp_path):
    Recorder(tmp_path / "history").invoke("consumer", "receive", "work", Asked(limit=10))

    [operation] = load(tmp_path / "history")

    assert operation.unknown
    assert operation.returned_at is None
    assert operation.asked.limit == 10


def test_a_line_torn_by_the_writers_death_is_left_out(tmp_path):
    recorder = Recorder(tmp_path / "history")
    recorder.ok(recorder.invoke("one", "purge", "work"))
    whole = (tmp_path / "history").read_bytes()

    for length in range(len(whole) - 1):
        (tmp_path / "torn").write_bytes(whole[:length])
        assert all(one.unknown for one in load(tmp_path / "torn"))


def test_many_clients_and_recorders_write_to_one_file(tmp_path):
    recorders = [Recorder(tmp_path / "history") for _ in range(3)]
    keys = [(recorder, recorder.invoke("client", "receive", "work")) for recorder in recorders * 2]
    for recorder, key in reversed(keys):
        recorder.ok(key)

    assert [one.outcome for one in load(tmp_path / "history")] == [Outcome.OK] * 6


def test_several_files_are_one_history_in_the_order_of_invocation(tmp_path):
    clock = count().__next__
    for name in ("first", "second"):
        recorder = Recorder(tmp_path / name, clock=clock)
        recorder.ok(recorder.invoke(name, "receive", "work"))

    assert [one.client for one in load(tmp_path / "second", tmp_path / "first")] == ["first", "second"]


def test_what_was_recorded_survives_a_kill_of_its_process(tmp_path):
    program = """
import os, signal, sys
from pathlib import Path
from tests.checkers.history import Recorder
recorder = Recorder(Path(sys.argv[1]))
for number in range(100):
    recorder.ok(recorder.invoke(str(number), "receive", "work"))
recorder.invoke("last", "receive", "work")
os.kill(os.getpid(), signal.SIGKILL)
"""
    ended = subprocess.run(
        [sys.executable, "-c", program, str(tmp_path / "history")],
        env={"PYTHONPATH": str(Path.cwd())},
        check=False,
    )

    history = load(tmp_path / "history")

    assert ended.returncode == -signal.SIGKILL
    assert len(history) == 101
    assert [one.client for one in history if one.unknown] == ["last"]
