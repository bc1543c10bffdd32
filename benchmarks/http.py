"""What HTTP costs: enqueue, receive, complete as three requests, against servers that do nothing.

For each engine, on uvloop, there are three servers: hq on SQLite, a bare ASGI application that reads as much
and answers as much, and a Quart route that does nothing. A second process loads one of them at a time over 64
connections. Runs take turns; medians are compared by the server's CPU per request and by requests a second.

    python -P benchmarks/http.py --seconds 5 --runs 5
    python -P benchmarks/http.py --quick

(-P, or this file would be taken for the standard library's http.)
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import re
import socket
import sys
import tempfile
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any, NamedTuple

import hypercorn.asyncio
import uvicorn
import uvloop
from quart import Quart

from hq.config import Server
from hq.http.engines import ENGINES
from hq.http.express import ALWAYS, Send
from hq.http.reading import Receive
from hq.system.collector import calm_collector

PAYLOAD = {"text": "x" * 187}
CONNECTIONS = 64
BATCH = 10
POLLS = 1_000
HQ = Server()
TICKS = os.sysconf("SC_CLK_TCK")


class Figures(NamedTuple):
    """What one run of one server gave."""

    requests: float
    cpu_us: float


# The servers.


async def bare(scope: dict[str, Any], receive: Receive, send: Send) -> None:
    """Read the body, answer with as many bytes as the path says, behind a head like hq's."""
    if scope["type"] != "http":
        return
    while (await receive()).get("more_body"):
        pass
    body = bytes(int(scope["path"].rpartition("/")[2]))
    headers = [(b"content-type", b"application/json"), *ALWAYS, (b"content-length", b"%d" % len(body))]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": body})


def quart() -> Quart:
    """The same as a Quart route."""
    app = Quart("baseline")

    @app.route("/<int:size>", methods=["GET", "POST"])
    async def nothing(size: int) -> bytes:
        return bytes(size)

    return app


async def serve_baseline(kind: str, engine: str) -> None:
    """Serve a baseline until killed, by the engine with the settings that hq gives it, as calm as hq."""
    app: Any = bare if kind == "bare" else quart()
    listening = socket.create_server(("127.0.0.1", 0), backlog=1_024)
    listening.setblocking(False)  # noqa: FBT003 - the name of the standard library
    calm_collector()
    print(listening.getsockname()[1], flush=True)
    if engine == "uvicorn":
        settings = uvicorn.Config(
            app,
            log_config=None,
            access_log=False,
            server_header=False,
            proxy_headers=False,
            ws="none",
            lifespan="off",
            timeout_keep_alive=HQ.keep_alive_s,
        )
        await uvicorn.Server(settings).serve(sockets=[listening])
    else:
        config = hypercorn.Config()
        config.bind = [f"fd://{listening.detach()}"]
        config.include_server_header = False
        config.keep_alive_timeout = HQ.keep_alive_s
        config.keep_alive_max_requests = HQ.keep_alive_max_requests
        config.read_timeout = None
        config.h11_max_incomplete_size = HQ.max_header_bytes
        config.errorlog = None
        await hypercorn.asyncio.serve(app, config, shutdown_trigger=asyncio.Event().wait)


class Started(NamedTuple):
    """A running server."""

    process: asyncio.subprocess.Process
    port: int

    def cpu_s(self) -> float:
        """The CPU it has used."""
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / TICKS


@asynccontextmanager
async def started(kind: str, engine: str, folder: Path) -> AsyncIterator[Started]:
    """Start a server in a process of its own, and stop it at the end."""
    if kind == "hq":
        arguments = ["-m", "hq", "serve", "-p", "0", "-d", str(folder / f"{engine}.db"), "--engine", engine]
    else:
        arguments = ["-P", __file__, "--serve", kind, "--engine", engine]
    process = await asyncio.create_subprocess_exec(sys.executable, *arguments, stdout=asyncio.subprocess.PIPE)
    assert process.stdout is not None
    line = (await process.stdout.readline()).decode()
    try:
        yield Started(process, int(re.findall(r"\d+", line)[-1]))
    finally:
        process.terminate()
        await process.wait()


# The load.


