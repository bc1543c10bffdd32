"""The shim kills where it says, and SQLite keeps its word at every point it can be killed at.

The program is the smallest that stands for a backend: open a WAL database with synchronous=FULL, write two
rows in one transaction, say so, close. It is killed before and after each of its writes, syncs, truncates and
unlinks in turn. Whoever was told has both rows; nobody ever has one.
"""

import shutil
import signal
import sqlite3
import subprocess
import sys

import pytest

from tests.faults import shim as shims
from tests.faults.shim import NoCompiler, compiler, under_shim

PROGRAM = """
import sqlite3, sys
database = sqlite3.connect(sys.argv[1], isolation_level=None)
assert database.execute("pragma journal_mode=wal").fetchone() == ("wal",)
database.execute("pragma synchronous=full")
database.execute("begin immediate")
database.execute("insert into pair values ('left')")
database.execute("insert into pair values ('right')")
database.execute("commit")
print("acknowledged", flush=True)
database.close()
"""
MOST_POINTS = 200
SECONDS = 30


@pytest.fixture
def database(tmp_path):
    """A database with an empty table and no WAL beside it."""
    path = tmp_path / "watched.db"
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("pragma journal_mode=wal")
    connection.execute("create table pair (side text)")
    connection.close()
    return path


def run(database, environment):
    """Run the program; gives whether it ended by itself, and what it said."""
    ended = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(database)],
        env=environment,
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    assert ended.returncode in (0, -signal.SIGKILL), ended.stderr
    return ended.returncode == 0, ended.stdout.strip()


def rows_in(database):
    connection = sqlite3.connect(database, isolation_level=None)
    try:
        assert connection.execute("pragma integrity_check").fetchone() == ("ok",)
        return connection.execute("select side from pair order by side").fetchall()
    finally:
        connection.close()


def test_calls_on_other_files_do_not_count(shim, database, tmp_path):
    environment = under_shim(shim, "another.db", kill=1, report=tmp_path / "report")

    assert run(database, environment) == (True, "acknowledged")
    assert not (tmp_path / "report").exists()


def test_the_report_says_how_many_calls_there_were(shim, database, tmp_path):
    environment = under_shim(shim, "watched.db", report=tmp_path / "report")

    assert run(database, environment) == (True, "acknowledged")
    # A header, two frames or more of two writes each, syncs; then the checkpoint and the end of the WAL.
    assert int((tmp_path / "report").read_text()) >= 8


def test_the_first_call_can_be_the_last(shim, database, tmp_path):
    environment = under_shim(shim, "watched.db", kill=1, report=tmp_path / "report")

    assert run(database, environment) == (False, "")
    assert not (tmp_path / "report").exists()
    assert rows_in(database) == []


def test_without_a_compiler_the_error_says_what_to_install(monkeypatch):
    monkeypatch.setattr(shims.shutil, "which", lambda _: None)
    monkeypatch.setattr(shims.importlib.util, "find_spec", lambda _: None)

    with pytest.raises(NoCompiler, match="ziglang"):
        compiler()


@pytest.mark.slow
@pytest.mark.parametrize("when", ["before", "after"])
def test_sqlite_keeps_its_word_at_every_call_it_can_be_killed_at(shim, database, tmp_path, when):
    endings = []
    for number in range(1, MOST_POINTS):
        copy = tmp_path / str(number) / "watched.db"
        copy.parent.mkdir()
        shutil.copy(database, copy)
        by_itself, said = run(copy, under_shim(shim, "watched.db", kill=number, when=when))
        rows = rows_in(copy)
        assert rows in ([], [("left",), ("right",)]), f"half a transaction, killed {when} call {number}"
        assert rows or said != "acknowledged", f"an acknowledged row is gone, killed {when} call {number}"
        endings.append((said == "acknowledged", bool(rows)))
        if by_itself:
            break
    assert by_itself
    # Refused would be wrong as often as right: there are points where it is durable and nobody was told.
    assert {(False, False), (False, True), (True, True)} == set(endings)
