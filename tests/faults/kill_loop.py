"""kill -9 at random, again and again on the same store, and then every promise is checked (F-1).

Run `python -m tests.faults.kill_loop --kills 25`, with `--database postgres`, for a server of its own, or
`--database postgresql://...` if wanted. A child
(tests/faults/child.py) works on the store and gets SIGKILL when it has written a random number of lines to
its history, or sometimes while it opens the store. Then the next one starts. The last one drains the queues.

With `--http ENGINE` the child is a client of `hq serve`, which is killed in its stead. With `--term` it gets
SIGTERM instead and must end well.
"""

import argparse
import json
import os
import selectors
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from random import Random

import anyio

from hq.backends.postgres import PostgresBackend, Term
from hq.backends.sqlite import SqliteBackend
from hq.domain.apply import apply
from hq.domain.ids import MessageId
from hq.domain.state import QueueState
from tests.checkers.final import Appended, Final, QueueFinal, Violation
from tests.checkers.history import History, load
from tests.checkers.invariants import check_all
from tests.faults.child import TIGHT, TIGHT_SHARE
from tests.faults.clients import QUEUES
from tests.http.process import ROOT, hq_serve
from tests.postgres.cluster import Cluster

SECONDS_PER_LIFE = 120
OPENING_SHARE = 0.15
OPENING_SECONDS = 0.3
JITTER_SECONDS = 0.005
STATES = ("ready", "delayed", "leased", "failed")
JOURNAL_PAGE = 1_000


class ChildFailed(Exception):
    """The child ended by itself, or was too slow; the text is what it said on stderr."""


@dataclass(frozen=True)
class Plan:
    """How often to kill, and how: the seed decides when, the machine decides where that falls."""

    kills: int = 25
    seed: int = 1
    clients: int = 8
    most_lines: int = 1_500
    engine: str | None = None
    ending: signal.Signals = signal.SIGKILL


@dataclass
class Run:
    """What came of it."""

    violations: list[Violation]
    history: History
    starts: list[float] = field(default_factory=list)
    ends: list[float] = field(default_factory=list)

    def outcomes(self) -> Counter[tuple[str, str]]:
        return Counter((one.verb, one.outcome.value) for one in self.history)


