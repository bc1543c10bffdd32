"""Commands as processes, on a server or on a database."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.http.process import hq_serve

HQ = Path(sys.executable).with_name("hq")
PLACES = ("server", "database")
PATIENCE_S = 120
INHERITED = {
    name: value
    for name, value in os.environ.items()
    if not name.startswith(("HQ_", "NO_COLOR", "FORCE_COLOR"))
}


class Hq:
    """Runs `hq` with the same target each time."""

    def __init__(self, folder: Path, flags: tuple[str, ...] = (), **environment: str) -> None:
        self.folder = folder
        self.flags = flags
        self.environment = INHERITED | environment

    def words(self, *words: str) -> list[str]:
        return [str(HQ), *words, *self.flags]

    def run(self, *words: str, stdin: str | None = None) -> subprocess.CompletedProcess:
        """What a command said, however it ended."""
        return subprocess.run(
            self.words(*words), cwd=self.folder, env=self.environment, input=stdin, capture_output=True,
            text=True, check=False, timeout=PATIENCE_S,
        )  # fmt: skip

    def __call__(self, *words: str, stdin: str | None = None) -> str:
        """What a command said that did what it was told."""
        done = self.run(*words, stdin=stdin)
        assert (done.returncode, done.stderr) == (0, ""), done
        return done.stdout

    def json(self, *words: str, stdin: str | None = None):
        """The JSON value it said."""
        return json.loads(self(*words, "--json", stdin=stdin))

    def lines(self, *words: str, stdin: str | None = None) -> list:
        """The JSON values it said, one in each line."""
        return [json.loads(line) for line in self(*words, "--json", stdin=stdin).splitlines()]

    def refusal(self, code: int, *words: str, stdin: str | None = None) -> str:
        """The one sentence with which a command refused."""
        done = self.run(*words, stdin=stdin)
        assert (done.returncode, done.stdout) == (code, ""), done
        [sentence] = done.stderr.splitlines()
        assert sentence.startswith("hq: "), done
        return sentence.removeprefix("hq: ")


@contextmanager
def hq_at(place: str, folder: Path) -> Iterator[Hq]:
    """`hq` that talks to a server, or opens a database by itself."""
    if place == "database":
        yield Hq(folder, ("--database", "hq.db"))
        return
    with hq_serve("--database", ":memory:", folder=folder) as (_, address):
        yield Hq(folder, HQ_URL=address)
