"""Each line of Sqew's command line, with `hq` for `sqew`. Where the answer is hq's own, the test says so."""

import re

import httpx
import pytest

from hq import __version__
from tests.http.process import hq_serve

# As Sqew's is, it is the command line of a server; test_commands.py has both kinds of target.
pytestmark = [pytest.mark.slow, pytest.mark.parametrize("hq", ["server"], indirect=True, scope="module")]


def test_serve_hosts_a_service(hq, tmp_path):
    with hq_serve(folder=tmp_path) as (_, address):
        assert httpx.get(f"{address}/healthz").status_code == 200


def test_help_displays_help(hq):
    assert hq("--help").startswith("Usage: hq")


def test_version_shows_the_version(hq):
    assert hq("--version") == f"{__version__}\n"


def test_queue_list(hq, queue):
    assert queue in hq("queue", "list")


def test_queue_add(hq, name):
    hq("queue", "add", "--name", name, "--max-attempts", "7", "--visibility-ms", "20000")
    settings = hq.json("queue", "show", "--name", name)["settings"]
    assert (settings["max_attempts"], settings["lease_ms"]) == (7, 20_000)


def test_queue_add_defaults(hq, name):
    hq("queue", "add", "--name", name)
    settings = hq.json("queue", "show", "--name", name)["settings"]
    assert (settings["max_attempts"], settings["lease_ms"]) == (5, 30_000)


def test_queue_rm(hq, queue):
    hq("queue", "rm", "--name", queue)
    assert queue not in [row["queue"] for row in hq.json("queue", "list")]


def test_queue_requeue_dlq(hq, dead):
    queue, ids = dead
    assert hq("queue", "requeue-dlq", "--name", queue) == f"requeued {len(ids)}\n"
    assert hq.json("stats", "--queue", queue)["ready"] == len(ids)


def test_queue_show(hq, queue):
    shown = hq("queue", "show", "--name", queue)
    assert re.search(rf"^queue +{queue}$", shown, re.MULTILINE)
    assert re.search(r"^ready +0$", shown, re.MULTILINE)
    assert re.search(r"^max_attempts +5$", shown, re.MULTILINE)


def test_queue_purge(hq, queue):
    hq("message", "enqueue", queue, "--file", "-", stdin="1\n2\n3\n")
    assert hq("queue", "purge", "--name", queue) == "purged 3\n"
    assert hq.json("stats", queue)["ready"] == 0


def test_queue_peek(hq, queue):
    hq("message", "enqueue", queue, "--file", "-", stdin="1\n2\n3\n")
    assert [one["payload"] for one in hq.lines("queue", "peek", "--name", queue, "--limit", "2")] == [1, 2]
    assert hq.json("stats", queue)["ready"] == 3


def test_queue_compact(hq, queue):
    assert hq("queue", "compact", "--name", queue) == "compacted\n"


def test_message_remove(hq, queue):
    message = hq.json("message", "enqueue", queue, "--payload", "1")["id"]
    hq("message", "remove", "--queue", queue, "--id", message)
    assert hq.json("stats", queue)["deleted"] == 1


def test_message_peek(hq, queue):
    message = hq.json("message", "enqueue", queue, "--payload", '{"to": "a"}')["id"]
    [seen] = hq.lines("message", "peek", "--queue", queue, "--id", message)
    assert (seen["id"], seen["payload"], seen["state"]) == (message, {"to": "a"}, "ready")


def test_message_get(hq, queue):
    """It shows the next messages and leases none; to lease them is `message poll`."""
    hq("message", "enqueue", queue, "--file", "-", stdin="1\n2\n3\n")
    assert [one["payload"] for one in hq.lines("message", "get", "--queue", queue)] == [1]
    assert [one["payload"] for one in hq.lines("message", "get", "--queue", queue, "--batch", "2")] == [1, 2]


def test_message_enqueue_a_file(hq, queue):
    (hq.folder / "lines.json").write_text('{"n": 1}\n\n[2]\n"three"\n')
    assert hq("message", "enqueue", "--queue", queue, "--file", "lines.json") == "enqueued 3\n"
    seen = hq.lines("queue", "peek", queue, "--limit", "9")
    assert [one["payload"] for one in seen] == [{"n": 1}, [2], "three"]


def test_message_enqueue_with_an_idempotency_key(hq, queue):
    words = ("message", "enqueue", "--queue", queue, "--payload", "1", "--idempotency-key", "k")
    first, second = hq.json(*words), hq.json(*words)
    assert (first["id"], first["duplicate"], second["duplicate"]) == (second["id"], False, True)


def test_message_poll(hq, queue):
    hq("message", "enqueue", queue, "--file", "-", stdin="1\n2\n3\n")
    polled = hq.lines("message", "poll", "--queue", queue, "--batch", "2")
    assert [one["payload"] for one in polled] == [1, 2]
    assert all(one["token"] for one in polled)
    assert hq.json("stats", queue)["leased"] == 2


def test_message_ack(hq, queue):
    hq("message", "enqueue", queue, "--file", "-", stdin="1\n2\n")
    ids = [one["id"] for one in hq.lines("message", "poll", queue, "--batch", "2")]
    assert hq("message", "ack", "--queue", queue, "--ids", ",".join(ids)) == "2 completed\n"
    assert hq.json("stats", queue)["completed"] == 2


def test_message_nack(hq, queue):
    hq("message", "enqueue", queue, "--file", "-", stdin="1\n2\n")
    ids = [one["id"] for one in hq.lines("message", "poll", queue, "--batch", "2")]
    hq("message", "nack", "--queue", queue, "--ids", ",".join(ids), "--delay-ms", "600000")
    assert hq.json("stats", queue)["delayed"] == 2


def test_message_extend_lease(hq, queue):
    hq("message", "enqueue", queue, "--payload", "1")
    [held] = hq.lines("message", "poll", queue)
    hq("message", "extend-lease", "--queue", queue, "--id", held["id"], "--ms", "3600000")
    [seen] = hq.lines("message", "peek", queue, held["id"])
    assert seen["lease_expires_at"] > held["lease_expires_at"] + 3_000_000


def test_dlq_list(hq, dead):
    queue, ids = dead
    assert [one["id"] for one in hq.lines("dlq", "list", "--queue", queue)] == ids


def test_dlq_purge(hq, dead):
    queue, _ = dead
    assert hq("dlq", "purge", "--queue", queue) == "purged 2\n"
    assert hq.json("stats", queue)["failed"] == 0


def test_dlq_requeue(hq, dead):
    queue, _ = dead
    assert hq("dlq", "requeue", "--queue", queue) == "requeued 2\n"
    assert hq.json("stats", queue)["ready"] == 2


def test_stats(hq, queue):
    hq("message", "enqueue", queue, "--payload", "1")
    shown = hq("stats", "--queue", queue)
    for part in ("ready", "leased", "failed", "oldest_age_ms"):
        assert re.search(rf"^{part} +\d+$", shown, re.MULTILINE)


def test_health(hq):
    assert hq("health").startswith("ok")


def test_metrics(hq, queue):
    hq("message", "enqueue", queue, "--payload", "1")
    assert f'hq_queue_messages{{queue="{queue}",state="waiting"}} 1.0' in hq("metrics")
