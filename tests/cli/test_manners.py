"""How a command behaves beside what it does: what it imports, how it ends, and what it does at a terminal."""

import json
import os
import pty
import re
import select
import signal
import socket
import subprocess
import sys
import threading
from contextlib import contextmanager

import pytest

from tests.cli.running import Hq
from tests.http.process import hq_serve

HEAVY = {
    "aiosqlite", "alembic", "anyio", "asyncio", "asyncpg", "httpx", "hypercorn", "prometheus_client", "quart",
    "rich", "sqlalchemy", "tenacity", "uvicorn", "hq.actors.node", "hq.api", "hq.http", "hq.worker.worker",
}  # fmt: skip
IMPORTED = """
import sys
sys.argv = ["hq", *{words!r}]
try:
    from hq.cli.main import main
    main()
except SystemExit:
    print(*sys.modules, file=sys.stderr)
"""
slow = pytest.mark.slow


@pytest.fixture
def file(tmp_path):
    """`hq` on a file of this test's own, with a queue that has two messages."""
    run = Hq(tmp_path, ("--database", "hq.db"))
    run("queue", "add", "jobs")
    run("message", "enqueue", "jobs", "--file", "-", stdin="1\n2\n")
    return run


class Terminal:
    """A process at a terminal of its own."""

    def __init__(self, words, run, **environment):
        self.screen, other = pty.openpty()
        self.process = subprocess.Popen(
            words, cwd=run.folder, env=run.environment | {"TERM": "xterm", **environment},
            stdin=other, stdout=other, stderr=other,
        )  # fmt: skip
        os.close(other)
        self.said = ""

    def until(self, text, seconds=60):
        """Read on until it says this, or ends."""
        while text not in self.said:
            ready, _, _ = select.select([self.screen], [], [], seconds)
            assert ready, f"it says only {self.said!r}"
            try:
                self.said += os.read(self.screen, 65_536).decode(errors="replace")
            except OSError:
                break
        assert text in self.said, self.said
        return self.said

    def type(self, text):
        os.write(self.screen, text.encode())

    def end(self):
        """Its exit code, with all it said read."""
        with_rest = threading.Thread(target=self._drain)
        with_rest.start()
        code = self.process.wait(timeout=60)
        with_rest.join()
        os.close(self.screen)
        return code

    def _drain(self):
        try:
            while said := os.read(self.screen, 65_536):
                self.said += said.decode(errors="replace")
        except OSError:
            pass


@contextmanager
def at_terminal(run, *words, **environment):
    terminal = Terminal(run.words(*words), run, **environment)
    try:
        yield terminal
    finally:
        terminal.process.kill()
        terminal.process.wait()


@pytest.mark.parametrize(
    "words", [["--help"], ["queue", "--help"], ["--version"], ["queue", "add", "--help"]]
)
def test_help_imports_no_library_that_it_does_not_need(words):
    done = subprocess.run(
        [sys.executable, "-c", IMPORTED.format(words=words)], capture_output=True, text=True, check=True
    )
    assert HEAVY & set(done.stderr.split()) == set()


