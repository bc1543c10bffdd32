"""From commands to requests, and what may be done when no answer comes.

A request is sent again only where twice is the same as once. An enqueue is, if its message has a dedup key
that holds longer than anybody tries; one without a key is given one. Whatever a holder says of its lease is,
for it proves it with a token that no other lease has. After a try of which nobody knows what became, only
some refusals are true of the first try too; all others mean that the outcome is unknown.
"""

from __future__ import annotations

import enum
import uuid
from base64 import b64encode
from collections.abc import Callable, Mapping
from dataclasses import fields, replace
from typing import Any, NamedTuple
from urllib.parse import quote

import msgspec
from msgspec import Raw

from hq.client import answers
from hq.domain import commands as c
from hq.domain.commands import Command
from hq.domain.messages import Options
from hq.domain.request_keys import request_key
from hq.domain.settings import MINUTE_MS, Settings, in_range
from hq.domain.tasks import Scope
from hq.errors import (
    HQError,
    InvalidInput,
    LeaseExpired,
    LeaseNotHeld,
    PayloadTooLarge,
    QueueFull,
    RateLimited,
)
from hq.http.wire import declares_json
from hq.system.lease import LOST
from hq.system.schedules import parts_of

DEDUP_MS = 10 * MINUTE_MS
"""How long a key holds that a client gives."""
SAFE_DEDUP_MS = 2 * MINUTE_MS
"""How long a key must hold for its message to be sent again: longer than anybody tries."""
MOST_BYTES = 2 << 20
"""Of one request for many messages, unless one alone is larger."""

encode = msgspec.json.Encoder().encode
HELD = {
    c.Complete: "ack", c.Retry: "nack", c.Fail: "fail", c.Release: "release", c.Extend: "extend",
    c.Delete: "delete", c.Requeue: "requeue", c.Progress: "progress",
}  # fmt: skip


class Repeat(enum.Enum):
    """What a request may be: a look, the same however often, or for once only."""

    LOOK = "look"
    SAME = "same"
    ONCE = "once"


class Ask(NamedTuple):
    """A request, how its answer is read, and what holds if it is sent again."""

    method: str
    path: str
    read: Callable[[bytes], Any] = answers.done
    body: bytes = b""
    query: Mapping[str, Any] = {}
    repeat: Repeat = Repeat.LOOK
    certain: tuple[type[HQError], ...] = (InvalidInput,)
    """Refusals that are true of every try, though one of them had no answer."""


def ask(queue: str, command: Command) -> Ask:
    """One command as a request."""
    if isinstance(command, c.Enqueue):
        return _enqueue(queue, [command], many=False)
    if type(command) in HELD:
        return _held(queue, [command], many=False)
    return _look(f"/queues/{queue}", command) or _operate(f"/queues/{queue}", command)


def ask_many(queue: str, commands: list[Command]) -> list[tuple[Ask, int]]:
    """Many commands of one kind as requests, each for so many of them and none too large."""
    build = _enqueue if isinstance(commands[0], c.Enqueue) else _held
    return [(build(queue, part, many=True), len(part)) for part in _parts(commands)]


def poll(path: str, command: c.Receive, wait_ms: int, prefix: str | None = None) -> Ask:
    """A receive; it is told how long to wait even if that is not at all, for then it is watched."""
    query = {
        "batch": command.limit, "lease_ms": command.lease_ms, "holder": command.holder, "wait_ms": wait_ms,
        "prefix": prefix,
    }  # fmt: skip
    return Ask("POST", path, answers.deliveries, query=query, repeat=Repeat.ONCE)


def outcome(queue: str, message: int, wait_ms: int) -> Ask:
    """What came of a message, waited for."""
    path = f"/queues/{queue}/messages/{answers.id_text(message)}/outcome"
    return Ask("GET", path, answers.outcome, query={"wait_ms": wait_ms})


def create(name: str, settings: Settings) -> Ask:
    """A queue to be made; one of these settings is found."""
    body = {"name": name, **msgspec.to_builtins(settings)}
    return Ask("POST", "/queues", answers.queue_row, encode(body), repeat=Repeat.SAME)


def configure(name: str, changes: Mapping[str, Any]) -> Ask:
    """Settings to be changed."""
    return Ask("PUT", f"/queues/{name}", body=encode(msgspec.to_builtins(changes)), repeat=Repeat.SAME)


def _parts(commands: list[Command]) -> list[list[Command]]:
    parts: list[list[Command]] = [[]]
    size = 0
    for command in commands:
        weight = len(command.payload) if isinstance(command, c.Enqueue) else 0
        if parts[-1] and size + weight > MOST_BYTES:
            parts.append([])
            size = 0
        parts[-1].append(command)
        size += weight
    return parts


def _enqueue(queue: str, commands: list[Any], *, many: bool) -> Ask:
    keyed = [command if command.options.dedup_key is not None else _with_key(command) for command in commands]
    ours = [given is not kept for given, kept in zip(commands, keyed, strict=True)]

    def read(body: bytes) -> Any:
        if many:
            return [_first(*one) for one in zip(answers.all_accepted(body), ours, strict=True)]
        return _first(answers.accepted(body), ours[0])

    safe = all((command.options.dedup_ms or 0) >= SAFE_DEDUP_MS for command in keyed)
    items = [_message(command) for command in keyed]
    return Ask(
        "POST", f"/queues/{queue}/messages", read, encode(items if many else items[0]),
        repeat=Repeat.SAME if safe else Repeat.ONCE,
        certain=(InvalidInput, PayloadTooLarge, QueueFull, RateLimited),
    )  # fmt: skip


def _with_key(command: c.Enqueue) -> c.Enqueue:
    options = replace(command.options, dedup_key=request_key(uuid.uuid4().hex), dedup_ms=DEDUP_MS)
    return c.Enqueue(command.payload, options)


