"""The examples do what they say."""

import importlib
import subprocess
import sys
from pathlib import Path

import pytest

import hq
from hq.testing import drain_worker

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def anyio_backend():
    return "asyncio"


async def test_a_web_app_sends_its_mail_through_hq(tmp_path, monkeypatch):
    monkeypatch.setenv("HQ_DATABASE", str(tmp_path / "mail.db"))
    mail_app = importlib.import_module("examples.mail_app")
    monkeypatch.setattr(mail_app, "DATABASE", str(tmp_path / "mail.db"))
    async with mail_app.app.test_app() as app:
        client = app.test_client()
        user = {"address": "ada@example.org", "name": "Ada"}
        first = await client.post("/users", json=user)
        again = await client.post("/users", json=user)
        told = await (await client.get(f"/jobs/{(await first.get_json())['job']}")).get_json()
        bad = await (await client.post("/users", json={"address": "nobody", "name": "N"})).get_json()
        refused = await (await client.get(f"/jobs/{bad['job']}")).get_json()

    assert first.status_code == 202
    assert (await again.get_json())["duplicate"] is True
    assert told == {"state": "completed", "result": "sent to ada@example.org", "error": None}
    assert refused["error"] == "'nobody' is no address"
    assert mail_app.outbox == [("ada@example.org", "Welcome, Ada!")]


async def test_a_nightly_schedule_writes_its_report(hq_system, hq_clock):
    nightly = importlib.import_module("examples.nightly")
    await nightly.worker.prepare(hq_system)
    [schedule] = await hq_system.queue("reports").schedules()
    assert (schedule.cron, schedule.timezone) == ("30 2 * * *", "Europe/Berlin")

    hq_clock.advance(schedule.next_ticks[0] - hq_clock.now)
    [message] = await hq_system.queue("reports").receive(wait_ms=1)
    await message.release()
    [handled] = await drain_worker(nightly.worker, hq_system)

    assert handled.verdict == "completed"
    assert nightly.written == [f"nightly report of {schedule.next_ticks[0]}"]


def test_a_script_does_each_file_once(tmp_path):
    pictures = [tmp_path / f"{n}.jpg" for n in range(3)]
    for picture in pictures:
        picture.write_bytes(b"x" * 2_000)

    def run(*names):
        ran = subprocess.run(
            [sys.executable, ROOT / "examples" / "thumbnails.py", tmp_path / "t.db", *names],
            capture_output=True, text=True, timeout=60, check=True,
        )  # fmt: skip
        return ran.stdout.strip()

    assert run(*pictures[:2]) == "2 done"
    assert run(*pictures) == "1 done"
    assert run() == "0 done"
    assert all(len(picture.with_suffix(".thumb").read_bytes()) == 1_024 for picture in pictures)
    assert hq.__version__
