"""Dedup windows, delays, ends of life and ticks: I-9, I-10, I-11, I-12."""

from collections import defaultdict
from collections.abc import Iterator
from itertools import pairwise

from hq.domain.settings import DedupScope
from tests.checkers.final import Final, Violation
from tests.checkers.history import History, Operation
from tests.checkers.seen import Message, leases_of, may_be_requeued, messages_of, of_queue


def one_message_per_key(history: History, final: Final) -> list[Violation]:
    """I-9: while a message lives, and for its window, its key brings no second one; all are told its id."""
    messages = messages_of(history, final)
    by_key: dict[tuple[str, ...], list[Message]] = defaultdict(list)
    for message in messages.values():
        if message.dedup_key is not None and message.origin_id is None:
            by_key[_key(final, message.queue, message.dedup_key, message.group)].append(message)
    purges = of_queue(history, "purge")
    violations = []
    for (queue, *_), found in by_key.items():
        found.sort(key=lambda one: one.enqueued_at or 0)
        for first, second in pairwise(found):
            text = None if purges[queue] else _why_twice(first, second, history, final)
            if text:
                violations.append(Violation("I-9", queue, second.id, f"{text} {first.id} held its key"))
    return [*violations, *_wrong_ids(history, final)]


def _key(final: Final, queue: str, key: str, group: str | None) -> tuple[str, ...]:
    if final.of(queue).settings.dedup_scope is DedupScope.GROUP:
        return queue, key, group or ""
    return queue, key


def _why_twice(first: Message, second: Message, history: History, final: Final) -> str | None:
    """What makes it certain that the second came while the first held the key."""
    settings = final.of(first.queue).settings
    dedup_ms = settings.dedup_ms if first.asked.dedup_ms is None else first.asked.dedup_ms
    if first.enqueued_at is not None and second.enqueued_at is not None:
        if second.enqueued_at < first.enqueued_at + dedup_ms:
            return f"stored at {second.enqueued_at}, until {first.enqueued_at + dedup_ms}"
    elif first.enqueue is None or second.enqueue is None or not first.enqueue.returned_before(second.enqueue):
        return None
    requeued, any_requeued = may_be_requeued(history)
    if (first.queue, first.id) in requeued or first.queue in any_requeued:
        return None
    leases = leases_of(history).get((first.queue, first.id), [])
    alive = any(
        lease.at > second.enqueued_at
        if lease.at is not None and second.enqueued_at is not None
        else second.enqueue is not None and second.enqueue.returned_before(lease.receive)
        for lease in leases
    )
    left = first.id in final.of(first.queue).ids_left("ready", "delayed", "leased")
    return "stored while it lived:" if alive or left else None


def _wrong_ids(history: History, final: Final) -> Iterator[Violation]:
    """Duplicates that name a message which never had their key."""
    messages = messages_of(history, final)
    asked: dict[tuple[str, ...], list[Operation]] = defaultdict(list)
    for one in history.of("enqueue", "set_schedule"):
        if one.asked.dedup_key is not None:
            asked[_key(final, one.queue, one.asked.dedup_key, one.asked.group)].append(one)
    for enqueue in history.of("enqueue"):
        for told in enqueue.told:
            if not told.duplicate:
                continue
            message = messages[enqueue.queue, told.id]
            key = enqueue.asked.dedup_key
            others = asked[_key(final, enqueue.queue, key or "", enqueue.asked.group)]
            first = any(one.unknown or one.verb != "enqueue" or not one.told[0].duplicate for one in others)
            if key is None or not first:
                yield Violation(
                    "I-9", enqueue.queue, told.id, "named as first of a key that nobody used before"
                )
            elif message.enqueue is not None and message.dedup_key != key:
                text = f"named as first of key {key}, its own is {message.dedup_key}"
                yield Violation("I-9", enqueue.queue, told.id, text)


def nothing_comes_before_its_time(history: History, final: Final) -> list[Violation]:
    """I-10: a message is received at its available_at or later, also after a retry."""
    requeued, any_requeued = may_be_requeued(history)
    messages = messages_of(history, final)
    violations = []
    for name, leases in leases_of(history).items():
        if name in requeued or name[0] in any_requeued:
            continue
        message = messages[name]
        retries = {
            lease.told.receives: one.told[0].until
            for lease in leases
            for one in lease.settlements
            if one.verb == "retry" and one.ok and one.told and one.asked.token == lease.told.token
        }
        for lease in leases:
            times = [
                message.available_at,
                lease.told.available_at,
                retries.get((lease.told.receives or 0) - 1),
            ]
            due = max([one for one in times if one is not None], default=None)
            if lease.at is not None and due is not None and lease.at < due:
                violations.append(Violation("I-10", *name, f"received at {lease.at}, not due until {due}"))
    return violations


def nothing_comes_after_its_end(history: History, final: Final) -> list[Violation]:
    """I-11: a message is not received at its expires_at or later; a requeue gives it a new one."""
    requeued, any_requeued = may_be_requeued(history)
    messages = messages_of(history, final)
    violations = []
    for name, leases in leases_of(history).items():
        renewed = name in requeued or name[0] in any_requeued
        for lease in leases:
            end = lease.told.expires_at if renewed or lease.told.expires_at else messages[name].expires_at
            if lease.at is not None and end is not None and lease.at >= end:
                violations.append(Violation("I-11", *name, f"received at {lease.at}, expired at {end}"))
    return violations


def each_tick_yields_one_message(history: History, final: Final) -> list[Violation]:
    """I-12: the ticks that yielded a message are those that should have, and each yielded one."""
    found: dict[tuple[str, str], dict[int, set[str]]] = defaultdict(lambda: defaultdict(set))
    for receive in history.of("receive"):
        for told in receive.told:
            if told.schedule is not None and told.tick_at is not None:
                found[receive.queue, told.schedule][told.tick_at].add(told.id)
    for queue, last in final.queues.items():
        for tick in last.ticks:
            found[queue, tick.schedule][tick.tick_at].add(tick.id)
    violations = []
    for (queue, schedule), ticks in found.items():
        expected = final.of(queue).expected_ticks.get(schedule)
        for tick_at, ids in ticks.items():
            if len(ids) > 1:
                text = f"{schedule}'s tick at {tick_at} yielded {len(ids)} messages"
                violations.append(Violation("I-12", queue, max(ids), text))
            if expected is not None and tick_at not in expected:
                text = f"{schedule} has no tick at {tick_at}"
                violations.append(Violation("I-12", queue, max(ids), text))
    for queue, last in final.queues.items():
        for schedule, expected in last.expected_ticks.items():
            missed = sorted(set(expected) - set(found[queue, schedule]))
            violations += [
                Violation("I-12", queue, None, f"{schedule}'s tick at {tick_at} yielded nothing")
                for tick_at in missed
            ]
    return violations
