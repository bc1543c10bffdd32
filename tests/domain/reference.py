"""A queue as a list and a loop: the rule table of the design, written down as plainly as it can be.

It is slow on purpose and shares no rule with hq.domain: the model tests ask both the same and compare the
answers. A message is named by its ordinal (the n-th accepted enqueue), and in place of a token a command
carries the `receives` of the lease its token came from, None for by id alone, or -1 for a foreign token.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction
from math import inf
from typing import Any

from hq.domain import commands
from hq.domain.commands import Command
from hq.domain.messages import Options
from hq.domain.settings import DedupScope, Groups, Rate, Settings
from hq.domain.tasks import Scope
from hq.errors import (
    CallerError,
    InvalidInput,
    LeaseExpired,
    LeaseNotHeld,
    MessageNotFailed,
    MessageNotFound,
    MessageNotWaiting,
    PayloadTooLarge,
    QueueFull,
    RateLimited,
    SettingFixed,
)

Outcome = tuple[Any, ...]

WAITING, LEASED, FAILED = "waiting", "leased", "failed"
COMPLETED, EXPIRED, DELETED, PURGED = "completed", "expired", "deleted", "purged"
LIVE = (WAITING, LEASED)


@dataclass(eq=False)
class Message:
    """One message; `group` is set only if it was enqueued to be ordered in it."""

    ordinal: int
    options: Options
    payload: bytes
    enqueued_at: int
    available_at: int
    expires_at: int | None
    dedup_until: int
    group: str | None
    place: int
    state: str = WAITING
    holds_key: bool = True
    receives: int = 0
    attempts: int = 0
    spent_receives: int = 0
    """What was received before the message was last requeued: no token of those is good."""
    lease_expires_at: int = 0
    kept_until: int = 0
    progress: bytes | None = None
    result: bytes | None = None


@dataclass
class Bucket:
    """What is left of a rate, in exact fractions; it starts full."""

    rate: Rate
    at: int
    tokens: Fraction = field(init=False)

    def __post_init__(self) -> None:
        self.tokens = Fraction(self.rate.burst)

    def whole_tokens(self, now: int) -> int:
        gained = Fraction((now - self.at) * self.rate.limit, self.rate.per_ms)
        self.tokens, self.at = min(self.tokens + gained, Fraction(self.rate.burst)), now
        return int(self.tokens)

    def spend(self, count: int) -> None:
        assert count <= self.tokens
        self.tokens -= count


class Reference:
    """The naive queue; `ask` is its only verb and it answers in plain tuples."""

    def __init__(self, settings: Settings) -> None:
        self.now = 0
        self.settings = settings
        self.messages: list[Message] = []
        self.paused = False
        self.paused_groups: set[str] = set()
        self.enqueue_bucket = bucket(settings.enqueue_rate, 0)
        self.receive_bucket = bucket(settings.receive_rate, 0)
        self.retry_available_at: int | None = None
        """Where the real queue's jitter put the retry that is asked next, if that is known."""

    def ask(self, command: Command, now: int) -> Outcome:
        """Let time pass up to now, then do as the command says or refuse it."""
        self.now = max(self.now, now)
        self.let_time_pass()
        verbs: dict[type, Callable[[Any], Outcome]] = {
            commands.Enqueue: self.enqueue,
            commands.Receive: self.receive,
            commands.Complete: self.complete,
            commands.Fail: self.fail,
            commands.Retry: self.retry,
            commands.Release: self.release,
            commands.Extend: self.extend,
            commands.Delete: self.delete,
            commands.DeleteByKey: self.delete_by_key,
            commands.Replace: self.replace,
            commands.Requeue: self.requeue,
            commands.Purge: self.purge,
            commands.Pause: self.pause,
            commands.Resume: self.resume,
            commands.PauseGroup: self.pause_group,
            commands.ResumeGroup: self.resume_group,
            commands.Configure: self.configure,
            commands.Wake: self.wake,
            commands.Peek: self.peek,
            commands.Count: self.count,
            commands.Progress: self.progress,
            commands.Outcome: self.outcome,
        }
        try:
            return verbs[type(command)](command)
        except CallerError as refusal:
            return ("refused", refusal.code)
        finally:
            self.retry_available_at = None

    # What time does.

    def let_time_pass(self) -> None:
        """End the leases that are over, then expire waiting messages, then drop old dead letters."""
        over = [m for m in self.within(LEASED) if m.lease_expires_at <= self.now]
        for message in sorted(over, key=lambda m: (m.lease_expires_at, m.ordinal)):
            if self.out_of_attempts(message):
                self.become_failed(message)
            else:
                message.state = WAITING
        for message in self.within(WAITING):
            if message.expires_at is not None and message.expires_at <= self.now:
                message.state = EXPIRED
        for message in self.within(FAILED):
            if message.kept_until <= self.now:
                message.state = DELETED

    # Enqueue and receive.

    def enqueue(self, command: commands.Enqueue) -> Outcome:
        options, settings = command.options, self.settings
        self.check_payload(command.payload)
        if options.dedup_key is not None:
            first = self.key_holder(options.dedup_key, options.group)
            if first is not None:
                return ("accepted", first.ordinal, True)
        if settings.capacity is not None and len(self.within(*LIVE)) >= settings.capacity:
            raise QueueFull
        if self.enqueue_bucket is not None:
            if self.enqueue_bucket.whole_tokens(self.now) < 1:
                raise RateLimited(self.now)
            self.enqueue_bucket.spend(1)
        ordinal = len(self.messages) + 1
        available_at = self.now + given(options.delay_ms, settings.delay_ms)
        message = Message(
            ordinal=ordinal,
            options=options,
            payload=command.payload,
            enqueued_at=self.now,
            available_at=available_at,
            expires_at=self.expiry(options),
            dedup_until=self.now + given(options.dedup_ms, settings.dedup_ms),
            group=self.ordered_group(options),
            place=ordinal if self.fifo else available_at,
        )
        self.messages.append(message)
        return ("accepted", ordinal, False)

    def receive(self, command: commands.Receive) -> Outcome:
        limit = command.limit
        if self.settings.concurrency is not None:
            limit = min(limit, self.settings.concurrency - len(self.within(LEASED)))
        if self.receive_bucket is not None:
            limit = min(limit, self.receive_bucket.whole_tokens(self.now))
        if self.paused or limit <= 0:
            return ("received", [])
        taken, worn_out = self.next_in_order(limit)
        for message in worn_out:
            self.become_failed(message)
        for message in taken:
            message.state = LEASED
            message.receives += 1
            message.attempts += 1
            message.lease_expires_at = self.lease_end(message, command.lease_ms)
        if self.receive_bucket is not None:
            self.receive_bucket.spend(len(taken))
        return (
            "received",
            [(m.ordinal, m.receives, m.attempts, m.lease_expires_at, m.payload) for m in taken],
        )

    def peek(self, command: commands.Peek) -> Outcome:
        taken, _ = self.next_in_order(command.limit)
        return ("peeked", [m.ordinal for m in taken])

    def next_in_order(self, limit: int) -> tuple[list[Message], list[Message]]:
        """What one receive takes, and the messages without attempts left that it meets on the way."""
        taken: list[Message] = []
        worn_out: list[Message] = []
        while len(taken) < limit:
            passed = taken + worn_out
            candidates = [
                m
                for m in self.within(WAITING)
                if m not in passed
                and self.ready(m)
                and self.key_is_free(m, taken)
                and self.is_head(m, passed)
            ]
            if not candidates:
                break
            first = min(candidates, key=delivery_order)
            (worn_out if self.out_of_attempts(first) else taken).append(first)
        return taken, worn_out

    def key_is_free(self, message: Message, taken: list[Message]) -> bool:
        """Whether the message's concurrency key has a slot left beside the leases there are."""
        key, limit = message.options.concurrency_key, self.settings.concurrency_per_key
        if key is None or limit is None:
            return True
        return sum(m.options.concurrency_key == key for m in self.within(LEASED) + taken) < limit

    def is_head(self, message: Message, passed: list[Message]) -> bool:
        """Whether neither a pause, a lease nor a message ahead of it in its group holds it back."""
        if message.group is None:
            return True
        others = [m for m in self.within(*LIVE) if m.group == message.group and m not in passed]
        return message.group not in self.paused_groups and not any(
            m.state == LEASED or (group_order(m) < group_order(message) and self.blocks(m)) for m in others
        )

    def blocks(self, message: Message) -> bool:
        """Whether a waiting message holds back those behind it: all but the delayed, never received one."""
        return self.fifo or self.ready(message) or message.receives > 0

    # Settling: the token, then the verb.

    def complete(self, command: commands.Complete) -> Outcome:
        message = self.worked_on(command)
        message.state = COMPLETED
        if message.options.result_ms is not None:
            message.result = command.result or b"null"
            message.kept_until = self.now + message.options.result_ms
        return self.settled(message)

    def fail(self, command: commands.Fail) -> Outcome:
        message = self.worked_on(command)
        self.become_failed(message)
        return self.settled(message)

    def retry(self, command: commands.Retry) -> Outcome:
        message = self.running_lease(command)
        if self.out_of_attempts(message):
            self.become_failed(message)
        else:
            message.state = WAITING
            message.available_at = self.retry_at(message, command.delay_ms)
        return self.settled(message)

    def release(self, command: commands.Release) -> Outcome:
        message = self.running_lease(command)
        message.state = WAITING
        message.attempts -= 1
        return self.settled(message)

    def extend(self, command: commands.Extend) -> Outcome:
        message = self.running_lease(command)
        message.lease_expires_at = self.lease_end(message, command.lease_ms)
        return self.settled(message)

    def progress(self, command: commands.Progress) -> Outcome:
        message = self.running_lease(command)
        message.progress = command.progress
        return self.settled(message)

    def outcome(self, command: commands.Outcome) -> Outcome:
        for message in self.messages:
            kept = message.state == COMPLETED and message.result is not None and self.now < message.kept_until
            if message.ordinal == command.message and (kept or message.state in (*LIVE, FAILED)):
                _, ordinal, state = self.settled(message)
                return ("outcome", ordinal, state, message.attempts, message.progress, message.result)
        raise MessageNotFound

    def worked_on(self, command: commands.Complete | commands.Fail) -> Message:
        """The message of the latest token; the lease may have ended, but not in a fifo queue."""
        message = self.latest_lease(command)
        if message.state == WAITING and self.fifo:
            raise LeaseExpired
        return message

    def running_lease(self, command: Any) -> Message:
        """The message of the latest token, whose lease must still run."""
        message = self.latest_lease(command)
        if message.state == WAITING:
            raise LeaseExpired
        return message

    def latest_lease(self, command: Any) -> Message:
        """The message of the latest token, or by id while it is leased; never a failed one."""
        message = self.unsettled(command.message)
        if command.token is None and message.state != LEASED:
            raise LeaseNotHeld
        if command.token is not None and command.token != message.receives:
            raise LeaseNotHeld
        if command.token is not None and command.token <= message.spent_receives:
            raise LeaseNotHeld
        if message.state == FAILED:
            raise LeaseExpired
        return message

    def retry_at(self, message: Message, delay_ms: int | None) -> int:
        """An explicit delay is exact; a policy's may be moved by its jitter, which the driver tells.

        A message that expires before it would be available may come up, to be ended, when it expires.
        """
        told = self.retry_available_at
        if told is not None and told == message.expires_at:
            return told
        if delay_ms is not None:
            return self.now + delay_ms
        policy = message.options.retry or self.settings.retry
        delay_ms = policy.delay_ms(message.attempts)
        if told is None:
            return self.now + delay_ms
        assert abs(told - self.now - delay_ms) <= policy.jitter_ms(delay_ms), (told, self.now, delay_ms)
        return told

    # One message by id or by key.

    def delete(self, command: commands.Delete) -> Outcome:
        message = self.unsettled(command.message)
        message.state = DELETED
        return self.settled(message)

    def delete_by_key(self, command: commands.DeleteByKey) -> Outcome:
        message = self.key_holder(command.dedup_key, command.group)
        if message is None or message.state not in (*LIVE, FAILED):
            raise MessageNotFound
        message.state = DELETED
        return self.settled(message)

    def replace(self, command: commands.Replace) -> Outcome:
        self.check_payload(command.payload)
        message = self.key_holder(command.dedup_key, command.group)
        if message is None or message.state not in LIVE:
            raise MessageNotFound
        if message.state == LEASED:
            raise MessageNotWaiting
        message.payload = command.payload
        return self.settled(message)

    def requeue(self, command: commands.Requeue) -> Outcome:
        message = self.unsettled(command.message)
        if message.state != FAILED:
            raise MessageNotFailed
        key = message.options.dedup_key
        message.holds_key = key is None or self.key_holder(key, message.options.group) in (None, message)
        message.state = WAITING
        message.attempts = 0
        message.spent_receives = message.receives
        message.available_at = self.now
        message.expires_at = self.expiry(message.options)
        if not self.fifo:
            message.place = self.now
        return self.settled(message)

    # The whole queue.

    def purge(self, command: commands.Purge) -> Outcome:
        purged = self.within(*LIVE) if command.scope is Scope.LIVE else self.within(FAILED)
        for message in purged:
            message.state = PURGED
        if command.scope is Scope.LIVE:
            for message in self.messages:
                message.holds_key = False
        return ("done", len(purged))

    def pause(self, _: commands.Pause) -> Outcome:
        self.paused = True
        return ("done",)

    def resume(self, _: commands.Resume) -> Outcome:
        self.paused = False
        return ("done",)

    def pause_group(self, command: commands.PauseGroup) -> Outcome:
        if self.settings.groups is Groups.LABEL:
            raise InvalidInput
        self.paused_groups.add(command.group)
        return ("done",)

    def resume_group(self, command: commands.ResumeGroup) -> Outcome:
        self.paused_groups.discard(command.group)
        return ("done",)

    def configure(self, command: commands.Configure) -> Outcome:
        old, new = self.settings, command.settings
        if (old.groups is Groups.FIFO) != (new.groups is Groups.FIFO) or old.dedup_scope != new.dedup_scope:
            raise SettingFixed
        if old.enqueue_rate != new.enqueue_rate:
            self.enqueue_bucket = bucket(new.enqueue_rate, self.now)
        if old.receive_rate != new.receive_rate:
            self.receive_bucket = bucket(new.receive_rate, self.now)
        self.settings = new
        return ("done",)

    def wake(self, _: commands.Wake) -> Outcome:
        return ("done",)

    def count(self, _: commands.Count) -> Outcome:
        stats = {
            state: len(self.within(state)) for state in (LEASED, FAILED, COMPLETED, EXPIRED, DELETED, PURGED)
        }
        stats["ready"] = sum(self.ready(m) for m in self.within(WAITING))
        stats["delayed"] = len(self.within(WAITING)) - stats["ready"]
        stats["enqueued"] = len(self.messages)
        return ("stats", stats)

    # The words the rules are told in.

    @property
    def fifo(self) -> bool:
        return self.settings.groups is Groups.FIFO

    def within(self, *states: str) -> list[Message]:
        """The messages in these states, in order of their enqueue."""
        return [m for m in self.messages if m.state in states]

    def unsettled(self, ordinal: int) -> Message:
        """The message of this ordinal, live or failed."""
        for message in self.within(*LIVE, FAILED):
            if message.ordinal == ordinal:
                return message
        raise MessageNotFound

    def ready(self, message: Message) -> bool:
        return message.available_at <= self.now

    def settled(self, message: Message) -> Outcome:
        """The answer that tells what became of a message."""
        waits_as = "ready" if self.ready(message) else "delayed"
        return ("settled", message.ordinal, waits_as if message.state == WAITING else message.state)

    def become_failed(self, message: Message) -> None:
        message.state = FAILED
        message.kept_until = self.now + self.settings.failed_ms

    def out_of_attempts(self, message: Message) -> bool:
        own = message.options.max_attempts
        return message.attempts >= (own or self.settings.max_attempts or inf)

    def lease_end(self, message: Message, lease_ms: int | None) -> int:
        """When a lease set now ends: as the caller says, else the message, else the queue."""
        return self.now + given(lease_ms, given(message.options.lease_ms, self.settings.lease_ms))

    def expiry(self, options: Options) -> int | None:
        ttl_ms = options.ttl_ms if options.ttl_ms is not None else self.settings.ttl_ms
        return None if ttl_ms is None else self.now + ttl_ms

    def check_payload(self, payload: bytes) -> None:
        if len(payload) > self.settings.max_payload_bytes:
            raise PayloadTooLarge

    def ordered_group(self, options: Options) -> str | None:
        """The group a new message is ordered in; one with a concurrency key is in none."""
        if options.concurrency_key is not None or self.settings.groups is Groups.LABEL:
            return None
        return options.group or "" if self.fifo else options.group

    def key_holder(self, key: str, group: str | None) -> Message | None:
        """The message that holds a dedup key: while it lives, and for the window after its enqueue."""
        holders = [
            m
            for m in self.messages
            if m.holds_key
            and m.options.dedup_key == key
            and (self.settings.dedup_scope is DedupScope.QUEUE or (m.options.group or "") == (group or ""))
            and (m.state in LIVE or self.now < m.dedup_until)
        ]
        assert len(holders) <= 1, "a key has one holder"
        return holders[0] if holders else None


def given(value: int | None, default: int) -> int:
    """What was said, else the default; 0 is something said."""
    return default if value is None else value


def bucket(rate: Rate | None, now: int) -> Bucket | None:
    """A full bucket for a rate, if there is one."""
    return None if rate is None else Bucket(rate, now)


def delivery_order(message: Message) -> tuple[float, int, int]:
    """Higher priority first, none last; then the time it became available, then the sequence."""
    priority = message.options.priority
    return (inf if priority is None else -priority, message.available_at, message.ordinal)


def group_order(message: Message) -> tuple[int, int]:
    """The first available_at and then the sequence; in a fifo queue the sequence alone."""
    return (message.place, message.ordinal)