class KillLoop:
    """One folder, one store, many lives."""

    def __init__(self, folder: Path, plan: Plan, database: str | None = None) -> None:
        self.folder = folder
        self.plan = plan
        self.database = database or f"sqlite:///{folder / 'hq.db'}"
        self.random = Random(plan.seed)
        self.histories: list[Path] = []
        self.starts: list[float] = []
        self.ends: list[float] = []

    def run(self) -> Run:
        for _ in range(self.plan.kills):
            self.live_and_die()
        return self.judged()

    def judged(self) -> Run:
        """Drain the queues, look three times, and put the promises to all histories."""
        memory = self.look("drain")
        journal = anyio.run(read_journal, self.database)
        disk = self.look("look")
        history = load(*self.histories)
        final = final_of(memory, disk, journal)
        return Run(
            [*check_all(history, final), *lost_queues(history, final)], history, self.starts, self.ends
        )

    def live_and_die(self) -> None:
        """One life, ended while it opens the store or after so many lines."""
        opening = self.plan.engine is None and self.random.random() < OPENING_SHARE
        lines = self.random.randint(1, self.plan.most_lines)
        jitter = self.random.uniform(0, OPENING_SECONDS if opening else JITTER_SECONDS)
        with self.child("work") if self.plan.engine is None else self.served(self.plan.engine) as life:
            process, signs = life
            for sign in signs:
                lines -= sign == "."
                if opening or lines == 0:
                    break
            else:
                raise ChildFailed(self.last_words())
            with suppress(subprocess.TimeoutExpired):
                process.wait(timeout=jitter)
            self.end(process)

    def end(self, process: subprocess.Popen) -> None:
        """By the signal of the plan; a kill is told by the exit code, everything else must end well."""
        begun = time.monotonic()
        process.send_signal(self.plan.ending)
        code = process.wait(timeout=SECONDS_PER_LIFE)
        self.ends.append(time.monotonic() - begun)
        if code != (-signal.SIGKILL if self.plan.ending is signal.SIGKILL else 0):
            raise ChildFailed(self.last_words())

    @contextmanager
    def served(self, engine: str) -> Iterator[tuple[subprocess.Popen, Iterator[str]]]:
        """A server, and the signs of its clients, which end by themselves when it has gone."""
        limits = {}
        if self.random.random() < TIGHT_SHARE:
            given = {name: value for name, value in asdict(TIGHT).items() if value is not None}
            limits = {f"HQ_LIMITS__{name.upper()}": str(value) for name, value in given.items()}
        begun = time.monotonic()
        flags = "--database", str(self.database), "--engine", engine
        with (
            (self.folder / "stderr-of-server").open("wb") as stderr,
            hq_serve(*flags, stderr=stderr, **limits) as (server, address),
            self.child("work", address) as (clients, signs),
        ):
            self.starts.append(time.monotonic() - begun)
            yield server, signs
            if clients.wait(timeout=SECONDS_PER_LIFE) != 0:
                raise ChildFailed(self.last_words())

    def look(self, role: str) -> dict:
        """What a last life found, which kills itself when it has written it down."""
        with self.child(role) as (process, signs):
            for _ in signs:
                pass
            if process.wait(timeout=SECONDS_PER_LIFE) != -signal.SIGKILL:
                raise ChildFailed(self.last_words())
        return json.loads((self.folder / f"{role}.json").read_text())

    @contextmanager
    def child(self, role: str, place: str | None = None) -> Iterator[tuple[subprocess.Popen, Iterator[str]]]:
        """A process with a history of its own, and the signs it gives; it does not outlive the block."""
        history = self.folder / f"history-{len(self.histories)}.jsonl"
        history.touch()
        self.histories.append(history)
        said = {
            "--history": history,
            "--result": self.folder / f"{role}.json",
            "--seed": self.random.getrandbits(32),
            "--clients": self.plan.clients,
        }
        command = [sys.executable, "-m", "tests.faults.child", role, place or self.database]
        command += [str(word) for pair in said.items() for word in pair]
        with (self.folder / "stderr").open("wb") as stderr:
            process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=stderr)
        try:
            yield process, self.signs(process)
        finally:
            process.kill()
            process.wait(timeout=SECONDS_PER_LIFE)
            process.stdout.close()

    def signs(self, process: subprocess.Popen) -> Iterator[str]:
        """What the child says on stdout, one sign at a time, until it ends; not longer than a life may be."""
        begun = time.monotonic()
        with selectors.DefaultSelector() as selector:
            selector.register(process.stdout, selectors.EVENT_READ)
            while True:
                left = begun + SECONDS_PER_LIFE - time.monotonic()
                if left <= 0 or not selector.select(timeout=left):
                    raise ChildFailed("the child is too slow")
                said = os.read(process.stdout.fileno(), 4_096).decode()
                if not said:
                    return
                if "R" in said:
                    self.starts.append(time.monotonic() - begun)
                yield from said

    def last_words(self) -> str:
        return "\n".join(path.read_text(errors="replace") for path in sorted(self.folder.glob("stderr*")))


async def read_journal(database: str) -> dict[str, tuple[tuple[Appended, ...], QueueState]]:
    """Of every queue the rows of its journal, and the state that follows from its events alone."""
    if database.startswith("sqlite"):
        backend = SqliteBackend(database.removeprefix("sqlite:///"))
    else:
        backend = PostgresBackend(database, term=Term(time_s=3))
    await backend.open()
    try:
        rows = {row.number: row for row in await backend.queues()}
        appended = {number: [] for number in rows}
        states = {number: QueueState(row.settings) for number, row in rows.items()}
        position = 0
        while entries := await backend.journal(position, JOURNAL_PAGE):
            position = entries[-1].position
            for entry in entries:
                first, last = entry.events[0].sequence, entry.events[-1].sequence
                appended[entry.queue].append(Appended(entry.epoch, first, last))
                for event in entry.events:
                    apply(states[entry.queue], event)
        return {row.name: (tuple(appended[number]), states[number]) for number, row in rows.items()}
    finally:
        await backend.close()


