"""hq doctor: what is wrong is told, and why what waits does."""

import sqlite3
from contextlib import closing

import msgspec
import pytest

from tests.cli import shapes
from tests.cli.running import Hq

pytestmark = pytest.mark.slow


def findings(run, code=0):
    done = run.run("doctor", "--json")
    assert (done.returncode, done.stderr) == (code, "")
    told = msgspec.json.decode(done.stdout, type=shapes.Diagnosis)
    assert {one.verdict for one in told.findings} <= {"good", "look", "bad"}
    return told.findings


def about(found, name):
    return [one.finding for one in found if one.about == name]


def test_all_is_well(hq):
    assert all(one.verdict != "bad" for one in findings(hq))
    assert about(findings(hq), "storage")[-1] == "everything that is stored can be read"


def test_what_is_stuck_is_told_with_the_reason(hq, dead):
    queue, _ = dead
    hq("queue", "pause", queue, "--reason", "migration")
    hq("message", "enqueue", queue, "--payload", "3")
    told = about(findings(hq), queue)
    assert told[0] == "it is paused: migration"
    assert told[1].startswith("2 dead letters")
    assert "(queue_paused: migration)" in told[2]


def test_the_version_of_sqlite_is_judged(tmp_path):
    run = Hq(tmp_path, ("--database", "hq.db"))
    run("queue", "add", "jobs")
    assert any(sqlite3.sqlite_version in one for one in about(findings(run), "storage"))


def test_a_weaker_durability_is_worth_a_look(tmp_path):
    found = findings(Hq(tmp_path, ("--database", "memory:")))
    assert [one.verdict for one in found if one.about == "durability"] == ["look"]


@pytest.mark.parametrize(
    ("damage", "what"),
    [("UPDATE messages SET payload = x'00'", "message"), ("UPDATE journal SET body = x'00'", "journal row")],
)
def test_damage_is_found_wherever_it_is(tmp_path, damage, what):
    run = Hq(tmp_path, ("--database", "hq.db"))
    run("queue", "add", "jobs")
    run("message", "enqueue", "jobs", "--payload", '"intact"')
    # Closing wrote a checkpoint, so that there is a row and a journal.
    with closing(sqlite3.connect(tmp_path / "hq.db")) as database, database:
        assert database.execute(damage).rowcount > 0
    told = [one for one in findings(run, 1) if one.verdict == "bad"]
    assert any(what in one.finding for one in told)
