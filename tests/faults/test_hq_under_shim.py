"""hq keeps its word at every call it can be killed at, in an append and in a checkpoint (F-1).

The program opens hq on a SQLite file, takes one step after the other, says so after each, and closes. It is
killed before and after each of its writes, syncs, truncates and unlinks in turn. What is found then is what
there was after the last step it spoke of, or after the next one, and nothing else.
"""

import shutil
import signal
import sqlite3
import subprocess
import sys

import anyio
import pytest

import hq
from tests.faults.shim import under_shim

# It imports and warms up once and forks for each life, or nearly all of the time would go into that. The shim
# dies at the same call in all of them: whoever is to die early in its work first makes calls for nothing.
PROGRAM = """
import os, signal, sys
import anyio, hq

steps, grouped, seconds, warm = sys.argv[1].split(), sys.argv[2], int(sys.argv[3]), sys.argv[4]

def group_of(name):
    return "one" if name in grouped else None

async def work(database, said):
    held = []
    limits = hq.Limits(checkpoint_events=5, chunk=2)
    async with hq.open(database, access="exclusive", limits=limits) as system:
        queue = system.queue("jobs")
        for step in steps:
            if step == "receive":
                held += await queue.receive()
            elif step == "complete":
                await held.pop(0).complete()
            else:
                await queue.enqueue(step, group=group_of(step), dedup_key=step)
            os.write(said, b".")

def live(folder, idle_calls):
    signal.alarm(seconds)
    idle = os.open(folder + "/idle-hq.db", os.O_WRONLY | os.O_CREAT)
    for _ in range(idle_calls):
        os.write(idle, b".")
    anyio.run(work, folder + "/hq.db", os.open(folder + "/said", os.O_WRONLY | os.O_CREAT))

anyio.run(work, warm, os.open("/dev/null", os.O_WRONLY))
for line in sys.stdin:
    idle_calls, folder = line.rstrip().split(maxsplit=1)
    child = os.fork()
    if child == 0:
        live(folder, int(idle_calls))
        sys.exit()
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""
# Messages are named by what they carry. Some are in a group, so that lanes are written too.
STORED = ["a", "b", "c"]
STEPS = ["d", "receive", "complete", "receive", "e", "complete", "receive"]
GROUPED = "bd"
SECONDS = 30
MOST_CALLS = 500


@pytest.fixture
def stored(tmp_path):
    """A store with a few messages that a checkpoint has written."""

    async def make():
        async with hq.open(folder / "hq.db", access="exclusive") as system:
            queue = await system.create_queue("jobs", lease_ms=3_600_000)
            await queue.enqueue_many([message(name) for name in STORED])

    folder = tmp_path / "stored"
    folder.mkdir()
    anyio.run(make)
    return folder


def message(name):
    return hq.Outgoing(name, group="one" if name in GROUPED else None, dedup_key=name)


def lives(environment, stored, idle_calls):
    """Work in each folder after so many idle calls; gives the folders as the work ends there, and how."""
    warm = shutil.copy(stored / "hq.db", stored.with_name("warm.db"))
    command = [sys.executable, "-c", PROGRAM, " ".join(STEPS), GROUPED, str(SECONDS), str(warm)]
    process = subprocess.Popen(
        command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    try:
        process.stdin.write("".join(f"{calls} {folder}\n" for folder, calls in idle_calls.items()))
        process.stdin.close()
        for folder in idle_calls:
            yield folder, int(process.stdout.readline())
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


def calls_of_a_life(shim, stored, folder):
    """How many calls there are to be killed at."""
    shutil.copytree(stored, folder)
    environment = under_shim(shim, "hq.db", report=folder / "report")
    assert list(lives(environment, stored, {folder: 0})) == [(folder, 0)]
    assert said_in(folder) == len(STEPS)
    return int((folder / "report").read_text())


def said_in(folder):
    said = folder / "said"
    return len(said.read_text()) if said.exists() else 0


def after(steps):
    """What is ready and what is leased after these steps, and how many are completed."""
    ready, leased, completed = [*STORED], [], 0
    for step in steps:
        if step == "receive":
            leased.append(ready.pop(0))
        elif step == "complete":
            leased.pop(0)
            completed += 1
        else:
            ready.append(step)
    return ready, leased, completed


async def found_in(folder):
    """The same, as hq finds it; each message must hold its key, and what can be received must come."""
    async with hq.open(folder / "hq.db", access="exclusive") as system:
        queue = system.queue("jobs")
        seen = await queue.browse()
        ready, leased = ([one.payload for one in seen if one.state == state] for state in ("ready", "leased"))
        completed = (await queue.stats()).completed
        received = await queue.receive(100)
        accepted = await queue.enqueue_many([message(name) for name in "abcde"])
    assert [one.payload for one in received] == open_of(ready, leased)
    duplicates = {name for name, one in zip("abcde", accepted, strict=True) if one.duplicate}
    assert duplicates == {*ready, *leased}
    return ready, leased, completed


def open_of(ready, leased):
    """Nothing of a group may be received while one of it is leased."""
    blocked = GROUPED if set(GROUPED).intersection(leased) else ""
    return [name for name in ready if name not in blocked]


def checkpoint_in(folder):
    """Up to which event the last checkpoint goes, and how new the newest row is; the file must be sound."""
    database = sqlite3.connect(folder / "hq.db")
    try:
        assert database.execute("pragma integrity_check").fetchone() == ("ok",)
        [found] = database.execute("select mark, max(as_of) from checkpoints, messages")
        return found
    finally:
        database.close()


@pytest.mark.slow
@pytest.mark.parametrize("when", ["before", "after"])
def test_hq_keeps_its_word_at_every_call_it_can_be_killed_at(shim, stored, tmp_path, when):
    points = range(1, calls_of_a_life(shim, stored, tmp_path / "whole") + 1)
    folders = {number: tmp_path / str(number) for number in points}
    for folder in folders.values():
        shutil.copytree(stored, folder)
    environment = under_shim(shim, "hq.db", kill=MOST_CALLS, when=when)
    idle_calls = {folder: MOST_CALLS - number for number, folder in folders.items()}

    outcomes, checkpoints = set(), set()
    for folder, ending in lives(environment, stored, idle_calls):
        assert ending == -signal.SIGKILL, folder
        checkpoints.add(checkpoint_in(shutil.copytree(folder, folder / "copy")))
        said = said_in(folder)
        found = anyio.run(found_in, folder)
        assert found in (after(STEPS[:said]), after(STEPS[: said + 1])), f"killed {when} call {folder.name}"
        outcomes.add((said, found == after(STEPS[:said])))
        shutil.rmtree(folder)

    # The deaths were worth something: each step was done and not told, each was not done, and some fell into
    # the middle of a checkpoint, when there were newer rows than its mark.
    assert outcomes >= {(said, done) for said in range(len(STEPS)) for done in (True, False)}
    assert len({mark for mark, _ in checkpoints}) > 2
    assert any(newest > mark for mark, newest in checkpoints)
