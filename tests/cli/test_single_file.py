"""`make dist`: one file that needs nothing beside it but Python."""

import os
import shutil
import subprocess

import pytest

from hq import __version__
from tests.http.process import ROOT

pytestmark = pytest.mark.slow
PATIENCE_S = 300


def test_the_single_file_runs_in_an_empty_folder(tmp_path):
    subprocess.run(
        [shutil.which("make"), "dist"], cwd=ROOT, check=True, capture_output=True, timeout=PATIENCE_S
    )
    empty = tmp_path / "empty"
    empty.mkdir()
    shutil.copy(ROOT / "dist" / "hq", empty)
    environment = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "SHIV_ROOT": str(tmp_path / "unpacked")}

    def hq(*words):
        done = subprocess.run(
            ["./hq", *words], cwd=empty, env=environment, capture_output=True, text=True, check=True,
            timeout=PATIENCE_S,
        )  # fmt: skip
        return done.stdout

    assert hq("--version") == f"{__version__}\n"
    hq("queue", "add", "jobs", "--database", "hq.db")
    hq("message", "enqueue", "jobs", "--payload", "1", "--database", "hq.db")
    assert '"ready":1' in hq("stats", "jobs", "--json", "--database", "hq.db")
