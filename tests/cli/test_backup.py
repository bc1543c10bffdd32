"""A backup of a store in use, restored: all that was answered before it is there, and nothing is torn."""

import json
import threading
from contextlib import contextmanager

import anyio
import httpx
import pytest

import hq
from hq.domain.ids import MessageId
from tests.checkers.final import Final, QueueFinal
from tests.checkers.history import History
from tests.checkers.storage import memory_equals_disk, one_writer_at_a_time
from tests.cli.running import Hq
from tests.faults.child import everything
from tests.faults.kill_loop import dump, folded, read_journal
from tests.http.process import hq_serve

pytestmark = pytest.mark.slow
ENOUGH = 200


class Load:
    """Clients of a server that enqueue, receive and complete until they are told to stop."""

    def __init__(self, address):
        self.address = address
        self.stored, self.completed = [], []
        self.enough = threading.Event()
        self._over = threading.Event()
        self._threads = [
            threading.Thread(target=work) for work in (self._produce, self._produce, self._consume)
        ]

    @contextmanager
    def running(self):
        for thread in self._threads:
            thread.start()
        try:
            assert self.enough.wait(60)
            yield
        finally:
            self._over.set()
            for thread in self._threads:
                thread.join()

    def _produce(self):
        with httpx.Client(base_url=self.address) as client:
            while not self._over.is_set():
                told = client.post("/queues/jobs/messages", json={"payload": "x" * 100})
                self.stored.append(told.json()["id"])

    def _consume(self):
        with httpx.Client(base_url=self.address) as client:
            while not self._over.is_set():
                for one in client.post("/queues/jobs/poll?batch=5&wait_ms=100").json()["messages"]:
                    client.post("/queues/jobs/ack", json={"id": one["id"], "token": one["token"]})
                    self.completed.append(one["id"])
                if len(self.completed) >= ENOUGH:
                    self.enough.set()


def restored_state(url):
    """What a restored store has: by looking, by looking again, and by its journal."""

    async def look():
        async with hq.open(url) as system:
            return await everything(system)

    first, second = anyio.run(look), anyio.run(look)
    return first["jobs"], second["jobs"], anyio.run(read_journal, url)["jobs"]


def counted(look, words):
    """A look with the counts that events alone can tell."""
    return {**look, "stats": {word: look["stats"][word] for word in words}}


def seen(state):
    """A state made of events, in the words of a look: nothing is delayed here."""
    found = folded(state)
    words = {"waiting": "ready"}
    return {
        **found,
        "messages": [[one, words.get(word, word), *more] for one, word, *more in found["messages"]],
    }


@pytest.mark.parametrize("through", ["server", "database"])
@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
def test_a_backup_under_load_has_all_that_was_answered_before_it(kind, through, tmp_path, request):
    database = "sqlite:///" + str(tmp_path / "hq.db")
    if kind == "postgres":
        database = request.getfixturevalue("empty_postgres")
    with hq_serve("--database", database, folder=tmp_path) as (_, address):
        httpx.post(f"{address}/queues?name=jobs")
        load = Load(address)
        with load.running():
            stored, completed = list(load.stored), list(load.completed)
            flags = ("--url", address) if through == "server" else ("--database", database)
            Hq(tmp_path)("backup", "copy.hq", *flags)
    Hq(tmp_path)("restore", "copy.hq", "--database", "restored.db")

    memory, again, (rows, state) = restored_state(f"sqlite:///{tmp_path}/restored.db")
    told = seen(state)
    looks = {"memory": memory, "disk": again, "journal": told}
    dumps = {one: dump(counted(look, told["stats"])) for one, look in looks.items()}
    final = Final({"jobs": QueueFinal(journal=rows, dumps=dumps)})
    assert memory_equals_disk(History([]), final) + one_writer_at_a_time(History([]), final) == []
    there = {MessageId.parse(one[0]).sequence for one in memory["messages"]}
    kept = {MessageId.parse(one).sequence for one in stored} - {
        MessageId.parse(one).sequence for one in load.completed
    }
    assert kept <= there
    assert not {MessageId.parse(one).sequence for one in completed} & there
    assert memory["stats"]["enqueued"] >= len(stored)