def _first(accepted: Any, ours: bool) -> Any:  # noqa: FBT001 - one of a list
    """A duplicate by a key that we made up is our own first try."""
    if ours and not isinstance(accepted, HQError):
        accepted.duplicate = False
    return accepted


def _message(command: c.Enqueue) -> dict[str, Any]:
    return _options(command.options) | _payload(command.payload, command.options.content_type)


def _options(options: Options) -> dict[str, Any]:
    said = {one.name: getattr(options, one.name) for one in fields(options)}
    said["headers"] = dict(options.headers) or None
    return {name: msgspec.to_builtins(value) for name, value in said.items() if value is not None}


def _payload(payload: bytes, content_type: str) -> dict[str, Any]:
    if declares_json(content_type):
        return {"payload": Raw(payload)}
    return {"payload_base64": b64encode(payload).decode()}


def _held(queue: str, commands: list[Any], *, many: bool) -> Ask:
    first = commands[0]
    items = [_item(command) for command in commands]
    safe = all(getattr(command, "token", None) is not None for command in commands) or isinstance(
        first, c.Delete
    )
    certain: tuple[type[HQError], ...] = (InvalidInput,)
    if isinstance(first, c.Complete):
        # A completed message is gone; as long as it has a lease or had another, it was not completed.
        certain = (InvalidInput, LeaseNotHeld, LeaseExpired)
    elif isinstance(first, c.Extend) and first.lease_ms != 0:
        certain = (InvalidInput, *LOST)
    return Ask(
        "POST", f"/queues/{queue}/{HELD[type(first)]}", answers.all_settled if many else answers.settled,
        encode(items if many else items[0]), repeat=Repeat.SAME if safe else Repeat.ONCE, certain=certain,
    )  # fmt: skip


def _item(command: Any) -> dict[str, Any]:
    said = {one.name: getattr(command, one.name) for one in fields(command)}
    said["id"] = answers.id_text(said.pop("message"))
    if "token" in said:
        token = said.pop("token")
        said |= {"by_id": True} if token is None else {"token": token.hex()}
    for name in ("result", "progress"):
        if said.get(name) is not None:
            said[name] = Raw(said[name])
    return {name: value for name, value in said.items() if value is not None}


def _look(path: str, command: Command) -> Ask | None:
    match command:
        case c.Count():
            return Ask("GET", f"{path}/stats", answers.stats)
        case c.Peek(limit):
            return Ask("GET", f"{path}/peek", answers.page, query={"limit": limit})
        case c.Get(message):
            return Ask("GET", f"{path}/messages/{answers.id_text(message)}", answers.seen)
        case c.Explain(message):
            return Ask("GET", f"{path}/messages/{answers.id_text(message)}/explain", answers.explanation)
        case c.Browse(scope, after, limit):
            query = {"after": answers.id_text(after) if after else None, "limit": limit}
            of = "messages" if scope is Scope.LIVE else "dlq"
            return Ask("GET", f"{path}/{of}", answers.page, query=query)
        case c.ListTasks():
            return Ask("GET", f"{path}/tasks", answers.running)
        case c.ListSchedules():
            return Ask("GET", f"{path}/schedules", answers.all_planned)
        case _:
            return None


def _operate(path: str, command: Command) -> Ask:
    once, same = Repeat.ONCE, Repeat.SAME
    match command:
        case c.DeleteByKey(dedup_key, group):
            key = {"dedup_key": dedup_key, "group": group}
            return Ask("DELETE", f"{path}/by-key", answers.settled, query=key, repeat=once)
        case c.Replace(dedup_key, payload, group):
            key = {"dedup_key": dedup_key, "group": group}
            return Ask("PUT", f"{path}/by-key", answers.settled, payload, key, once)
        case c.Purge(scope):
            if scope is Scope.LIVE:
                return Ask("POST", f"{path}/purge", answers.purged, repeat=once)
            return Ask("DELETE", f"{path}/dlq", answers.purged, repeat=once)
        case c.Pause(reason):
            return Ask("POST", f"{path}/pause", query={"reason": reason}, repeat=same)
        case c.Resume():
            return Ask("POST", f"{path}/resume", repeat=same)
        case c.PauseGroup(group, reason):
            return Ask("POST", f"{path}/pause", query={"reason": reason, "group": group}, repeat=same)
        case c.ResumeGroup(group):
            return Ask("POST", f"{path}/resume", query={"group": group}, repeat=same)
        case c.StartTask():
            said = {name: value for name, value in msgspec.to_builtins(command).items() if value is not None}
            return Ask("POST", f"{path}/tasks", answers.started, encode(said), repeat=once)
        case c.CancelTask(number):
            in_range("task", number, 1, 1 << 50)
            return Ask("DELETE", f"{path}/tasks/{number}", answers.cancelled, repeat=same)
        case c.SetSchedule(schedule):
            options = _message(c.Enqueue(schedule.payload, schedule.options))
            repeated = {"missed": schedule.missed.value, "catch_up": schedule.catch_up}
            body = options | repeated | {"grace_ms": schedule.grace_ms} | parts_of(schedule.spec)
            place = f"{path}/schedules/{_segment(schedule.name)}"
            return Ask("PUT", place, answers.planned, encode(body), repeat=same)
        case c.RemoveSchedule(name):
            return Ask("DELETE", f"{path}/schedules/{_segment(name)}", repeat=once)
        case _:
            raise TypeError(f"{type(command).__name__} is no command of a handle")


def _segment(name: str) -> str:
    if "/" in name or name in {"", ".", ".."}:
        raise InvalidInput(f"a server cannot be asked for a schedule of the name {name!r}")
    return quote(name, safe="")