def final_of(memory: dict, disk: dict, journal: dict[str, tuple[tuple[Appended, ...], QueueState]]) -> Final:
    """The last look, three times: what the last process had in memory, what is read again, the journal."""
    queues = {}
    for name, settings in QUEUES.items():
        if name not in memory:
            continue
        rows, state = journal[name]
        left = {word: tuple(one[0] for one in memory[name]["messages"] if one[1] == word) for word in STATES}
        dumps = {"memory": dump(memory[name]), "disk": dump(disk[name]), "journal": dump(folded(state))}
        queues[name] = QueueFinal(
            settings=settings, left=left, stats=memory[name]["stats"], journal=rows, dumps=dumps
        )
    return Final(queues)


def folded(state: QueueState) -> dict:
    """A state made of events, in the words of a look; after a drain only dead letters are left."""
    counts = state.counters
    words = (
        "leased",
        "failed",
        "moving",
        "enqueued",
        "completed",
        "expired",
        "deleted",
        "purged",
        "receives",
    )
    stats = {word: getattr(counts, word) for word in (*words, "retries", "lapses")}
    messages = [[one.sequence, str(one.state), one.receives, one.attempts] for one in state.messages.values()]
    return {
        "stats": {**stats, "ready": counts.waiting, "delayed": 0, "moved": counts.moved, "inbox": 0},
        "messages": messages,
    }


def dump(found: dict) -> str:
    """A look as canonical text."""
    messages = [
        [MessageId.parse(one[0]).sequence if isinstance(one[0], str) else one[0], *one[1:]]
        for one in found["messages"]
    ]
    return json.dumps({"stats": found["stats"], "messages": sorted(messages)}, sort_keys=True)


def lost_queues(history: History, final: Final) -> list[Violation]:
    """A queue whose creation was answered is there for ever (I-1 for queues)."""
    made = {one.queue for one in history.of("create_queue") if one.ok}
    return [Violation("I-1", queue, None, "the queue is gone") for queue in sorted(made - set(final.queues))]


def report(run: Run) -> str:
    """A run in a few lines."""
    outcomes = ", ".join(
        f"{verb} {outcome} {count}" for (verb, outcome), count in sorted(run.outcomes().items())
    )
    start, end = max(run.starts, default=0.0), max(run.ends, default=0.0)
    lines = [
        f"{len(run.history)} operations: {outcomes}",
        f"slowest start {start:.2f} s, interpreter included; slowest end {end:.2f} s",
    ]
    return "\n".join([*lines, *map(str, run.violations), f"{len(run.violations)} violations"])


@contextmanager
def stored_in(database: str) -> Iterator[str | None]:
    """The URL of a database that was asked for; None for a file of the loop's own."""
    if database != "postgres":
        yield None if database == "sqlite" else database
        return
    cluster = Cluster(Path(tempfile.mkdtemp(prefix="hq-kill-loop-")))
    try:
        cluster.make()
        yield cluster.url()
    finally:
        cluster.remove()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kills", type=int, default=Plan.kills)
    parser.add_argument("--seed", type=int, default=Plan.seed)
    parser.add_argument("--clients", type=int, default=Plan.clients)
    parser.add_argument("--most-lines", type=int, default=Plan.most_lines)
    parser.add_argument("--http", choices=("hypercorn", "uvicorn"))
    parser.add_argument("--term", action="store_true")
    parser.add_argument("--database", default="sqlite", help="sqlite, postgres or a URL")
    asked = parser.parse_args()
    if asked.term and not asked.http:
        parser.error("only a server ends well: --term wants --http")
    ending = signal.SIGTERM if asked.term else signal.SIGKILL
    plan = Plan(asked.kills, asked.seed, asked.clients, asked.most_lines, asked.http, ending)
    with tempfile.TemporaryDirectory(prefix="hq-kill-loop-") as folder, stored_in(asked.database) as database:
        run = KillLoop(Path(folder), plan, database).run()
    print(report(run))
    sys.exit(1 if run.violations else 0)


if __name__ == "__main__":
    main()