@slow
def test_what_heavy_is_would_be_noticed():
    """The same look at a command that needs some of it."""
    done = subprocess.run(
        [sys.executable, "-c", IMPORTED.format(words=["stats", "--database", "memory:"])],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert {"anyio", "hq.actors.node"} <= set(done.stderr.split())


@slow
def test_a_group_named_alone_shows_its_help(tmp_path):
    done = Hq(tmp_path).run("queue")
    assert done.returncode == 2
    assert done.stderr.startswith("Usage: hq queue")


@slow
def test_a_server_that_is_not_there_is_told_in_one_sentence(tmp_path):
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        address = f"http://127.0.0.1:{held.getsockname()[1]}"
        assert "does not answer" in Hq(tmp_path, HQ_URL=address).refusal(1, "queue", "list")


@slow
def test_a_server_and_a_database_are_not_asked_at_once(file):
    assert "not both" in file.refusal(2, "stats", "--url", "http://127.0.0.1:1")


@slow
def test_the_key_is_shown_to_the_server(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as listening:
        heard = []

        def hear():
            connection, _ = listening.accept()
            with connection:
                heard.append(connection.recv(65_536).decode().lower())

        hearing = threading.Thread(target=hear)
        hearing.start()
        address = f"http://127.0.0.1:{listening.getsockname()[1]}"
        Hq(tmp_path, HQ_URL=address, HQ_API_KEY="secret").run("health")
        hearing.join()
    assert "authorization: bearer secret" in heard[0]


@slow
def test_a_pipe_that_is_closed_ends_a_command_quietly(file):
    with subprocess.Popen(
        file.words("export", "jobs"), cwd=file.folder, env=file.environment, stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as exporting:  # fmt: skip
        exporting.stdout.close()
        said = exporting.stderr.read()
        code = exporting.wait(timeout=60)
    assert (code, said) == (1, b"")


@slow
@pytest.mark.parametrize(("answer", "left"), [("n\n", 2), ("y\n", 0)])
def test_at_a_terminal_it_is_asked_before_messages_are_taken_out(file, answer, left):
    with at_terminal(file, "queue", "purge", "jobs") as terminal:
        terminal.until("Really")
        terminal.type(answer)
        assert terminal.end() == (0 if left == 0 else 1)
    assert file.json("stats", "jobs")["ready"] == left


@slow
def test_with_yes_nothing_is_asked(file):
    with at_terminal(file, "queue", "rm", "jobs", "--yes") as terminal:
        assert terminal.end() == 0
    assert "Really" not in terminal.said


@slow
@pytest.mark.parametrize(("environment", "coloured"), [({}, True), ({"NO_COLOR": "1"}, False)])
def test_colours_are_for_those_who_want_them(file, environment, coloured):
    file("queue", "pause", "jobs")
    with at_terminal(file, "top", "--looks", "1", **environment) as terminal:
        assert terminal.end() == 0
    assert bool(re.search(r"\x1b\[[0-9;]*3[0-7]m", terminal.said)) is coloured


@slow
def test_top_is_live_until_it_is_interrupted(file):
    with at_terminal(file, "top", "--every", "0.1") as terminal:
        terminal.until("jobs")
        terminal.until("done/s")
        terminal.process.send_signal(signal.SIGINT)
        assert terminal.end() == 130
    assert "Traceback" not in terminal.said


@slow
def test_top_elsewhere_tells_rates_from_the_second_look_on(file):
    first, second = file.lines("top", "--looks", "2", "--every", "0.1")
    assert (first["ready"], first["enqueued_per_s"], second["enqueued_per_s"]) == (2, None, 0.0)


@slow
def test_a_bar_shows_how_far_an_import_is(file):
    (file.folder / "lines").write_text('{"payload": 1}\n' * 3_000)
    with at_terminal(file, "import", "jobs", "--file", "lines") as terminal:
        terminal.until("imported 3000")
        assert terminal.end() == 0
    assert "━" in terminal.said


@slow
def test_many_lines_of_a_file_are_one_request(tmp_path):
    """Far fewer requests than lines is what makes it fast, whatever the machine."""
    with hq_serve("--database", ":memory:", folder=tmp_path) as (_, address):
        run = Hq(tmp_path, HQ_URL=address)
        run("queue", "add", "jobs")
        run("message", "enqueue", "jobs", "--file", "-", stdin="1\n" * 10_000)
        [counted] = re.findall(
            r'hq_http_requests_total\{method="POST",route="/queues/\{queue\}/messages",status="200"\} (\S+)',
            run("metrics"),
        )
        assert run.json("stats", "jobs")["ready"] == 10_000
    assert float(counted) == 10


@slow
def test_config_shows_every_key_and_where_it_was_given(tmp_path):
    (tmp_path / "hq.toml").write_text("[server]\nport = 8080\n")
    run = Hq(tmp_path, HQ_LOG__LEVEL="debug", DATABASE="postgresql://me:secret@host/hq")
    shown = {row["key"]: row for row in run.json("config", "show", "--config", "hq.toml")}
    assert shown["server.port"] == {"key": "server.port", "value": 8080, "from": "'server.port' in hq.toml"}
    assert shown["log.level"]["from"] == "environment variable 'HQ_LOG__LEVEL'"
    assert shown["server.host"]["from"] == "default"
    assert shown["database"]["value"] == "postgresql://me:***@host/hq"


@slow
def test_config_check_says_what_serve_would(tmp_path):
    run = Hq(tmp_path)
    assert run("config", "check") == "the configuration is good\n"
    assert "HQ_SERVER__PROT" in Hq(tmp_path, HQ_SERVER__PROT="1").refusal(1, "config", "check")
    assert "no keys" in Hq(tmp_path, HQ_SERVER__HOST="192.0.2.1").refusal(1, "config", "check")


@slow
def test_completion_is_there_for_a_shell(tmp_path):
    assert "_HQ_COMPLETE" in Hq(tmp_path, _TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION="1")(
        "--show-completion", "bash"
    )


def test_json_is_one_value(tmp_path):
    shown = Hq(tmp_path)("config", "show", "--json")
    assert json.loads(shown)
