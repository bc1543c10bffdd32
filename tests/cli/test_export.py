"""Messages out of a queue and into another, as lines of NDJSON; whatever is interrupted is run again."""

import json
import os
import signal
import subprocess

import pytest

from tests.cli.running import hq_at

pytestmark = pytest.mark.slow
LINES = 100_000


@pytest.fixture
def filled(hq, queue):
    """A queue with a message of every kind."""
    hq("message", "enqueue", queue, "--file", "-", stdin='{"n": 1}\n[2.50]\n')
    hq(
        "message",
        "enqueue",
        queue,
        "--payload",
        '{\n "many": "lines"\n}',
        "--priority",
        "3",
        "--header",
        "a=b",
    )
    hq("message", "enqueue", queue, "--payload", "text", "--content-type", "text/plain", "--group", "g")
    hq("message", "enqueue", queue, "--payload", "3", "--delay-ms", "600000", "--ttl-ms", "900000")
    return queue


KEPT = ("payload", "payload_base64", "content_type", "headers", "priority", "group")


def kept(rows):
    return [{name: row[name] for name in KEPT if name in row} for row in rows]


def test_what_was_exported_is_imported_as_it_was(hq, filled):
    lines = hq("export", filled)
    target = f"{filled}-copy"
    hq("queue", "add", target)

    told = hq.json("import", target, "--file", "-", stdin=lines)

    assert told == {"queue": target, "imported": 5, "duplicates": 0, "refused": 0}
    copied = [json.loads(line) for line in hq("export", target).splitlines()]
    original = [json.loads(line) for line in lines.splitlines()]
    assert kept(copied) == kept(original)
    # The times are of when it was exported: reading and enqueueing took a while.
    assert copied[4]["state"] == "delayed"
    assert abs(copied[4]["available_at"] - original[4]["available_at"]) < 60_000
    assert abs(copied[4]["expires_at"] - original[4]["expires_at"]) < 60_000


def test_importing_again_adds_nothing_unless_it_is_called_something_else(hq, queue):
    lines = '{"payload": 1}\n{"payload": 1}\n'
    words = ("import", queue, "--file", "-")
    assert hq.json(*words, stdin=lines)["imported"] == 2
    polled = hq.lines("message", "poll", queue, "--batch", "2")
    hq("message", "ack", queue, ",".join(one["id"] for one in polled))

    assert hq.json(*words, stdin=lines) == {"queue": queue, "imported": 0, "duplicates": 2, "refused": 0}
    assert hq.json(*words, "--source", "other", stdin=lines)["imported"] == 2


def test_a_line_that_is_no_message_is_told_and_the_others_are_imported(hq, queue):
    lines = '{"payload": 1}\n{"pay": 2}\n{"payload": 3, "priority": "high"}\n{"payload": 4}\n'
    done = hq.run("import", queue, "--file", "-", stdin=lines)
    assert (done.returncode, done.stdout) == (2, "imported 2\n")
    first, second = done.stderr.splitlines()
    assert first.startswith("hq: line 2")
    assert second.startswith("hq: line 3")


def test_an_export_goes_on_after_the_last_whole_line_of_its_file(hq, filled):
    whole = hq("export", filled)
    file = hq.folder / f"{filled}.ndjson"
    first, second, *_ = whole.splitlines(keepends=True)
    file.write_text(first + second[: len(second) // 2])

    assert hq("export", filled, "--file", file.name) == "exported 4\n"
    assert file.read_text() == whole
    assert hq("export", filled, "--file", file.name) == "exported 0\n"


def test_a_file_of_something_else_is_not_written_to(hq, queue):
    file = hq.folder / "notes.txt"
    file.write_text("notes\n")
    assert "notes.txt" in hq.refusal(2, "export", queue, "--file", file.name)
    assert file.read_text() == "notes\n"


def test_dead_letters_are_exported(hq, dead):
    queue, ids = dead
    lines = hq("export", queue, "--dead-letters").splitlines()
    assert [json.loads(line)["id"] for line in lines] == ids


@pytest.mark.parametrize("place", ["server", "database"])
def test_a_large_import_that_is_killed_is_run_again_and_adds_nothing_twice(place, tmp_path):
    with hq_at(place, tmp_path) as hq:
        hq("queue", "add", "large")
        with (tmp_path / "large.ndjson").open("w") as file:
            file.writelines(f'{{"payload": {number}}}\n' for number in range(LINES))
        words = hq.words("import", "large", "--file", "/dev/stdin")
        read, write = os.pipe()
        with subprocess.Popen(words, cwd=tmp_path, env=hq.environment, stdin=read) as importing:
            os.close(read)
            # A pipe holds little: when half of the file is through, the lines before are on their way.
            with os.fdopen(write, "wb") as pipe, (tmp_path / "large.ndjson").open("rb") as file:
                for _ in range(LINES // 2):
                    pipe.write(file.readline())
                pipe.flush()
                importing.send_signal(signal.SIGKILL)
        importing.wait()
        before = hq.json("stats", "large")["ready"]
        assert 0 < before < LINES

        told = hq.json("import", "large", "--file", "large.ndjson")

        assert told == {"queue": "large", "imported": LINES - before, "duplicates": before, "refused": 0}
        assert hq.json("stats", "large")["ready"] == LINES
