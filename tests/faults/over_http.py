"""hq over HTTP, as far as clients.py and child.py use it, so that the same clients work with a server."""

import asyncio
import json
import re
from base64 import b64decode
from enum import Enum
from typing import Any
from urllib.parse import urlencode, urlsplit

import hq

LENGTH = re.compile(rb"^content-length: *(\d+)\r$", re.IGNORECASE | re.MULTILINE)
ROUTES = {"complete": "ack", "retry": "nack"}


class ServerGone(Exception):
    """The connection broke before the answer came: what was asked may have happened."""


class HttpSystem:
    """A server, by one connection: whoever uses it asks one thing after another."""

    def __init__(self, address: str) -> None:
        where = urlsplit(address)
        self._place = where.hostname, where.port
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    def queue(self, name: str) -> "HttpQueue":
        return HttpQueue(self, name)

    async def create_queue(self, name: str, **settings) -> None:
        plain = {key: value.value if isinstance(value, Enum) else value for key, value in settings.items()}
        await self.ask("POST", "/queues", json.dumps({"name": name, **plain}).encode())

    async def ask(self, method: str, target: str, body: bytes = b"", kind: str = "application/json") -> Any:
        """The JSON of an answer; a refusal is raised as the library would raise it."""
        status, answer = await self._exchange(
            f"{method} {target} HTTP/1.1\r\nHost: hq\r\nContent-Type: {kind}\r\n"
            f"Content-Length: {len(body)}\r\n\r\n".encode()
            + body
        )
        told = json.loads(answer)
        if status < 400:
            return told
        assert status != 500, answer
        error = hq.CallerError(told["detail"]) if status < 500 else hq.HQError(told["detail"])
        error.code = told["code"]
        raise error

    async def _exchange(self, request: bytes) -> tuple[int, bytes]:
        try:
            if self._streams is None:
                self._streams = await asyncio.open_connection(*self._place)
            reader, writer = self._streams
            writer.write(request)
            head = await reader.readuntil(b"\r\n\r\n")
            return int(head.split(b" ", 2)[1]), await reader.readexactly(int(LENGTH.search(head)[1]))
        except (OSError, asyncio.IncompleteReadError) as error:
            raise ServerGone from error


class HttpQueue:
    """The verbs of a queue."""

    def __init__(self, system: HttpSystem, name: str) -> None:
        self.system = system
        self.path = f"/queues/{name}"

    async def enqueue(self, payload: bytes, **said) -> "Told":
        query = urlencode({key: value for key, value in said.items() if value is not None})
        target = f"{self.path}/enqueue?{query}"
        return Told(await self.system.ask("POST", target, payload, "application/octet-stream"))

    async def receive(self, limit: int, **said) -> list["HttpMessage"]:
        told = await self.system.ask("POST", f"{self.path}/poll?{urlencode({'batch': limit, **said})}")
        return [HttpMessage(self, one) for one in told["messages"]]


class Told:
    """An object of JSON, its fields as attributes; what is not said is None."""

    def __init__(self, fields: dict[str, Any]) -> None:
        self.fields = fields

    def __getattr__(self, name: str) -> Any:
        return self.fields.get(name)


class HttpMessage(Told):
    """A message that was received, and the verbs that settle it."""

    def __init__(self, queue: HttpQueue, fields: dict[str, Any]) -> None:
        super().__init__(fields)
        self.queue = queue
        self.token = bytes.fromhex(fields["token"])
        self.body = b64decode(fields["payload_base64"])

    async def complete(self) -> Told:
        return await self._settle("complete")

    async def fail(self) -> Told:
        return await self._settle("fail")

    async def release(self) -> Told:
        return await self._settle("release")

    async def retry(self, *, delay_ms: int) -> Told:
        return await self._settle("retry", delay_ms=delay_ms)

    async def extend(self, lease_ms: int) -> Told:
        return await self._settle("extend", lease_ms=lease_ms)

    async def _settle(self, verb: str, **said) -> Told:
        held = {"id": self.id, "token": self.fields["token"], **said}
        target = f"{self.queue.path}/{ROUTES.get(verb, verb)}"
        return Told(await self.queue.system.ask("POST", target, json.dumps(held).encode()))
