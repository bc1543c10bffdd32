"""`hq work` as operators run it: stopped, killed, asked for its health."""

import os
import re
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from contextlib import contextmanager
from pathlib import Path

import pytest

import hq

ROOT = Path(__file__).resolve().parents[2]
pytestmark = pytest.mark.slow


@contextmanager
def working(tmp_path, *flags):
    """A worker process on a file of its own, once it says that it works."""
    process = subprocess.Popen(
        [
            sys.executable,
            "-m",
            "hq",
            "work",
            "tests.worker.jobs:worker",
            "-d",
            str(tmp_path / "hq.db"),
            *flags,
        ],
        cwd=ROOT,
        env={**os.environ, "JOBS_LOG": str(tmp_path / "jobs.log")},
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        said = []
        while not said or not said[-1].startswith("hq works"):
            said.append(process.stdout.readline())
            assert said[-1], f"it ended: {said}"
        yield process, said
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


def enqueue(tmp_path, *names):
    with hq.blocking.open(tmp_path / "hq.db") as system:
        queue = system.create_queue("jobs", max_attempts=3, concurrency=1)
        for name in names:
            queue.enqueue({"name": name})


def begun(tmp_path):
    log = tmp_path / "jobs.log"
    return log.read_text().splitlines() if log.exists() else []


def until(condition):
    """Look again and again: another process is at work, and has no signal for us but its files."""
    deadline = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < deadline, "it never came to be"


def test_a_job_whose_worker_was_killed_runs_again_once_its_lease_ends(tmp_path):
    """And its slot is free: the queue lets one at a time out."""
    enqueue(tmp_path, "hang", "next")
    with working(tmp_path) as (process, _):
        until(lambda: begun(tmp_path) == ["hang 1"])
        process.send_signal(signal.SIGKILL)
        process.wait()
    with working(tmp_path) as (process, _):
        until(lambda: begun(tmp_path) == ["hang 1", "hang 2", "next 1"])
        process.terminate()
        assert process.wait(20) == 0
    with hq.blocking.open(tmp_path / "hq.db") as system:
        stats = system.queue("jobs").stats()
        assert (stats.completed, stats.lapses, stats.retries, stats.leased) == (2, 1, 0, 0)


def test_a_stop_finishes_what_is_in_hand(tmp_path):
    enqueue(tmp_path, "hang", "next")
    with working(tmp_path) as (process, _):
        until(lambda: begun(tmp_path) == ["hang 1"])
        process.terminate()
        (tmp_path / "jobs.go").touch()
        assert process.wait(20) == 0
    with hq.blocking.open(tmp_path / "hq.db") as system:
        stats = system.queue("jobs").stats()
        assert (stats.completed, stats.ready) == (1, 1)


def test_a_second_signal_does_not_wait(tmp_path):
    enqueue(tmp_path, "hang")
    with working(tmp_path) as (process, _):
        until(lambda: begun(tmp_path) == ["hang 1"])
        process.send_signal(signal.SIGINT)
        process.send_signal(signal.SIGTERM)
        assert process.wait(20) == 0
    with hq.blocking.open(tmp_path / "hq.db") as system:
        [message] = system.queue("jobs").receive()
        assert message.attempts == 1


def test_a_worker_tells_its_health(tmp_path):
    enqueue(tmp_path)
    with working(tmp_path, "--health", "0") as (_, said):
        [address] = re.findall(r"http://\S+", "".join(said))

        def answers():
            try:
                with urllib.request.urlopen(address, timeout=5) as answer:  # noqa: S310 - it said http
                    return answer.status == 200 and answer.read() == b'{"status":"ok"}'
            except urllib.error.HTTPError as error:
                error.close()
                return False

        until(answers)


@pytest.mark.parametrize(
    ("target", "told"),
    [
        ("nonsense", "no module:name"),
        ("tests.nowhere:worker", "no module 'tests.nowhere'"),
        ("tests.worker.jobs:job", "no hq.Worker"),
    ],
)
def test_what_is_no_worker_is_told_in_one_line(tmp_path, target, told):
    run = subprocess.run(
        [sys.executable, "-m", "hq", "work", target],
        cwd=ROOT, capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert run.returncode == 2
    assert told in run.stderr
    assert run.stderr.count("\n") == 1
