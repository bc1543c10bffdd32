"""The examples of the pages on workers, schedules and testing run as they stand."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

DOCS = Path(__file__).resolve().parents[2] / "docs"
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
EXAMPLES = {
    f"{page}-{number}": block
    for page in ("workers", "schedules", "testing", "frameworks")
    for number, block in enumerate(BLOCK.findall((DOCS / f"{page}.md").read_text()))
}
JOBS = """
import hq

worker = hq.Worker()


@worker.task("mail")
async def send(to: str) -> None: ...
"""
# What is asked of the application of each framework.
ASKED = {
    "fastapi": """
import asyncio

import httpx


async def ask():
    transport = httpx.ASGITransport(app)
    async with app.router.lifespan_context(app), httpx.AsyncClient(transport=transport) as client:
        answer = await client.post("http://app/users", params={"address": "ada@example.org"})
        assert answer.status_code == 202, answer.text
        async with hq.open("jobs.db") as system, system.events(kinds=["completed"], after="0") as events:
            assert (await anext(events)).message_id == answer.json()["job"]


asyncio.run(ask())
""",
    "django": """
import django
from django.conf import settings

settings.configure(INSTALLED_APPS=["myapp.apps.JobsConfig"])
django.setup()

from myapp.jobs import send

accepted = send.enqueue_blocking("ada@example.org")
with hq.blocking.open("jobs.db") as system:
    assert system.queue("mail").get(accepted.id).payload == {"to": "ada@example.org"}
""",
    "flask": """
client = app.test_client()
answer = client.post("/users", json={"address": "ada@example.org"})
assert answer.status_code == 202, answer.text
assert system.queue("mail").get(answer.json["job"]).payload == {"to": "ada@example.org"}
""",
}


def run(*command, cwd, text=None):
    ran = subprocess.run(
        [sys.executable, "-W", "error", *command],
        input=text, capture_output=True, text=True, timeout=60, check=False, cwd=cwd,
    )  # fmt: skip
    assert ran.returncode == 0, ran.stdout + ran.stderr


def test_the_pages_have_their_examples():
    assert len(EXAMPLES) == 9


@pytest.mark.parametrize("name", EXAMPLES)
def test_an_example_runs(name, tmp_path):
    block = EXAMPLES[name]
    (tmp_path / "myapp").mkdir()
    (tmp_path / "myapp" / "jobs.py").write_text(JOBS)
    asked = "".join(text for framework, text in ASKED.items() if f"from {framework}" in block)
    if "from django" in block:
        (tmp_path / "myapp" / "apps.py").write_text(block)
        run("-", cwd=tmp_path, text=f"import hq\n{asked}")
    elif "def test_" in block:
        (tmp_path / "test_it.py").write_text(block)
        run("-m", "pytest", "-q", "test_it.py", cwd=tmp_path)
    else:
        run("-", cwd=tmp_path, text=block + asked)
