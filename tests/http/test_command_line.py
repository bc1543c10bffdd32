"""`hq serve` as a process: what it refuses to do is one line and an exit code."""

import subprocess
import sys

import httpx
import pytest

from tests.http.process import hq_serve

PATIENCE_S = 60


def refusal_of(folder, *flags, **environment):
    done = subprocess.run(
        [sys.executable, "-m", "hq", "serve", "--port", "0", *flags],
        cwd=folder, env={"PATH": "", **environment}, capture_output=True, text=True, check=False,
        timeout=PATIENCE_S,
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (1, "")
    [line] = done.stderr.splitlines()
    assert line.startswith("hq: ")
    return line


def test_an_address_that_others_can_reach_is_refused_before_anything_is_made(tmp_path):
    assert "no keys" in refusal_of(tmp_path, "--host", "0.0.0.0")  # noqa: S104 - the bind that is refused
    assert list(tmp_path.iterdir()) == []


def test_an_unknown_variable_is_refused(tmp_path):
    assert "HQ_SERVER__PROT" in refusal_of(tmp_path, HQ_SERVER__PROT="1")


@pytest.mark.slow
def test_a_file_that_another_process_serves_is_refused(tmp_path):
    with hq_serve("--database", "hq.db", folder=tmp_path):
        refusal_of(tmp_path, "--database", "hq.db")


@pytest.mark.slow
def test_a_port_that_is_taken_is_refused(tmp_path):
    with hq_serve("--database", ":memory:", folder=tmp_path) as (_, address):
        refusal_of(tmp_path, "--database", ":memory:", "--port", str(httpx.URL(address).port))


@pytest.mark.parametrize("engine", ["hypercorn", "uvicorn"])
@pytest.mark.slow
def test_the_names_of_the_first_seed_are_understood(tmp_path, engine):
    seed = {"DATABASE": "seed.db", "REQUEST_TIMEOUT": "0.05"}
    with hq_serve("--engine", engine, folder=tmp_path, **seed) as (_, address):
        httpx.post(f"{address}/queues?name=emails")
        waited = httpx.get(f"{address}/queues/emails/receive?wait_ms=60000")
    assert (waited.status_code, waited.json()["code"]) == (408, "request_timeout")
    assert (tmp_path / "seed.db").exists()
