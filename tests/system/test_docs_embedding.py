"""Every example of the pages for programs runs as it stands."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

DOCS = Path(__file__).resolve().parents[2] / "docs"
COUNTS = {"embedding.md": 9, "client.md": 2, "events.md": 1}
EXAMPLES = [
    example
    for page in COUNTS
    for example in re.findall(r"^```python\n(.*?)^```$", (DOCS / page).read_text(), re.MULTILINE | re.DOTALL)
]


def test_the_pages_have_their_examples():
    assert len(EXAMPLES) == sum(COUNTS.values())


@pytest.mark.parametrize("example", EXAMPLES, ids=range(len(EXAMPLES)))
def test_an_example_runs(example, tmp_path):
    run = subprocess.run(
        [sys.executable, "-W", "error", "-"],
        input=example,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        cwd=tmp_path,
    )
    assert (run.returncode, run.stderr) == (0, "")
