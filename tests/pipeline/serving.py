"""A real server in a process of its own, which can be killed and started again at the same address."""

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from urllib.request import Request, urlopen

PATIENCE_S = 30


class Served:
    """`hq serve` on a SQLite file, or on the Postgres database of a URL."""

    def __init__(self, database: Path | str) -> None:
        self.database = database
        self.port = 0
        self._process: subprocess.Popen | None = None
        self.start()

    def start(self) -> None:
        command = [sys.executable, "-m", "hq", "serve", "--port", str(self.port), "-d", str(self.database)]
        environment = {name: value for name, value in os.environ.items() if not name.startswith("HQ_")}
        self._process = subprocess.Popen(
            command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )
        self.port = int(re.search(r"http://[^:]+:(\d+)", self._process.stdout.readline())[1])

    def kill(self) -> None:
        self._process.kill()
        self._process.communicate()

    def stop(self) -> None:
        self._process.send_signal(signal.SIGTERM)
        self._process.communicate(timeout=PATIENCE_S)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def ask(self, method: str, path: str, body: object = None):
        """The answer as JSON."""
        content = None if body is None else json.dumps(body).encode()
        request = Request(self.url + path, content, {"Content-Type": "application/json"}, method=method)  # noqa: S310 - of this test
        with urlopen(request, timeout=PATIENCE_S) as response:  # noqa: S310 - as above
            answer = response.read()
        return json.loads(answer) if answer else None

    def create(self, queue: str, **settings) -> None:
        self.ask("POST", "/queues", {"name": queue, **settings})

    def enqueue(self, queue: str, payloads, **options) -> list[str]:
        """The ids of messages with these payloads, sent in requests of a thousand."""
        ids = []
        payloads = list(payloads)
        for start in range(0, len(payloads), 1_000):
            batch = [{"payload": payload, **options} for payload in payloads[start : start + 1_000]]
            ids += [one["id"] for one in self.ask("POST", f"/queues/{queue}/messages", batch)["results"]]
        return ids

    def stats(self, queue: str) -> dict:
        return self.ask("GET", f"/queues/{queue}/stats")

    def keys(self, queue: str) -> list[str]:
        """The dedup keys of all messages that wait."""
        keys, page = [], self.ask("GET", f"/queues/{queue}/messages?limit=1000")
        while True:
            keys += [one["dedup_key"] for one in page["messages"]]
            if "next" not in page:
                return keys
            page = self.ask("GET", f"/queues/{queue}/messages?limit=1000&after={page['next']}")
