"""What a history tells of each message and each lease, and what of it is certain.

A checker may only speak of what must have happened. So a lease is given the *earliest* end it may have had:
an operation of unknown outcome, or one whose server stamp is not known, may have ended it at once.
"""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

from tests.checkers.final import Final
from tests.checkers.history import Asked, History, Operation, Told

SETTLEMENTS = ("complete", "fail", "retry", "release", "extend")
COMES_AGAIN = ("retry", "release", "fail")
GONE = ("complete", "delete", "purge")

Name = tuple[str, str]
_NOTHING = Asked()


class Lease(NamedTuple):
    """One delivery of a receive that was answered, and the settlements that may have been its own."""

    receive: Operation
    told: Told
    settlements: list[Operation]

    @property
    def name(self) -> Name:
        return self.receive.queue, self.told.id

    @property
    def at(self) -> int | None:
        return self.receive.at

    def before(self, other: "Lease") -> bool:
        """Whether this one was certainly granted first."""
        if self.at is not None and other.at is not None:
            return self.at < other.at
        return self.receive.returned_before(other.receive)

    def expires_at(self) -> int | None:
        """The earliest end its holder can have left it with, by extending it or not."""
        if self.at is None or self.told.lease_expires_at is None:
            return None
        extends = [one for one in self.settlements if one.verb == "extend"]
        ends = [(one.at, _extended_to(one)) for one in extends if one.ok]
        latest = max((at for at, _ in ends if at is not None), default=None)
        if not ends:
            certain = self.told.lease_expires_at
        elif any(at is None or end is None for at, end in ends):
            certain = min(end for end in (self.told.lease_expires_at, *(end or self.at for _, end in ends)))
        else:
            certain = min(end for at, end in ends if at == latest and end is not None)
        asked = [self.at + (one.asked.lease_ms or 0) for one in extends if one.unknown]
        return min([certain, *asked])

    def earliest_end(self, verbs: Iterable[str], seen_by: Operation | None = None) -> int | None:
        """The first instant at which it may have been over: its own end, or one of these verbs.

        Only what was asked before `seen_by` was answered can matter to that one. None: nothing is certain.
        """
        end = self.expires_at()
        if end is None or self.at is None:
            return None
        for one in self.settlements:
            late = seen_by is not None and seen_by.returned_at is not None
            if one.verb not in verbs or (late and one.invoked_at > seen_by.returned_at):
                continue
            stamp = one.at if one.ok and one.at is not None else self.at
            # A stamp before this lease belongs to an earlier one of the same message.
            end = min(end, stamp) if stamp >= self.at else end
        return end


@dataclass(slots=True)
class Message:
    """What is known of one message. `enqueue` is the operation that brought it, if that can be told."""

    queue: str
    id: str
    enqueue: Operation | None = None
    asked: Asked = _NOTHING
    sequence: int | None = None
    payload: str | None = None
    group: str | None = None
    concurrency_key: str | None = None
    priority: int | None = None
    dedup_key: str | None = None
    enqueued_at: int | None = None
    available_at: int | None = None
    expires_at: int | None = None
    origin_id: str | None = None
    schedule: str | None = None

    def learn(self, told: Told) -> None:
        """Keep what this answer adds; what was told first stays."""
        for name in _LEARNT:
            if getattr(self, name) is None:
                setattr(self, name, getattr(told, name))

    def learn_enqueue(self, enqueue: Operation) -> None:
        """The operation that brought it says the rest."""
        self.enqueue, self.asked = enqueue, enqueue.asked
        for name in ("payload", "group", "concurrency_key", "priority", "dedup_key"):
            if getattr(self, name) is None:
                setattr(self, name, getattr(enqueue.asked, name))
        if self.enqueued_at is None:
            self.enqueued_at = enqueue.at


_LEARNT = (
    "sequence", "payload", "group", "concurrency_key", "priority", "dedup_key", "enqueued_at", "expires_at",
    "origin_id", "schedule",
)  # fmt: skip


