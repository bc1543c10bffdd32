"""From JSON answers to the replies a node would have given. A message is named by its whole id, a number."""

from __future__ import annotations

import uuid
from base64 import b64decode
from typing import Any

import msgspec
from msgspec import UNSET, Raw, UnsetType

from hq.actors.watch import Event
from hq.backends.port import Examined, QueueRow
from hq.client.errors import ItemError, told
from hq.domain import replies
from hq.domain.messages import Attempt, Message, Options, State
from hq.domain.schedules import Missed, Planned, Schedule
from hq.domain.settings import Rate, RetryPolicy, Settings
from hq.domain.tasks import Scope, Task, TaskKind
from hq.errors import HQError
from hq.http import models as m
from hq.http import reports
from hq.http.wire import declares_json
from hq.system.schedules import spec_of

WHOLE = 100
_STATES = {"ready": State.WAITING, "delayed": State.WAITING}


class Item(msgspec.Struct):
    """What became of one message, or why nothing did."""

    id: str = ""
    duplicate: bool = False
    state: str = ""
    until: int | None = None
    error: ItemError | None = None


class Items(msgspec.Struct):
    """The same of many."""

    results: list[Item]


class Seen(m.Shown, kw_only=True):
    """A message; its payload is looked at when its content type is known."""

    payload: Raw | UnsetType = UNSET
    token: str = ""


class Seens(msgspec.Struct):
    """Several of them."""

    messages: list[Seen]


class Ticking(m.ScheduleShown, kw_only=True):
    """A schedule; the same of its payload."""

    payload: Raw | UnsetType = UNSET


def number_of(message_id: str) -> int:
    """All of an id, as a number."""
    return uuid.UUID(message_id).int


def id_text(number: int) -> str:
    """And back."""
    return str(uuid.UUID(int=number))


def accepted(body: bytes) -> replies.Accepted:
    """Of an enqueue."""
    return _accepted(msgspec.json.decode(body, type=Item))


def all_accepted(body: bytes) -> list[replies.Accepted | HQError]:
    """Of many."""
    return [told(one.error) if one.error else _accepted(one) for one in _items(body)]


def settled(body: bytes) -> replies.Settled:
    """Of whatever settles a message."""
    return _settled(msgspec.json.decode(body, type=Item))


def all_settled(body: bytes) -> list[replies.Settled | HQError]:
    """Of many."""
    return [told(one.error) if one.error else _settled(one) for one in _items(body)]


def deliveries(body: bytes) -> tuple[str, list[replies.Delivery]]:
    """Of a receive: from which queue, and what."""
    found = msgspec.json.decode(body, type=Seens).messages
    return (found[0].queue if found else ""), [_delivery(one) for one in found]


def seen(body: bytes) -> replies.Seen:
    """Of a look at one message."""
    return _seen(msgspec.json.decode(body, type=Seen))


def page(body: bytes) -> list[replies.Seen]:
    """Of a look at several."""
    return [_seen(one) for one in msgspec.json.decode(body, type=Seens).messages]


def explanation(body: bytes) -> replies.Explanation:
    """Why a message waits."""
    shown = msgspec.json.decode(body, type=m.Explanation)
    blockers = (
        replies.Blocker(
            one.code, one.until, None if one.message_id is None else number_of(one.message_id), one.reason
        )
        for one in shown.blockers
    )
    return replies.Explanation(shown.state, tuple(blockers))


def outcome(body: bytes) -> replies.Outcome:
    """What came of a message, or how far it is."""
    shown = msgspec.json.decode(body, type=m.Outcome)
    return replies.Outcome(
        number_of(shown.id), shown.state, shown.attempts, _json(shown.progress), _json(shown.result),
        shown.error,
    )  # fmt: skip


def stats(body: bytes) -> replies.Stats:
    """A queue in numbers."""
    return replies.Stats(**msgspec.structs.asdict(msgspec.json.decode(body, type=m.Stats)))


def queue_row(body: bytes) -> QueueRow:
    """A queue."""
    return _row(msgspec.json.decode(body, type=m.QueueShown))


def queue_rows(body: bytes) -> list[QueueRow]:
    """Several of them."""
    return [_row(one) for one in msgspec.json.decode(body, type=list[m.QueueShown])]


def planned(body: bytes) -> Planned:
    """A schedule."""
    return _planned(msgspec.json.decode(body, type=Ticking))


def all_planned(body: bytes) -> list[Planned]:
    """Several of them."""
    return [_planned(one) for one in msgspec.json.decode(body, type=list[Ticking])]


def started(body: bytes) -> replies.Started:
    """A task that now runs."""
    return replies.Started(msgspec.json.decode(body, type=m.TaskStarted).task)


