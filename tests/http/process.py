"""A real `hq serve` process."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Timer
from typing import IO

ROOT = Path(__file__).resolve().parents[2]
PATIENCE_S = 60
ADDRESS = re.compile(rb"^hq serves at (\S+)\n$")


@contextmanager
def hq_serve(
    *flags: str, folder: Path = ROOT, stderr: IO[bytes] | None = None, **environment: str
) -> Iterator[tuple[subprocess.Popen, str]]:
    """The process and its address once it serves, on a free port; it does not outlive the block."""
    command = [sys.executable, "-m", "hq", "serve", "--port", "0", *flags]
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("HQ_")}
    with subprocess.Popen(
        command, cwd=folder, env=inherited | environment, stdout=subprocess.PIPE, stderr=stderr
    ) as process:
        too_late = Timer(PATIENCE_S, process.kill)
        too_late.start()
        try:
            said = process.stdout.readline()
            too_late.cancel()
            told = ADDRESS.match(said)
            assert told, f"it said {said} and does not serve"
            yield process, told[1].decode()
        finally:
            too_late.cancel()
            process.kill()
