"""Builds the shim of shim.c and says how to run a program under it. Linux only: it needs LD_PRELOAD."""

import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path

SOURCE = Path(__file__).with_name("shim.c")
FLAGS = ("-shared", "-fPIC", "-O1", "-Wall", "-Wextra", "-Werror")
BUILD_SECONDS = 300


class NoCompiler(Exception):
    """The shim needs a C compiler: install one that is called `cc`, or the package `ziglang` from PyPI."""

    def __init__(self) -> None:
        super().__init__(self.__doc__)


def compiler() -> list[str]:
    """How to call a C compiler on this machine."""
    found = shutil.which("cc")
    if found is not None:
        return [found]
    if importlib.util.find_spec("ziglang") is not None:
        return [sys.executable, "-m", "ziglang", "cc"]
    raise NoCompiler


def build(folder: Path) -> Path:
    """Compile the shim into this folder."""
    library = folder / "shim.so"
    command = [*compiler(), *FLAGS, "-o", str(library), str(SOURCE), "-ldl"]
    subprocess.run(command, check=True, timeout=BUILD_SECONDS)
    return library


def under_shim(
    library: Path, match: str, *, kill: int = 0, when: str = "before", report: Path | None = None
) -> dict[str, str]:
    """The environment of a program that is watched, and killed at its `kill`-th call if that is not 0."""
    told = {} if report is None else {"HQ_SHIM_REPORT": str(report)}
    return {
        **os.environ,
        **told,
        "LD_PRELOAD": str(library),
        "HQ_SHIM_MATCH": match,
        "HQ_SHIM_KILL": str(kill),
        "HQ_SHIM_WHEN": when,
    }