def running(body: bytes) -> list[Task]:
    """The tasks that run. How far one has looked is known in percent."""
    return [
        Task(
            one.task, TaskKind(one.kind), Scope(one.scope), one.target, one.group, one.reason,
            None if one.rate is None else Rate(one.rate.limit, one.rate.per_ms, one.rate.burst),
            up_to=WHOLE, cursor=one.percent, done=one.done,
        )
        for one in msgspec.json.decode(body, type=list[m.TaskShown])
    ]  # fmt: skip


def cancelled(body: bytes) -> replies.Done:
    """How far a task was."""
    return replies.Done(msgspec.json.decode(body, type=m.TaskCancelled).done)


def purged(body: bytes) -> replies.Done:
    """How many were taken out."""
    return replies.Done(msgspec.json.decode(body, type=m.Purged).purged)


def done(_: bytes) -> replies.Done:
    """It was done, and there is nothing to tell."""
    return replies.Done()


def now(body: bytes) -> int:
    """What time the server has."""
    return msgspec.json.decode(body, type=m.Health).now


def durability(body: bytes) -> str:
    """What an answer of the server survives."""
    return msgspec.json.decode(body, type=m.Readiness).durability


def examined(body: bytes) -> Examined:
    """What storage is, and what of it cannot be read."""
    shown = msgspec.json.decode(body, type=reports.Examined)
    return Examined(shown.facts, shown.damage)


def event(text: str) -> Event:
    """Something that happened."""
    shown = msgspec.json.decode(text, type=m.Event)
    return Event(
        shown.cursor, shown.kind, shown.queue, shown.at, shown.message_id, shown.details, tuple(shown.hydra)
    )


def _items(body: bytes) -> list[Item]:
    return msgspec.json.decode(body, type=Items).results


def _accepted(item: Item) -> replies.Accepted:
    return replies.Accepted(number_of(item.id), item.duplicate)


def _settled(item: Item) -> replies.Settled:
    return replies.Settled(number_of(item.id), item.state, item.until)


def _row(shown: m.QueueShown) -> QueueRow:
    return QueueRow(shown.number, shown.name, msgspec.convert(shown.settings, Settings), None)


def _delivery(shown: Seen) -> replies.Delivery:
    return replies.Delivery(
        number_of(shown.id), bytes.fromhex(shown.token), _payload(shown), _options(shown), shown.enqueued_at,
        shown.receives, shown.attempts, shown.lease_expires_at or 0, shown.origin_id, _history(shown),
        _json(shown.progress),
    )  # fmt: skip


def _seen(shown: Seen) -> replies.Seen:
    state = shown.state or ""
    message = Message(
        number_of(shown.id), _options(shown), _payload(shown), 0, shown.enqueued_at,
        shown.available_at or 0, shown.expires_at, None, 0, shown.origin_id, 0,
        _STATES.get(state) or State(state),
        receives=shown.receives, attempts=shown.attempts, holder=shown.holder,
        lease_expires_at=shown.lease_expires_at or 0, history=_history(shown),
        failed_at=shown.failed_at or 0, reason=shown.reason, error=shown.error,
    )  # fmt: skip
    return replies.Seen(message, state)


def _planned(shown: Ticking) -> Planned:
    timing = {
        "dedup_ms": shown.dedup_ms,
        "delay_ms": shown.delay_ms,
        "ttl_ms": shown.ttl_ms,
        "max_attempts": shown.max_attempts,
        "lease_ms": shown.lease_ms,
        "retry": None if shown.retry is None else msgspec.convert(shown.retry, RetryPolicy),
    }
    schedule = Schedule(
        shown.name, spec_of(shown.every_ms, shown.cron, shown.timezone), _payload(shown),
        _options(shown, **timing), Missed(shown.missed), shown.catch_up, shown.grace_ms,
    )  # fmt: skip
    return Planned(schedule, shown.next_ticks[0], shown.last_at)


def _options(shown: Seen | Ticking, **others: Any) -> Options:
    return Options(
        content_type=shown.content_type,
        headers=() if shown.headers is UNSET else tuple(shown.headers.items()),
        priority=shown.priority,
        group=shown.group,
        concurrency_key=shown.concurrency_key,
        dedup_key=shown.dedup_key,
        result_ms=shown.result_ms,
        **others,
    )


def _payload(shown: Seen | Ticking) -> bytes:
    """The bytes of a payload: JSON comes as it is, text as a JSON string, all else in base64."""
    if isinstance(shown.payload_base64, str):
        return b64decode(shown.payload_base64)
    assert isinstance(shown.payload, Raw), "a message comes with its payload"
    if declares_json(shown.content_type):
        return bytes(shown.payload)
    return msgspec.json.decode(shown.payload, type=str).encode()


def _json(value: Raw | UnsetType) -> bytes | None:
    return bytes(value) if isinstance(value, Raw) else None


def _history(shown: Seen) -> tuple[Attempt, ...]:
    if shown.history is UNSET:
        return ()
    return tuple(Attempt(**msgspec.structs.asdict(one)) for one in shown.history)
