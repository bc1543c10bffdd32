"""A lake that is kept: compacted, verified, expired, asked, and told from the command line."""

import asyncio
import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from msgspec.structs import replace

from hq.pipeline.archive import archive, by_spark
from hq.pipeline.build import build
from hq.pipeline.compact import compact
from hq.pipeline.dead import dead
from hq.pipeline.expire import expire
from hq.pipeline.query import query
from hq.pipeline.store import Place
from hq.pipeline.verify import verify
from tests.pipeline.fixed import write_first, write_second
from tests.pipeline.lakes import lake_at, rows_found, rows_named
from tests.pipeline.marks import spark_test

pytestmark = spark_test

ROOT = Path(__file__).resolve().parents[2]
EVENT = ["position", "sequence", "event"]


@pytest.fixture
def folder(spark, tmp_path):
    place = Place(f"sqlite:///{tmp_path}/hq.db")
    for write in (write_first, write_second):
        asyncio.run(write(place.url))
        archive(lake_at(tmp_path / "lake"), place, by_spark(spark, place))
        build(spark, lake_at(tmp_path / "lake"))
    return tmp_path / "lake"


def test_compacted_days_hold_the_same_rows_in_one_file(spark, folder):
    before = rows_named(folder, "events", EVENT)
    done = compact(spark, lake_at(folder), today="2026-03-02")

    assert (done.before > done.after, done.days > 0) == (True, True)
    assert rows_named(folder, "events", EVENT) == rows_found(folder, "events", EVENT) == before
    assert len(list(folder.glob("events/day=2026-03-01/*"))) == 1
    assert compact(spark, lake_at(folder), today="2026-03-02").days == 0
    assert verify(spark, lake_at(folder)) == []
    assert build(spark, lake_at(folder)).events == 0


def test_a_lake_that_lacks_something_says_what(spark, folder):
    assert verify(spark, lake_at(folder)) == []
    first, *_, last = sorted(folder.glob("events/*/*.parquet"))
    content = first.read_bytes()
    first.write_bytes(content[:-1] + b"?")
    last.rename(last.with_name("stray.parquet"))

    wrong = verify(spark, lake_at(folder))
    assert [problem.partition(" ")[2].split(":")[0] for problem in wrong] == [
        "is not what was written", "is missing", "is in no manifest",
    ]  # fmt: skip


def test_an_event_that_is_missing_or_there_twice_is_found_by_its_sequence(spark, folder):
    lake = lake_at(folder)
    whole = lake.manifest()
    first, *_, last = whole.files("events")
    twin = replace(last, path=last.path.replace(".parquet", "9.parquet"))
    shutil.copy(folder / last.path, folder / twin.path)

    twice = lake.publish(whole.following({"events": (*whole.files("events"), twin)}))
    assert any("queue emails has" in one for one in verify(spark, lake))
    lake.publish(twice.following({"events": (first, last)}))
    assert any("where its sequences tell of" in one for one in verify(spark, lake))


def test_days_expire_and_what_no_build_has_seen_stays(spark, folder):
    assert expire(lake_at(folder), before="2026-03-01").files == 0
    gone = expire(lake_at(folder), before="2026-03-02")

    assert gone.files > 3
    for table in ("events", "messages", "stats_5m"):
        assert {path.parent.name for path in folder.glob(f"{table}/*/*")} == {"day=2026-03-02"}
    assert lake_at(folder).manifest().expired == "2026-03-02"


def test_dead_letters_are_told_by_what_went_wrong(spark, folder):
    [one] = dead(spark, lake_at(folder))
    assert (one.queue, one.reason, one.signature, one.messages) == ("emails", "failed", "bad address <n>", 1)
    assert len(one.samples) == 1
    assert dead(spark, lake_at(folder), queue="other") == []


def test_sql_reads_every_table_and_dead_letters(spark, folder):
    statement = """
        SELECT (SELECT count(*) FROM events) AS events, (SELECT count(*) FROM messages) AS messages,
               (SELECT count(*) FROM attempts) AS attempts, (SELECT count(*) FROM stats_5m) AS stats,
               (SELECT count(*) FROM dead) AS dead"""
    [row] = query(spark, lake_at(folder), statement).collect()
    assert (row.events, row.messages, row.attempts, row.stats, row.dead) == (
        len(rows_named(folder, "events", EVENT)), 8, 5, 4, 1,
    )  # fmt: skip


def hq_pipeline(*arguments):
    command = [sys.executable, "-m", "hq", "pipeline", *arguments, "--master", "local[2]"]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=180, check=False)


def test_the_command_line_archives_builds_and_reports(own_server, tmp_path):
    own_server.create("emails")
    own_server.enqueue("emails", range(50))
    lake = ["--lake", str(tmp_path / "lake")]

    archived = hq_pipeline("archive", *lake, "--url", own_server.url, "--json")
    assert json.loads(archived.stdout)["rows"] == 51, archived.stderr
    reported = hq_pipeline("report", *lake, "--out", str(tmp_path / "out"))
    assert "emails" in reported.stdout, reported.stderr
    assert "</html>" in (tmp_path / "out" / "report.html").read_text()
