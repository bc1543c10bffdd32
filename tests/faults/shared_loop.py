"""Several processes share one file, and whichever holds it is killed, again and again; then all is checked.

Run `python -m tests.faults.shared_loop --kills 10`. The processes are those of the kill loop; one that is
killed is replaced by a new one, that joins. In the end all are killed at once, and a last one drains the
queues.
"""

import argparse
import os
import signal
import sys
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path
from select import select
from subprocess import Popen

import anyio

from tests.checkers.history import load
from tests.checkers.invariants import check_all
from tests.faults.kill_loop import (
    SECONDS_PER_LIFE,
    ChildFailed,
    KillLoop,
    Plan,
    Run,
    final_of,
    lost_queues,
    read_journal,
    report,
)

PROCESSES = 4


class SharedLoop(KillLoop):
    """One file, several lives at a time."""

    def run(self) -> Run:
        self.written: dict[Popen, int] = {}
        with ExitStack() as stack:
            for _ in range(PROCESSES):
                self.start(stack)
            for _ in range(self.plan.kills):
                self.wait_for(self.random.randint(self.plan.most_lines // 2, self.plan.most_lines))
                self.kill_holder()
                self.start(stack)
            self.wait_for(self.plan.most_lines)
        memory = self.look("drain")
        journal = anyio.run(read_journal, self.database)
        disk = self.look("look")
        history, final = load(*self.histories), final_of(memory, disk, journal)
        return Run([*check_all(history, final), *lost_queues(history, final)], history, self.starts)

    def start(self, stack: ExitStack) -> None:
        process, _ = stack.enter_context(self.child("work"))
        os.set_blocking(process.stdout.fileno(), False)
        self.written[process] = 0

    def wait_for(self, lines: int) -> None:
        """Until every process that lives has written something since, and all together so many lines."""
        give_up_at = time.monotonic() + SECONDS_PER_LIFE
        self.written = dict.fromkeys(self.written, 0)
        while min(self.written.values()) == 0 or sum(self.written.values()) < lines:
            select([process.stdout for process in self.written], [], [], 1.0)
            for process in self.written:
                self.written[process] += (process.stdout.read() or b"").count(b".")
                if process.poll() is not None or time.monotonic() > give_up_at:
                    raise ChildFailed(self.last_words())

    def kill_holder(self) -> None:
        """The process that has the lock; its number is in it."""
        number = int((self.folder / "hq.db-lock").read_text())
        [holder] = [process for process in self.written if process.pid == number]
        del self.written[holder]
        holder.send_signal(signal.SIGKILL)
        holder.wait(timeout=SECONDS_PER_LIFE)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kills", type=int, default=10)
    parser.add_argument("--seed", type=int, default=Plan.seed)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="hq-shared-") as folder:
        run = SharedLoop(Path(folder), Plan(asked.kills, asked.seed, clients=2, most_lines=1_000)).run()
    print(report(run))
    sys.exit(1 if run.violations else 0)


if __name__ == "__main__":
    main()
