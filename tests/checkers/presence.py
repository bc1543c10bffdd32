"""What must be there, what must not, and that the counts agree: I-1, I-2, I-5, I-14."""

from collections import Counter, defaultdict
from collections.abc import Iterator

from tests.checkers.final import Final, QueueFinal, Violation
from tests.checkers.history import History, Operation
from tests.checkers.seen import (
    Lease,
    Message,
    Name,
    leases_of,
    may_be_requeued,
    messages_of,
    of_message,
    of_queue,
)

ENDED = ("completed", "expired", "deleted", "purged", "moved")
STATES = ("ready", "delayed", "leased", "failed", "moving")
LIVE = ("ready", "delayed", "leased")


def nothing_acknowledged_is_lost(history: History, final: Final) -> list[Violation]:
    """I-1: every enqueue that was answered ok is at the end in the queue, or something took it out."""
    ended = of_message(history, "complete", "delete")
    failed = of_message(history, "fail")
    removals = of_queue(history, "purge", "delete")
    moved = {told.origin_id for one in history.of("receive") for told in one.told}
    # A duplicate may stand for a message whose own enqueue was unknown, and that may have had an end.
    unknown = [one for one in history.of("enqueue") if one.unknown]
    short_lived = {(one.queue, one.asked.dedup_key) for one in unknown if one.asked.ttl_ms is not None}
    messages = messages_of(history, final)
    violations = []
    for enqueue in _first_ok(history, "enqueue"):
        queue, id_ = enqueue.queue, enqueue.told[0].id
        last = final.of(queue)
        accounted = (
            last.left is None
            or id_ in last.ids_left()
            or id_ in moved
            or (queue, id_) in ended
            or ("failed" not in last.left and (queue, id_) in failed)
            or any(_may_take_out(one, enqueue) for one in removals[queue])
            or _may_have_expired(messages[queue, id_], last, final.at)
            or (messages[queue, id_].enqueue is None and (queue, enqueue.asked.dedup_key) in short_lived)
        )
        if not accounted:
            violations.append(Violation("I-1", queue, id_, "acknowledged, never taken out, and not there"))
    return violations


def nothing_appears_from_nowhere(history: History, final: Final) -> list[Violation]:
    """I-2: what is received was enqueued, with this payload, and not later."""
    messages = messages_of(history, final)
    schedules = {(one.queue, one.asked.schedule): one.asked.payload for one in history.of("set_schedule")}
    replaced = {(one.queue, one.asked.payload) for one in history.of("replace")}
    sources = {message.id: message.payload for message in messages.values()}
    strangers: dict[tuple[str, str | None], set[str]] = defaultdict(set)
    violations = []
    for name, leases in leases_of(history).items():
        message, payloads = messages[name], {lease.told.payload for lease in leases}
        expected = leases[0].told.payload
        if message.schedule is not None:
            expected = schedules.get((message.queue, message.schedule))
        elif message.origin_id is not None:
            expected = sources.get(message.origin_id)
        elif message.enqueue is not None and message.enqueue.ok:
            expected = message.enqueue.asked.payload
        else:
            strangers[message.queue, expected].add(message.id)
        if message.enqueue is not None and _certainly_before(leases[0].receive, message.enqueue):
            violations.append(Violation("I-2", *name, "received before it was enqueued"))
        wrong = {one for one in payloads if one != expected and (message.queue, one) not in replaced}
        if wrong:
            violations.append(
                Violation("I-2", *name, f"payload {', '.join(map(str, wrong))}, not {expected}")
            )
    return violations + _unexplained(history, strangers)


def _unexplained(history: History, strangers: dict[tuple[str, str | None], set[str]]) -> list[Violation]:
    """Messages of which no caller was told: each needs an unknown enqueue of its own."""
    unknown = Counter((one.queue, one.asked.payload) for one in history.of("enqueue") if one.unknown)
    return [
        Violation("I-2", queue, id_, "received, and nobody enqueued it")
        for (queue, payload), ids in strangers.items()
        for id_ in sorted(ids)[unknown[queue, payload] :]
    ]


