"""`hq serve --listen`: the same queues at the main port and at ports of dialects."""

import os
import re
import signal
import subprocess
import sys
from contextlib import contextmanager
from threading import Timer

import httpx
import pytest

from hq.config.sections import DIALECTS
from hq.http.dialects.table import BY_NAME

PATIENCE_S = 60
SAID = re.compile(r"^hq serves (?:(\S+) )?at (http://\S+)\n$")

pytestmark = pytest.mark.slow


def test_the_dialects_of_the_configuration_are_those_there_are():
    assert set(DIALECTS) == set(BY_NAME)


@contextmanager
def serving(*flags, dialects, **environment):
    """A real process, and its addresses by dialect; the main one's is that of None."""
    command = [sys.executable, "-m", "hq", "serve", "--port", "0", "--database", ":memory:", *flags]
    for dialect in dialects:
        command += ["--listen", f"127.0.0.1:0={dialect}"]
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("HQ_")}
    with subprocess.Popen(command, env=inherited | environment, stdout=subprocess.PIPE, text=True) as process:
        too_late = Timer(PATIENCE_S, process.kill)
        too_late.start()
        try:
            said = [SAID.match(process.stdout.readline()) for _ in [None, *dialects]]
            yield process, {one[1]: one[2] for one in said}
        finally:
            too_late.cancel()
            process.kill()


@pytest.mark.parametrize("engine", ["hypercorn", "uvicorn"])
def test_every_port_serves_the_same_queues_until_the_process_is_told_to_stop(engine):
    with serving("--engine", engine, dialects=DIALECTS, API_KEY="k") as (process, at):
        assert httpx.put(f"{at['mq-core']}/orders").status_code == 201
        sent = httpx.post(f"{at['mq-core']}/orders/messages", content=b"{}")
        message_id = sent.headers["x-message-id"]
        seen = httpx.get(f"{at[None]}/queues/orders/messages/{message_id}").json()
        assert seen["state"] == "ready"
        by_prefix = httpx.get(f"{at[None]}/mq/orders/messages")
        assert (by_prefix.headers["x-message-id"], by_prefix.content) == (message_id, b"{}")

        assert httpx.post(f"{at['cl-sqs']}/queue?group-id=g", content=b"x").status_code == 401
        key = {"api-key": "k"}
        assert httpx.post(f"{at['cl-sqs']}/queue?group-id=g", content=b"x", headers=key).status_code == 200
        assert httpx.get(f"{at[None]}/cl-sqs/queue").status_code == 401
        assert httpx.get(f"{at[None]}/cl-sqs/queue", headers=key).content == b"x"

        # What is hq's own is not at their roots, not even where an address is the same.
        for dialect in DIALECTS:
            assert httpx.get(f"{at[dialect]}/readyz").status_code == 404
        assert httpx.post(f"{at['hq']}/queues/orders/enqueue", content=b"[1]").status_code == 200
        assert httpx.get(f"{at['hq']}/queues/orders/receive").json()["args"] == [1]

        process.send_signal(signal.SIGTERM)
        assert process.wait(PATIENCE_S) == 0


def test_a_port_that_others_can_reach_is_refused_without_a_key():
    command = [sys.executable, "-m", "hq", "serve", "--port", "0", "--database", ":memory:", "--listen"]
    done = subprocess.run(
        [*command, "0.0.0.0:0=mq-core"], capture_output=True, text=True, check=False, timeout=PATIENCE_S
    )
    assert (done.returncode, done.stdout) == (1, "")
    assert "the address for mq-core is '0.0.0.0'" in done.stderr