def test_ids_of_before_stay_good_up_to_the_backup_and_new_ones_are_new(tmp_path):
    run = Hq(tmp_path)
    old, new = ("--database", "old.db"), ("--database", "new.db")
    run("queue", "add", "jobs", *old)
    before = run.json("message", "enqueue", "jobs", "--payload", "1", *old)["id"]
    run("backup", "copy.hq", *old)
    after = run.json("message", "enqueue", "jobs", "--payload", "2", *old)["id"]
    run("restore", "copy.hq", *new)
    later = run.json("message", "enqueue", "jobs", "--payload", "3", *new)["id"]

    [seen] = run.lines("message", "get", "jobs", before, *new)
    assert seen["payload"] == 1
    assert len({before, after, later, seen["id"]}) == 4
    run.refusal(3, "message", "get", "jobs", after, *new)

    run("backup", "again.hq", *new)
    run("restore", "again.hq", "--database", "third.db")
    for one, payload in ((before, 1), (seen["id"], 1), (later, 3)):
        [shown] = run.lines("message", "get", "jobs", one, "--database", "third.db")
        assert shown["payload"] == payload


def test_a_store_moves_from_one_kind_of_database_to_the_other_and_back(tmp_path, empty_postgres):
    run = Hq(tmp_path)
    run("queue", "add", "jobs", "--database", "old.db")
    run(
        "message", "enqueue", "jobs", "--file", "-", "--group", "a", "--database", "old.db", stdin="1\n2\n3\n"
    )
    [held] = run.lines("message", "poll", "jobs", "--database", "old.db")
    run("message", "fail", "jobs", held["id"], "--error", "broken", "--database", "old.db")
    expected = (
        run("export", "jobs", "--database", "old.db"),
        run("dlq", "list", "jobs", "--json", "--database", "old.db"),
    )
    run("backup", "copy.hq", "--database", "old.db")

    run("restore", "copy.hq", "--database", empty_postgres)
    assert run.json("stats", "jobs", "--database", empty_postgres)["failed"] == 1
    run.refusal(4, "restore", "copy.hq", "--database", empty_postgres)
    run("backup", "back.hq", "--database", empty_postgres)
    run("restore", "back.hq", "--database", "new.db")

    for text, words in zip(expected, (("export",), ("dlq", "list")), strict=True):
        again = run(*words, "jobs", "--json", "--database", "new.db")
        assert without_ids(again) == without_ids(text)


def without_ids(text):
    """Rows without what is new in another incarnation."""
    return [{**json.loads(line), "id": None} for line in text.splitlines()]


def test_a_file_that_is_there_is_not_written_over(tmp_path):
    run = Hq(tmp_path)
    run("queue", "add", "jobs", "--database", "hq.db")
    run("backup", "copy.hq", "--database", "hq.db")
    assert "copy.hq" in run.refusal(4, "backup", "copy.hq", "--database", "hq.db")
    assert "hq.db" in run.refusal(4, "restore", "copy.hq", "--database", "hq.db")


@pytest.mark.parametrize("content", [b"", b"no database", None])
def test_what_is_no_backup_is_not_restored(tmp_path, content):
    if content is not None:
        (tmp_path / "copy.hq").write_bytes(content)
    run = Hq(tmp_path)
    assert run.run("restore", "copy.hq", "--database", "hq.db").returncode != 0
    assert not (tmp_path / "hq.db").exists()


def test_memory_is_not_backed_up(tmp_path):
    with hq_serve("--database", ":memory:", folder=tmp_path) as (_, address):
        Hq(tmp_path).refusal(2, "backup", "copy.hq", "--url", address)
    assert not (tmp_path / "copy.hq").exists()