def completed_stays_completed(history: History, final: Final) -> list[Violation]:
    """I-5: what was completed, deleted or purged for certain is neither received again nor left."""
    leases = leases_of(history)
    messages = messages_of(history, final)
    violations = []
    for end in _first_ok(history, "complete", "delete"):
        name = end.queue, end.asked.message
        word = f"{end.verb}d"
        if any(_comes_after(lease, end) for lease in leases.get(name, ())):
            violations.append(Violation("I-5", *name, f"received after it was {word}"))
        elif end.asked.message in final.of(end.queue).ids_left(*STATES):
            violations.append(Violation("I-5", *name, f"still there after it was {word}"))
    requeued, any_requeued = may_be_requeued(history)
    for purge in history.of("purge"):
        if not purge.ok or purge.asked.scope == "failed" or purge.queue in any_requeued:
            continue
        violations += [
            Violation("I-5", *name, "received after it was purged")
            for name, found in leases.items()
            if name[0] == purge.queue
            and name not in requeued
            and _was_there(messages[name], purge)
            and any(purge.returned_before(lease.receive) for lease in found)
        ]
    return violations


def nothing_is_gained_or_lost_in_the_counts(history: History, final: Final) -> list[Violation]:
    """I-14: the stats add up, agree with what is there, and with what clients know."""
    known: dict[str, set[str]] = defaultdict(set)
    for queue, id_ in messages_of(history, final):
        known[queue].add(id_)
    violations = []
    for queue, last in final.queues.items():
        texts = (
            []
            if last.stats is None
            else [*_sums(last), *_against_clients(history, queue, last, known[queue])]
        )
        violations += [Violation("I-14", queue, None, text) for text in texts]
    return violations


def _sums(last: QueueFinal) -> Iterator[str]:
    stats = last.stats or {}
    total = sum(stats.get(word, 0) for word in (*STATES, *ENDED))
    if stats.get("enqueued", 0) != total:
        yield f"{stats.get('enqueued', 0)} were enqueued, {total} are somewhere"
    for state, ids in (last.left or {}).items():
        if stats.get(state, 0) != len(ids):
            yield f"{stats.get(state, 0)} are counted {state}, {len(ids)} are there"


def _against_clients(history: History, queue: str, last: QueueFinal, known: set[str]) -> Iterator[str]:
    """Ticks and moves bring messages no client asked for, so they lift the upper bound of enqueued."""
    stats = last.stats or {}
    unknown = sum(one.unknown for one in history.of("enqueue") if one.queue == queue)
    enqueued = stats.get("enqueued", 0)
    brought = last.ticks or any(one.queue == queue for one in history.of("set_schedule", "move"))
    if not len(known) <= enqueued or not (brought or enqueued <= len(known) + unknown):
        yield f"{enqueued} are counted enqueued, clients know of {len(known)} and perhaps {unknown} more"
    completes = [one for one in history.of("complete") if one.queue == queue]
    certain = {one.asked.message for one in completes if one.ok}
    possible = {one.asked.message for one in completes}
    if not len(certain) <= stats.get("completed", 0) <= len(possible):
        yield (
            f"{stats.get('completed', 0)} are counted completed, "
            f"clients completed {len(certain)} and perhaps {len(possible - certain)} more"
        )


def _first_ok(history: History, *verbs: str) -> Iterator[Operation]:
    """For each message the first operation of these verbs that was answered ok."""
    seen: set[Name] = set()
    for one in history.of(*verbs):
        message = one.asked.message if one.verb != "enqueue" else one.told[0].id if one.told else None
        if one.ok and message is not None and (one.queue, message) not in seen:
            seen.add((one.queue, message))
            yield one


def _may_take_out(removal: Operation, enqueue: Operation) -> bool:
    if removal.returned_before(enqueue):
        return False
    return removal.verb == "purge" or removal.asked.dedup_key == enqueue.asked.dedup_key


def _may_have_expired(message: Message, last: QueueFinal, now: int | None) -> bool:
    if message.expires_at is None:
        return message.asked.ttl_ms is not None or last.settings.ttl_ms is not None
    return now is None or now >= message.expires_at


def _certainly_before(receive: Operation, enqueue: Operation) -> bool:
    return receive.returned_at is not None and receive.returned_at < enqueue.invoked_at


def _comes_after(lease: Lease, end: Operation) -> bool:
    stamped = lease.at is not None and end.at is not None
    return end.returned_before(lease.receive) or (stamped and lease.at > end.at)


def _was_there(message: Message, purge: Operation) -> bool:
    return message.enqueue is not None and message.enqueue.returned_before(purge)
