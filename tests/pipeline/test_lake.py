"""A lake under faults: killed at any step, two jobs at once, and what makes no sense."""

import json
import signal
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

import hq
from hq.pipeline import manifest as manifests
from hq.pipeline.archive import archive
from hq.pipeline.errors import (
    AnotherStore,
    EventsLost,
    LakeBusy,
    LakeEmpty,
    LakeInvalid,
    LakeTooNew,
    ManifestCorrupt,
    RowsDiffer,
)
from hq.pipeline.files import LocalFiles
from hq.pipeline.lake import Lake
from hq.pipeline.store import Place
from tests.pipeline.killed_archive import EVENT, by_loop, journal
from tests.pipeline.lakes import lake_at, rows_found, rows_named

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def place(own_server):
    own_server.create("emails")
    own_server.enqueue("emails", range(30))
    return Place(own_server.url, retry_ms=0)


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "lake"


def fill(folder, place, **options):
    return archive(lake_at(folder), place, by_loop(place), **options)


def test_an_archive_killed_at_any_step_and_run_again_has_every_event_once(tmp_path):
    command = [sys.executable, "-m", "tests.pipeline.killed_archive", str(tmp_path)]
    ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300, check=False)
    assert ran.returncode == 0, ran.stderr
    runs = [json.loads(line) for line in ran.stdout.splitlines()]

    assert len(runs) > 10
    assert [one["killed"] for one in runs] == [signal.SIGKILL] * (len(runs) - 1) + [0]
    assert all(one["same"] and not one["twice"] for one in runs), runs
    assert all(one["told"] <= one["published"] for one in runs), "pruning is never ahead of the manifest"
    assert any(one["told"] < one["published"] for one in runs), "one was killed between the two"


def test_two_archives_at_once_have_every_event_once(place, folder, own_server):
    for _ in range(5):
        own_server.enqueue("emails", range(200))
    script = (
        "import sys; from tests.pipeline.test_lake import *\n"
        "fill(Path(sys.argv[2]), Place(sys.argv[1]), max_rows=100)"
    )
    command = [sys.executable, "-c", script, place.url, str(folder)]
    both = [subprocess.Popen(command, cwd=ROOT, stderr=subprocess.PIPE, text=True) for _ in range(2)]
    for one in both:
        _, said = one.communicate(timeout=120)
        assert one.returncode == 0, said

    assert rows_named(folder, "events", EVENT) == rows_found(folder, "events", EVENT) == journal(place)


def test_who_finds_a_lake_held_for_too_long_is_told(place, folder):
    fill(folder, place)
    with lake_at(folder).held(), pytest.raises(LakeBusy, match="another job writes to the lake at"):
        archive(Lake(LocalFiles(folder), wait_s=0), place, by_loop(place))


def test_of_two_that_publish_under_one_number_the_second_is_refused(place, folder):
    fill(folder, place)
    lake = lake_at(folder)
    found = lake.manifest()
    manifests.publish(lake.files, found.following())
    with pytest.raises(LakeBusy, match="another job has written to this lake meanwhile"):
        manifests.publish(lake.files, found.following())


def test_what_was_written_short_is_not_published(place, folder):
    def short(span, rows, target):
        by_loop(place)(span, rows - 1, target)

    with pytest.raises(RowsDiffer, match="31 events, 30 were written: nothing was published"):
        archive(lake_at(folder), place, short)
    assert lake_at(folder).manifest().archived == 0
    fill(folder, place)
    assert rows_found(folder, "events", EVENT) == journal(place)


def test_events_pruned_before_they_were_archived_stop_the_archive_until_the_loss_is_accepted(
    folder, tmp_path
):
    database = tmp_path / "own.db"
    place = Place(f"sqlite:///{database}")
    with hq.blocking.open(place.url) as system:
        queue = system.create_queue("emails")
        queue.enqueue(1)
    fill(folder, place)
    with hq.blocking.open(place.url) as system:
        for number in range(5):
            system.queue("emails").enqueue(number)
    archived = lake_at(folder).manifest().archived
    prune(database, archived + 2)

    with pytest.raises(EventsLost, match=f"up to {archived}, but the journal begins at {archived + 3}"):
        fill(folder, place)
    fill(folder, place, accept_loss=True)
    assert lake_at(folder).manifest().lost == ((archived, archived + 2),)


def prune(database, upto):
    connection = sqlite3.connect(database)
    with connection:
        connection.execute("DELETE FROM journal WHERE position <= ?", (upto,))
    connection.close()


def test_a_lake_of_another_store_is_refused(place, folder, server):
    fill(folder, place)
    with pytest.raises(AnotherStore, match="another store, or of this one before it was restored"):
        fill(folder, Place(server.url))


def test_a_lake_that_is_not_there_is_told(tmp_path):
    with pytest.raises(LakeEmpty, match="run hq pipeline archive"):
        lake_at(tmp_path).manifest()


def test_tables_without_a_manifest_are_no_lake(place, folder):
    (folder / "events").mkdir(parents=True)
    (folder / "events" / "mine.parquet").write_bytes(b"")
    with pytest.raises(LakeInvalid, match="it is no lake of hq"):
        fill(folder, place)
    assert (folder / "events" / "mine.parquet").exists()


def newest(folder):
    return max((folder / "_manifest").glob("*.json"))


@pytest.mark.parametrize("damage", [b"", b"{", b'{"version":1,"sha256":"","lake":{}}', b"[]", b"\xff"])
def test_a_damaged_manifest_is_told(place, folder, damage):
    fill(folder, place)
    newest(folder).write_bytes(damage)
    with pytest.raises(ManifestCorrupt, match=newest(folder).name):
        fill(folder, place)


def test_a_manifest_that_was_changed_by_a_byte_is_told(place, folder):
    fill(folder, place)
    content = newest(folder).read_bytes()
    newest(folder).write_bytes(content.replace(b'"archived":', b'"archived":1'))
    with pytest.raises(ManifestCorrupt, match="its sum is not that of its content"):
        lake_at(folder).manifest()


def test_a_lake_of_a_newer_hq_is_told(place, folder):
    fill(folder, place)
    content = newest(folder).read_bytes()
    newest(folder).write_bytes(content.replace(b'"version":1', b'"version":2'))
    with pytest.raises(LakeTooNew, match="version 2, newer than the 1 known here: install the hq"):
        lake_at(folder).manifest()
