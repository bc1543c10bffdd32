"""The files of a lake, behind what the pipeline needs of them: one place for each kind of storage.

Paths are relative to the lake, with slashes. What `create` and `move` have done survives a loss of power.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from hashlib import sha256
from pathlib import Path
from typing import BinaryIO, Protocol
from uuid import uuid4

from hq.pipeline.errors import LakeBusy

LOOK_AGAIN_S = 0.1
READ_BYTES = 1 << 20
UNFINISHED = ".unfinished"


class Files(Protocol):
    """Where a lake is."""

    def uri(self, path: str) -> str:
        """The name Spark reads and writes it by."""

    def open(self, path: str) -> BinaryIO:
        """A file to read; FileNotFoundError if there is none."""

    def below(self, folder: str) -> list[str]:
        """All files below a folder, by name; none if it is not there."""

    def create(self, path: str, content: bytes) -> None:
        """Make a file, whole or not at all; FileExistsError if there is one."""

    def move(self, source: str, target: str) -> None:
        """Give a file another name, in the place of one that has it."""

    def remove(self, path: str) -> None:
        """Take a file or a folder away; it may be gone already."""

    @contextmanager
    def held(self, wait_s: float) -> Iterator[None]:
        """Be the only one to write, as long as the process lives; LakeBusy if another is for so long."""


class LocalFiles:
    """A directory of this machine, or one that all machines have mounted."""

    def __init__(self, root: Path) -> None:
        self._root = root.absolute()

    def uri(self, path: str) -> str:
        # Not quoted: Spark takes it as it is.
        return f"file://{self._root / path}"

    def open(self, path: str) -> BinaryIO:
        return (self._root / path).open("rb")

    def below(self, folder: str) -> list[str]:
        found = (self._root / folder).rglob("*")
        return sorted(str(one.relative_to(self._root)) for one in found if one.is_file())

    def create(self, path: str, content: bytes) -> None:
        target = self._root / path
        self._make(target.parent)
        written = target.with_name(f"{uuid4().hex}{UNFINISHED}")
        try:
            written.write_bytes(content)
            _sync(written)
            # Unlike a rename, a link fails where there is a file already.
            os.link(written, target)
        finally:
            written.unlink(missing_ok=True)
        _sync(target.parent)

    def move(self, source: str, target: str) -> None:
        here, there = self._root / source, self._root / target
        _sync(here)
        self._make(there.parent)
        here.replace(there)
        _sync(there.parent)

    def remove(self, path: str) -> None:
        here = self._root / path
        if here.is_dir():
            shutil.rmtree(here)
            return
        here.unlink(missing_ok=True)
        with suppress(OSError):
            # A day without files; kept if there are others.
            here.parent.rmdir()

    @contextmanager
    def held(self, wait_s: float) -> Iterator[None]:
        self._root.mkdir(parents=True, exist_ok=True)
        until = time.monotonic() + wait_s
        with (self._root / ".lock").open("w") as lock:
            while True:
                try:
                    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    break
                except BlockingIOError:
                    if time.monotonic() >= until:
                        raise LakeBusy(f"another job writes to the lake at {self._root}") from None
                time.sleep(LOOK_AGAIN_S)
            yield

    def _make(self, folder: Path) -> None:
        if folder.is_dir():
            return
        self._make(folder.parent)
        with suppress(FileExistsError):
            folder.mkdir()
        _sync(folder.parent)


def digest(opened: BinaryIO) -> str:
    """The SHA-256 of a file."""
    found = sha256()
    while part := opened.read(READ_BYTES):
        found.update(part)
    return found.hexdigest()


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
