"""The README from nothing: the project's files alone, `make serve`, and the curl session."""

import os
import shutil
import signal
import subprocess
import sys
from threading import Timer

import pytest

from tests.docs.test_readme_session import ROOT, check_session, run_by_hand, runs_at
from tests.http.process import ADDRESS

PATIENCE_S = 600
"""pip may have to fetch everything."""


@pytest.fixture
def clone(tmp_path):
    """What a clone would have: nothing that building left behind."""
    listing = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    told = subprocess.run(listing, cwd=ROOT, capture_output=True, check=True)
    folder = tmp_path / "hq"
    for name in filter(None, told.stdout.decode().split("\0")):
        if (ROOT / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, folder / name)
    assert (folder / "Makefile").exists()
    assert not (folder / ".venv").exists()
    return folder


@pytest.fixture
def address(clone):
    """Where `make serve` serves, on a port that is free."""
    command = ["make", "serve", f"PYTHON={sys.executable}", "ARGS=--port 0"]
    # None of it may come from the environment that runs the tests.
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("HQ_", "VIRTUAL_ENV"))}
    with subprocess.Popen(
        command, cwd=clone, env=kept, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True
    ) as process:

        def stop():
            os.killpg(process.pid, signal.SIGTERM)

        too_late = Timer(PATIENCE_S, stop)
        too_late.start()
        try:
            said = []
            for line in process.stdout:
                said.append(line)
                if told := ADDRESS.match(line):
                    yield told[1].decode()
                    break
            else:
                pytest.fail(f"it does not serve: {b''.join(said).decode()}")
        finally:
            too_late.cancel()
            if process.poll() is None:
                stop()


@pytest.mark.slow
def test_make_serve_serves_the_session_of_the_readme_from_a_new_clone(clone, address):
    check_session(runs_at(address, run_by_hand))
    assert (clone / "hq.db").exists()
    assert (clone / ".venv").exists()
