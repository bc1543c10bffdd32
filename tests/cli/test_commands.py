"""What every command prints for programs, and how each ends that cannot do what it is told."""

import msgspec
import pytest

from tests.cli import shapes

pytestmark = pytest.mark.slow
NO_ID = "00000000-0000-8000-8000-000000000001"


def read(text, shape):
    return msgspec.json.decode(text, type=shape)


def test_a_queue_tells_the_same_keys_through_its_life(hq, name):
    assert read(hq("queue", "add", name, "--capacity", "9", "--json"), shapes.Shown).settings["capacity"] == 9
    changed = read(hq("queue", "update", name, "--set", "capacity=null", "--json"), shapes.Shown)
    assert changed.settings["capacity"] is None
    assert read(hq("queue", "pause", name, "--reason", "why", "--json"), shapes.Paused).paused
    assert read(hq("queue", "show", name, "--json"), shapes.ShownWithStats).stats.paused == "why"
    assert not read(hq("queue", "resume", name, "--json"), shapes.Paused).paused
    assert name in [row.queue for row in read(hq("queue", "list", "--json"), list[shapes.Numbers])]
    assert read(hq("queue", "compact", name, "--json"), shapes.Compacted).compacted
    assert read(hq("queue", "purge", name, "--json"), shapes.Purged).purged == 0
    assert read(hq("queue", "rm", name, "--json"), shapes.Deleted).deleted


def test_a_message_tells_the_same_keys_through_its_life(hq, queue):
    first = read(hq("message", "enqueue", queue, "--payload", "1", "--json"), shapes.Enqueued)
    many = hq("message", "enqueue", queue, "--file", "-", "--json", stdin="2\n3\n4\n")
    assert read(many, shapes.ManyEnqueued).enqueued == 3
    assert read(hq("message", "get", queue, first.id, "--json"), shapes.Seen).state == "ready"
    held = [
        read(line, shapes.Held) for line in hq("message", "poll", queue, "-n", "4", "--json").splitlines()
    ]
    explained = read(hq("message", "explain", queue, first.id, "--json"), shapes.Explained)
    assert explained.blockers[0].code == "leased"

    extended = hq("message", "extend-lease", queue, held[0].id, "--token", held[0].token, "--json")
    assert read(extended, shapes.Settled).state == "leased"
    for verb, state, one in zip(
        ("ack", "nack", "fail", "release"), ("completed", "delayed", "failed", "ready"), held, strict=True
    ):
        settled = read(hq("message", verb, queue, one.id, "--token", one.token, "--json"), shapes.Settled)
        assert settled.state == state
    dead = read(hq("dlq", "list", queue, "--json"), shapes.Seen)
    assert (dead.id, dead.reason) == (held[2].id, "failed")
    assert read(hq("dlq", "requeue", queue, held[2].id, "--json"), shapes.Settled).state == "ready"
    assert read(hq("queue", "requeue-dlq", queue, "--json"), shapes.Requeued).requeued == 0
    assert read(hq("dlq", "purge", queue, "--json"), shapes.Purged).purged == 0
    assert read(hq("message", "remove", queue, held[1].id, "--json"), shapes.Settled).state == "deleted"


def test_what_poll_prints_is_what_ack_reads(hq, queue):
    hq("message", "enqueue", queue, "--file", "-", stdin="1\n2\n")
    polled = hq("message", "poll", queue, "--batch", "9", "--json")
    assert hq("message", "ack", queue, "--file", "-", stdin=polled) == "2 completed\n"


def test_a_schedule_tells_the_same_keys_through_its_life(hq, queue):
    words = ("schedule", "set", queue, "tick", "--cron", "0 9 * * *", "--timezone", "Europe/Paris", "--json")
    made = read(hq(*words), shapes.Schedule)
    assert len(made.next_ticks) == 5
    assert read(hq("schedule", "list", queue, "--json"), list[shapes.Schedule]) == [made]
    assert read(hq("schedule", "rm", queue, "tick", "--json"), shapes.Unscheduled).removed


def test_stats_health_and_bench_tell_their_keys(hq, queue):
    assert read(hq("stats", queue, "--json"), shapes.Numbers).queue == queue
    assert queue in [row.queue for row in read(hq("stats", "--json"), list[shapes.Numbers])]
    assert read(hq("health", "--json"), shapes.Health).status == "ok"
    queues = hq.json("queue", "list", "--no-counts")
    measured = read(
        hq("bench", "--messages", "50", "--batch", "5", "--clients", "2", "--json"), shapes.Measured
    )
    assert measured.messages == 50
    assert hq.json("queue", "list", "--no-counts") == queues


@pytest.fixture(scope="module")
def kept(hq):
    """A queue that no refusal changes."""
    hq("queue", "add", "kept")
    return "kept"


@pytest.mark.parametrize(
    ("code", "words"),
    [
        (2, ("queue", "add", "a b")),
        (2, ("queue", "add", "x", "--max-attempts", "many")),
        (2, ("queue", "add", "x", "--max-attempts", "0")),
        (2, ("queue", "add", "x", "--set", "what=1")),
        (2, ("queue", "add", "x", "--set", "capacity")),
        (2, ("queue", "add")),
        (2, ("queue", "add", "x", "y")),
        (2, ("queue", "add", "x", "--what")),
        (2, ("queue", "what")),
        (3, ("queue", "rm", "none")),
        (3, ("queue", "show", "none")),
        (3, ("stats", "none")),
        (3, ("message", "poll", "none")),
        (3, ("message", "enqueue", "none", "--payload", "1")),
        (3, ("export", "none")),
        (3, ("schedule", "rm", "kept", "none")),
        (2, ("schedule", "set", "kept", "s", "--cron", "often")),
        (4, ("queue", "add", "kept", "--max-attempts", "9")),
        (4, ("queue", "update", "kept", "--set", "groups=fifo")),
        (2, ("message", "enqueue", "kept")),
        (2, ("message", "enqueue", "kept", "--payload", "{")),
        (2, ("message", "enqueue", "kept", "--file", "none.json")),
        (2, ("message", "enqueue", "kept", "--payload", "1", "--priority", "99999999")),
        (2, ("message", "enqueue", "kept", "--payload", "1", "--header", "x")),
        (3, ("message", "get", "kept", NO_ID)),
        (2, ("message", "get", "kept", "1")),
        (2, ("message", "ack", "kept")),
        (2, ("import", "kept", "--file", "none.ndjson")),
    ],
)  # fmt: skip
def test_a_refusal_is_one_sentence_and_an_exit_code(hq, kept, code, words):
    assert hq.refusal(code, *words)


@pytest.mark.parametrize(("message", "code"), [(NO_ID, 3), ("1", 2)])
def test_a_message_that_cannot_be_settled_is_told_and_the_others_are_settled(hq, queue, message, code):
    hq("message", "enqueue", queue, "--payload", "1")
    [held] = hq.lines("message", "poll", queue)
    done = hq.run("message", "ack", queue, f"{message},{held['id']}")
    assert (done.returncode, done.stdout) == (code, "1 completed\n")
    assert done.stderr.startswith(f"hq: {message}: ")


def test_a_lost_lease_is_a_conflict(hq, queue):
    hq("message", "enqueue", queue, "--payload", "1")
    [held] = hq.lines("message", "poll", queue, "--lease-ms", "1")
    [again] = hq.lines("message", "poll", queue, "--wait-ms", "5000")
    done = hq.run("message", "ack", queue, held["id"], "--token", held["token"], "--json")
    assert (done.returncode, again["attempts"]) == (4, 2)
    assert msgspec.json.decode(done.stdout)["error"]["code"] == "lease_not_held"
