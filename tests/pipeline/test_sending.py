"""Replay and load: each message once, run as often as one likes, interrupted or not."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from hq.errors import InvalidInput
from hq.pipeline.archive import archive, by_spark
from hq.pipeline.build import build
from hq.pipeline.load import Loading, load
from hq.pipeline.replay import Replay, counts, replay
from hq.pipeline.sending import Sent
from hq.pipeline.store import Place
from tests.pipeline.lakes import lake_at
from tests.pipeline.marks import spark_test

pytestmark = spark_test

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def place(server):
    return Place(server.url)


def test_dead_letters_are_replayed_as_they_were_and_only_once(spark, own_server, tmp_path):
    place = Place(own_server.url)
    for name in ("jobs", "again"):
        own_server.create(name)
    own_server.enqueue("jobs", [{"n": n} for n in range(20)], priority=3, headers={"trace": "t"})
    for _ in range(5):
        [received] = own_server.ask("POST", "/queues/jobs/poll?batch=1")["messages"]
        held = {"id": received["id"], "token": received["token"], "error": "broken"}
        own_server.ask("POST", "/queues/jobs/fail", held)
    archive(lake_at(tmp_path / "lake"), place, by_spark(spark, place))
    build(spark, lake_at(tmp_path / "lake"))
    wanted = Replay("outcome = 'failed' AND error = 'broken'", to="again", rate=1_000)

    assert counts(spark, lake_at(tmp_path / "lake"), wanted) == {"again": 5}
    assert own_server.stats("again")["enqueued"] == 0, "counting replays nothing"
    assert replay(spark, lake_at(tmp_path / "lake"), place, wanted) == {"again": Sent(5, 0)}
    assert replay(spark, lake_at(tmp_path / "lake"), place, wanted) == {"again": Sent(0, 5)}
    other = wanted._replace(name="second")
    assert replay(spark, lake_at(tmp_path / "lake"), place, other) == {"again": Sent(5, 0)}

    found = own_server.ask("POST", "/queues/again/poll?batch=5")["messages"]
    assert [one["payload"] for one in found] == [{"n": n} for n in range(5)]
    assert {(one["priority"], one["headers"]["trace"], one["content_type"]) for one in found} == {
        (3, "t", "application/json")
    }


def test_lines_are_payloads_as_they_are_and_equal_ones_are_messages_each(
    spark, server, queue, place, tmp_path
):
    lines = ['{"b": 1,  "a": 2}', '{"b": 1,  "a": 2}', '{"n": 3}', ""]
    (tmp_path / "rows.ndjson").write_text("\n".join(lines))

    loading = Loading(queue)
    assert load(spark, place, [str(tmp_path / "rows.ndjson")], loading) == Sent(3, 0)
    assert load(spark, place, [str(tmp_path / "rows.ndjson")], loading) == Sent(0, 3)
    with (tmp_path / "rows.ndjson").open("a") as more:
        more.write(lines[0] + "\n")
    assert load(spark, place, [str(tmp_path / "rows.ndjson")], loading) == Sent(1, 3)
    found = server.ask("POST", f"/queues/{queue}/poll?batch=10")["messages"]
    assert sorted(json.dumps(one["payload"]) for one in found) == ['{"b": 1, "a": 2}'] * 3 + ['{"n": 3}']


def test_csv_and_parquet_rows_are_objects_keyed_by_a_column(spark, server, queue, place, tmp_path):
    (tmp_path / "rows.csv").write_text("id,email\n1,ada@example.org\n2,bob@example.org\n")
    spark.range(3).selectExpr("id + 2 AS id", "'eve@example.org' AS email").write.parquet(
        str(tmp_path / "rows.parquet")
    )
    assert load(spark, place, [str(tmp_path / "rows.csv")], Loading(queue, key="id")) == Sent(2, 0)
    assert load(spark, place, [str(tmp_path / "rows.parquet")], Loading(queue, key="id")) == Sent(2, 1)
    assert sorted(server.keys(queue)) == ["1", "2", "3", "4"]
    first = server.ask("POST", f"/queues/{queue}/poll?batch=10")["messages"]
    assert {"id": "1", "email": "ada@example.org"} in [one["payload"] for one in first]


@pytest.mark.parametrize(
    ("files", "loading", "told"),
    [
        (["x.txt"], {}, "say the format"),
        (["a.csv", "b.parquet"], {}, "say the format"),
        (["rows.csv"], {"key": "none"}, "there is no column 'none'; there are id"),
        (["x.ndjson"], {"payload": "id"}, "a payload column is for csv and parquet"),
    ],
)
def test_what_cannot_be_loaded_is_told(spark, queue, place, tmp_path, files, loading, told):
    (tmp_path / "rows.csv").write_text("id\n1\n")
    (tmp_path / "x.ndjson").write_text("1\n")
    with pytest.raises(InvalidInput, match=told):
        load(spark, place, [str(tmp_path / file) for file in files], Loading(queue, **loading))


def test_a_load_killed_in_the_middle_and_run_again_has_every_row_once(own_server, tmp_path):
    own_server.create("target")
    (tmp_path / "rows.ndjson").write_text("".join(f'{{"n": {n % 9_000}}}\n' for n in range(20_000)))
    command = [sys.executable, "-m", "hq", "pipeline", "load", str(tmp_path / "rows.ndjson"), "--queue",
               "target", "--url", own_server.url, "--master", "local[2]", "--json"]  # fmt: skip
    with subprocess.Popen(
        command, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True
    ) as killed:
        while own_server.stats("target")["enqueued"] < 1_000:
            assert killed.poll() is None
        os.killpg(killed.pid, signal.SIGKILL)
    before = own_server.stats("target")["enqueued"]
    again = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=180, check=False)

    assert again.returncode == 0, again.stderr
    told = json.loads(again.stdout.splitlines()[-1])
    assert before < 20_000
    assert own_server.stats("target")["enqueued"] == 20_000
    assert told["added"] + told["known"] == 20_000
    assert told["known"] >= before
