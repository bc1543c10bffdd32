"""Seed every bug of the catalogue into a copy of the project and see that a test notices.

python -m tests.mutants           all of them, two at a time
python -m tests.mutants WORD ...  those whose description holds one of the words
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tests.mutants.catalogue import MUTANTS, Mutant

ROOT = Path(__file__).resolve().parents[2]
LIMIT_SECONDS = 300


def caught_by(mutant: Mutant) -> str | None:
    """The first test that fails with this bug; None if it survives."""
    with tempfile.TemporaryDirectory(prefix="hq-mutant-") as folder:
        copy = Path(folder)
        for name in ("hq", "tests"):
            shutil.copytree(ROOT / name, copy / name, ignore=shutil.ignore_patterns("__pycache__"))
        shutil.copy(ROOT / "pyproject.toml", copy)
        path = copy / "hq" / "domain" / mutant.file
        path.write_text(path.read_text().replace(mutant.text, mutant.becomes))
        run = subprocess.run(
            [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", "tests/domain"],
            cwd=copy,
            env={"PYTHONPATH": str(copy), "PATH": ""},
            capture_output=True,
            text=True,
            timeout=LIMIT_SECONDS,
            check=False,
        )
    failed = [line for line in run.stdout.splitlines() if line.startswith(("FAILED", "ERROR"))]
    return failed[0].split(" - ")[0] if run.returncode == 1 and failed else None


def main() -> None:
    """Run and report; any survivor is a failure."""
    words = sys.argv[1:]
    chosen = [mutant for mutant in MUTANTS if not words or any(word in mutant.breaks for word in words)]
    survivors = 0
    with ThreadPoolExecutor(max_workers=2) as pool:
        for mutant, caught in zip(chosen, pool.map(caught_by, chosen), strict=True):
            survivors += caught is None
            print(f"{'caught' if caught else 'SURVIVED':<9} {mutant.breaks}", flush=True)
            print(f"          {caught or 'no test noticed'}", flush=True)
    print(f"{len(chosen) - survivors} of {len(chosen)} caught")
    if survivors:
        raise SystemExit(1)


if __name__ == "__main__":
    main()
