"""The README's curl session, run line by line against a server; by curl itself where it is installed."""

import json
import re
import shlex
import shutil
import signal
import subprocess
from pathlib import Path

import httpx
import pytest

from tests.http.process import hq_serve

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text()
[SESSION] = [
    block for block in re.findall(r"^```sh\n(.*?)^```$", README, re.MULTILINE | re.DOTALL) if "curl" in block
]
COMMANDS = [shlex.split(line) for line in SESSION.replace("\\\n", "").splitlines()]
COMPLETING = [shlex.split(line) for line in re.findall(r"`(curl [^`]*)`", README)]


def run_by_curl(command):
    """What curl prints, as JSON."""
    done = subprocess.run([*command, "--silent", "--show-error"], capture_output=True, check=True, timeout=20)
    return json.loads(done.stdout)


def run_by_hand(command):
    """What curl would send: -d makes a POST, of the type that curl says when it was told none."""
    curl, *words = command
    assert curl == "curl"
    method, body, headers, url = "GET", None, {}, ""
    words = iter(words)
    for word in words:
        if word == "-X":
            method = next(words)
        elif word == "-H":
            name, _, value = next(words).partition(": ")
            headers[name] = value
        elif word == "-d":
            body = next(words)
            headers.setdefault("Content-Type", "application/x-www-form-urlencoded")
        else:
            url = word
    return httpx.request(method, f"http://{url}", content=body, headers=headers).json()


def runs_at(address, run):
    """Runs a command of the README there, with what it leaves out."""
    place = address.removeprefix("http://")

    def run_there(command, **known):
        said = [word.replace("localhost:9999", place) for word in command]
        for name, value in known.items():
            said = [word.replace(f'"{name}": "..."', f'"{name}": "{value}"') for word in said]
            said = [word.replace(f"{{{name}}}", value) for word in said]
        return run(said)

    return run_there


without_curl = pytest.mark.skipif(shutil.which("curl") is None, reason="curl is not installed")


@pytest.fixture(params=[run_by_hand, pytest.param(run_by_curl, marks=without_curl)])
def run(request, tmp_path):
    """Runs a command of the README against a server in an empty folder."""
    with hq_serve(folder=tmp_path) as (process, address):
        yield runs_at(address, request.param)
        process.send_signal(signal.SIGTERM)
        assert process.wait(20) == 0
    assert (tmp_path / "hq.db").exists()


def check_session(run):
    """The session does what its reader expects."""
    created, enqueued, received, sent, polled, stats = map(run, COMMANDS)

    assert created["name"] == "emails"
    assert received["id"] == enqueued["id"]
    assert received["payload"] == {"to": "ada@example.org"}
    assert [one["duplicate"] for one in sent["results"]] == [False, False]
    assert [one["payload"] for one in polled["messages"]] == [{"to": "bob@example.org"}]
    assert (stats["leased"], stats["delayed"]) == (2, 1)


def test_the_curl_session_of_the_readme_runs(run):
    check_session(run)


@pytest.mark.parametrize("completing", COMPLETING, ids=["by token", "by id"])
def test_what_the_readme_says_of_completing_works(run, completing):
    _, _, held = map(run, COMMANDS[:3])

    assert run(completing, id=held["id"], token=held["token"])["state"] == "completed"
    assert run(completing, id=held["id"], token=held["token"])["code"] == "message_not_found"