@lru_cache(maxsize=4)
def leases_of(history: History) -> dict[Name, list[Lease]]:
    """The leases of every message, in the order they seem to have been granted."""
    settlements = of_message(history, *SETTLEMENTS, "delete")
    removals = of_queue(history, "delete", "purge")
    leases: dict[Name, list[Lease]] = defaultdict(list)
    for receive in history.of("receive"):
        for told in receive.told:
            own = [
                one for one in settlements[receive.queue, told.id] if one.asked.token in (told.token, None)
            ]
            own += [one for one in removals[receive.queue] if _may_remove(one, receive, told)]
            leases[receive.queue, told.id].append(Lease(receive, told, own))
    for found in leases.values():
        stamped = all(lease.at is not None for lease in found)
        found.sort(key=_by_stamp if stamped else _by_invocation)
    return dict(leases)


@lru_cache(maxsize=4)
def messages_of(history: History, final: Final) -> dict[Name, Message]:
    """Every message of which an answer told the id."""
    messages: dict[Name, Message] = {}
    unknown: dict[tuple[str, str | None], list[Operation]] = defaultdict(list)
    for enqueue in history.of("enqueue"):
        if enqueue.unknown:
            unknown[enqueue.queue, enqueue.asked.payload].append(enqueue)
        for told in enqueue.told:
            message = messages.setdefault((enqueue.queue, told.id), Message(enqueue.queue, told.id))
            if not told.duplicate:
                message.learn(told)
                message.available_at = told.available_at
                message.learn_enqueue(enqueue)
    for name, leases in leases_of(history).items():
        message = messages.setdefault(name, Message(*name))
        for lease in leases:
            message.learn(lease.told)
            if message.available_at is None and lease.told.receives == 1:
                message.available_at = lease.told.available_at
    for message in messages.values():
        brought = unknown[message.queue, message.payload]
        if message.enqueue is None and message.payload is not None and len(brought) == 1:
            message.learn_enqueue(brought[0])
        _work_out_times(message, final)
    return messages


def of_message(history: History, *verbs: str) -> defaultdict[Name, list[Operation]]:
    """What was asked of each message by these verbs and happened, or may have."""
    found: defaultdict[Name, list[Operation]] = defaultdict(list)
    for one in history.of(*verbs):
        if one.asked.message is not None:
            found[one.queue, one.asked.message].append(one)
    return found


def of_queue(history: History, *verbs: str) -> defaultdict[str, list[Operation]]:
    """What these verbs asked of each queue without naming a message, and happened, or may have."""
    found: defaultdict[str, list[Operation]] = defaultdict(list)
    for one in history.of(*verbs):
        if one.asked.message is None:
            found[one.queue].append(one)
    return found


def may_be_requeued(history: History) -> tuple[set[Name], set[str]]:
    """The messages that may have been requeued by name, and the queues of which any may have been."""
    return set(of_message(history, "requeue")), set(of_queue(history, "requeue"))


def _work_out_times(message: Message, final: Final) -> None:
    """When it became available and when it expires follow from its enqueue, where nobody told them."""
    if message.enqueue is None or message.enqueued_at is None:
        return
    settings, asked = final.of(message.queue).settings, message.asked
    if message.available_at is None:
        message.available_at = message.enqueued_at + _given(asked.delay_ms, settings.delay_ms)
    ttl_ms = settings.ttl_ms if asked.ttl_ms is None else asked.ttl_ms
    if message.expires_at is None and ttl_ms is not None:
        message.expires_at = message.enqueued_at + ttl_ms


def _extended_to(extend: Operation) -> int | None:
    if extend.told and extend.told[0].lease_expires_at is not None:
        return extend.told[0].lease_expires_at
    if extend.at is None or extend.asked.lease_ms is None:
        return None
    return extend.at + extend.asked.lease_ms


def _may_remove(one: Operation, receive: Operation, told: Told) -> bool:
    """Whether a purge, or a delete by dedup key, may have taken away what this receive handed out."""
    return not one.returned_before(receive) and (one.verb == "purge" or one.asked.dedup_key == told.dedup_key)


def _by_stamp(lease: Lease) -> tuple[int, int]:
    return lease.at or 0, lease.told.receives or 0


def _by_invocation(lease: Lease) -> int:
    return lease.receive.invoked_at


def _given(value: int | None, default: int) -> int:
    return default if value is None else value