class Connection:
    """One connection that sends a request and reads the answer; as little of HTTP as that needs."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    async def ask(self, method: str, path: str, body: bytes = b"") -> bytes:
        """The body of the answer; anything but success is an error."""
        head = f"{method} {path} HTTP/1.1\r\nHost: hq\r\nContent-Type: application/json\r\n"
        self._writer.write(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)
        answer = (await self._reader.readuntil(b"\r\n\r\n")).lower()
        status = answer[9:12]
        length = int(answer.partition(b"content-length: ")[2].partition(b"\r\n")[0])
        content = await self._reader.readexactly(length)
        if not status.startswith(b"2"):
            raise RuntimeError(f"{method} {path}: {answer!r} {content!r}")
        return content


Cycle = Callable[[Connection], Any]
SINGLE = json.dumps({"payload": PAYLOAD}).encode()
MANY = json.dumps([{"payload": PAYLOAD}] * BATCH).encode()
# Bytes of the answers of hq, for the baselines to answer alike.
SINGLE_SIZES = (117, 432, 82)
MANY_SIZES = (1_185, 4_340, 844)


async def single(connection: Connection) -> int:
    """Enqueue, receive, complete one message."""
    await connection.ask("POST", "/queues/bench/messages", SINGLE)
    message = json.loads(await connection.ask("GET", "/queues/bench/receive"))
    if message is None:
        return 2
    held = json.dumps({"id": message["id"], "token": message["token"]}).encode()
    await connection.ask("POST", "/queues/bench/ack", held)
    return 3


async def many(connection: Connection) -> int:
    """The same for ten."""
    await connection.ask("POST", "/queues/bench/messages", MANY)
    polled = json.loads(await connection.ask("POST", f"/queues/bench/poll?batch={BATCH}"))["messages"]
    if not polled:
        return 2
    held = json.dumps([{"id": one["id"], "token": one["token"]} for one in polled]).encode()
    await connection.ask("POST", "/queues/bench/ack", held)
    return 3


def idle(sizes: tuple[int, ...], body: bytes) -> Cycle:
    """Three requests of the same sizes to a baseline."""
    held = bytes(len(body) // 4)

    async def cycle(connection: Connection) -> int:
        await connection.ask("POST", f"/{sizes[0]}", body)
        await connection.ask("GET", f"/{sizes[1]}")
        await connection.ask("POST", f"/{sizes[2]}", held)
        return 3

    return cycle


async def loaded(server: Started, cycle: Cycle, seconds: float) -> Figures:
    """Load a server over all connections."""
    opened = [await asyncio.open_connection("127.0.0.1", server.port) for _ in range(CONNECTIONS)]
    stop = perf_counter() + seconds

    async def work(connection: Connection) -> int:
        done = 0
        while perf_counter() < stop:
            done += await cycle(connection)
        return done

    cpu, begun = server.cpu_s(), perf_counter()
    done = sum(await asyncio.gather(*(work(Connection(*pair)) for pair in opened)))
    elapsed, cpu = perf_counter() - begun, server.cpu_s() - cpu
    for _, writer in opened:
        writer.close()
    return Figures(done / elapsed, cpu / done * 1e6)


async def idle_polls(server: Started, seconds: float) -> None:
    """A thousand long polls: what they cost, and how soon a message wakes one."""
    waiting = [Connection(*await asyncio.open_connection("127.0.0.1", server.port)) for _ in range(POLLS)]
    sender = Connection(*await asyncio.open_connection("127.0.0.1", server.port))
    answers = [
        asyncio.ensure_future(one.ask("GET", "/queues/polled/receive?wait_ms=120000")) for one in waiting
    ]
    await asyncio.sleep(2)
    cpu = server.cpu_s()
    await asyncio.sleep(seconds)
    print(f"    {POLLS:,} idle long polls: {(server.cpu_s() - cpu) / seconds:.1%} of a core  (aim under 5 %)")
    # They wait in the order in which they came to the server, which is not that of the list.
    answered: asyncio.Queue[object] = asyncio.Queue()
    for answer in answers:
        answer.add_done_callback(answered.put_nowait)
    woken = []
    for _ in range(100):
        begun = perf_counter()
        await sender.ask("POST", "/queues/polled/messages", SINGLE)
        await answered.get()
        woken.append((perf_counter() - begun) * 1e3)
    print(f"    a message wakes one in {median(woken):.1f} ms  (aim under 20 ms)", flush=True)
    for answer in answers:
        answer.cancel()


async def compare(engine: str, folder: Path, seconds: float, runs: int) -> None:
    """All servers of one engine, in turns."""
    raw: dict[str, list[Figures]] = {}
    async with (
        started("hq", engine, folder) as hq,
        started("bare", engine, folder) as echo,
        started("quart", engine, folder) as plain,
    ):
        setup = Connection(*await asyncio.open_connection("127.0.0.1", hq.port))
        for name in ("bench", "polled"):
            await setup.ask("POST", f"/queues?name={name}")
        turns = {
            "hq": (hq, single),
            "bare ASGI": (echo, idle(SINGLE_SIZES, SINGLE)),
            "plain Quart": (plain, idle(SINGLE_SIZES, SINGLE)),
            "hq, batches of 10": (hq, many),
            "bare ASGI, as large": (echo, idle(MANY_SIZES, MANY)),
        }
        for _ in range(runs):
            for name, (server, cycle) in turns.items():
                raw.setdefault(name, []).append(await loaded(server, cycle, seconds))
        print(engine)
        for name, figures in raw.items():
            rates, cpus = [one.requests for one in figures], [one.cpu_us for one in figures]
            print(f"    {name:<22}{median(rates):10,.0f} requests/s {median(cpus):8.0f} us CPU", end="")
            print("   ", " ".join(f"{rate:,.0f}" for rate in rates))
        _ratios(engine, raw)
        await idle_polls(hq, seconds)


def _ratios(engine: str, raw: dict[str, list[Figures]]) -> None:
    def cpu(name: str) -> float:
        return median(one.cpu_us for one in raw[name])

    def rate(name: str) -> float:
        return median(one.requests for one in raw[name])

    echo, quart_aim = ("0.45", "2.5") if engine == "uvicorn" else ("0.7", "1.3")
    print(f"    against bare ASGI, by CPU   {cpu('bare ASGI') / cpu('hq'):6.2f} x  (aim {echo} x)")
    print(f"    against plain Quart, by CPU {cpu('plain Quart') / cpu('hq'):6.2f} x  (aim {quart_aim} x)")
    batches = rate("hq, batches of 10") / rate("bare ASGI, as large")
    print(f"    batches against bare ASGI, by requests {batches:6.2f} x  (aim 0.4 x)", flush=True)


async def main() -> None:
    """Measure all, or serve a baseline."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seconds", type=float, default=5.0)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--quick", action="store_true", help="one short run of each")
    parser.add_argument("--engine", choices=list(ENGINES))
    parser.add_argument("--serve", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.serve:
        await serve_baseline(arguments.serve, arguments.engine)
        return
    seconds, runs = (1.5, 1) if arguments.quick else (arguments.seconds, arguments.runs)
    with tempfile.TemporaryDirectory(prefix="hq-bench-") as name:
        for engine in [arguments.engine] if arguments.engine else list(ENGINES):
            await compare(engine, Path(name), seconds, runs)


if __name__ == "__main__":
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(main())
