"""Leases: one at a time, fenced, counted, and no more than the queue allows: I-3, I-4, I-6, I-13."""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from heapq import heappop, heappush
from itertools import pairwise

from hq.domain.settings import Groups, Settings
from tests.checkers.final import Final, Violation
from tests.checkers.history import History, Operation
from tests.checkers.seen import (
    COMES_AGAIN,
    GONE,
    SETTLEMENTS,
    Lease,
    Message,
    leases_of,
    may_be_requeued,
    messages_of,
    of_message,
    of_queue,
)

NEEDS_A_RUNNING_LEASE = ("retry", "release", "extend")


def no_two_leases_at_once(history: History, _: Final) -> list[Violation]:
    """I-3: a message is leased again only when its lease before is over, by the server's clock."""
    violations = []
    for name, leases in leases_of(history).items():
        for earlier, later in pairwise(leases):
            # Had a complete of unknown outcome happened, there would be no later lease.
            end = earlier.earliest_end(COMES_AGAIN, seen_by=later.receive)
            if end is not None and later.at is not None and later.at < end:
                text = (
                    f"leased until {end} to {earlier.receive.client}, at {later.at} to {later.receive.client}"
                )
                violations.append(Violation("I-3", *name, text))
    return violations


def a_stale_token_never_succeeds(history: History, final: Final) -> list[Violation]:
    """I-4: whoever settles holds the latest lease; to retry, release or extend it must still run."""
    leases = leases_of(history)
    violations = []
    for name, settlements in of_message(history, *SETTLEMENTS).items():
        held = leases.get(name, [])
        fifo = final.of(name[0]).settings.groups is Groups.FIFO
        certain = [one for one in settlements if one.ok]
        for one in certain:
            if one.asked.token is None:
                continue
            lease = next((lease for lease in held if lease.told.token == one.asked.token), None)
            text = "with a token nobody was given" if lease is None else None
            if lease is not None:
                needs_running = fifo or one.verb in NEEDS_A_RUNNING_LEASE
                text = (
                    _why_stale(one, lease, held, certain) or (needs_running and _why_over(one, lease)) or None
                )
            if text:
                violations.append(Violation("I-4", *name, f"{one.verb} by {one.client} {text}"))
    return violations


def _why_stale(
    one: Operation, lease: Lease, held: Iterable[Lease], settlements: Iterable[Operation]
) -> str | None:
    """What came between this lease and its settlement for certain, if anything did."""
    for other in held:
        if (other.told.receives or 0) > (lease.told.receives or 0) and _granted_before(other, one):
            return f"with token {lease.told.receives}, after receive {other.told.receives}"
    for other in settlements:
        final = other.verb in ("complete", "fail")
        ended = final or (other.verb in COMES_AGAIN and one.verb in NEEDS_A_RUNNING_LEASE)
        if ended and other is not one and other.asked.token == one.asked.token and other.returned_before(one):
            return f"after {other.verb} with the same token"
    return None


def _why_over(one: Operation, lease: Lease) -> str | None:
    """How long ago the lease ended for certain; an extend of unknown outcome may have made it longer."""
    others = [other for other in lease.settlements if other.verb == "extend" and other is not one]
    if one.at is None or any(other.unknown or other.at is None or not other.told for other in others):
        return None
    ends = [(other.at, other.told[0].lease_expires_at) for other in others if other.at <= one.at]
    ends.append((lease.at or 0, lease.told.lease_expires_at))
    if any(end is None for _, end in ends):
        return None
    last = max((at for at, _ in ends if at < one.at), default=lease.at or 0)
    # What was set in the same millisecond may have been before or after: the longest is the mildest.
    end = max(end for at, end in ends if at >= last)
    return f"at {one.at}, when its lease was over since {end}" if one.at >= end else None


def receives_count_up(history: History, final: Final) -> list[Violation]:
    """I-6: receives are 1, 2, 3…, only an unknown receive may hide one; attempts follow, to their bound."""
    unknown = defaultdict(list)
    for one in history.of("receive"):
        if one.unknown:
            unknown[one.queue].append(one)
    messages = messages_of(history, final)
    requeued, any_requeued = may_be_requeued(history)
    violations = []
    hidden: dict[str, int] = defaultdict(int)
    for name, leases in leases_of(history).items():
        queue = name[0]
        may_start_again = name in requeued or queue in any_requeued
        texts = [*_receives(leases, unknown[queue])]
        if not texts:
            most = messages[name].asked.max_attempts or final.of(queue).settings.max_attempts
            texts = [*_attempts(leases, most, may_start_again=may_start_again)]
            hidden[queue] += max(lease.told.receives or 0 for lease in leases) - len(leases)
        violations += [Violation("I-6", *name, text) for text in texts]
    for queue, count in hidden.items():
        most = sum(one.asked.limit for one in unknown[queue])
        if count > most:
            text = f"{count} receives are missing, unknown ones explain {most}"
            violations.append(Violation("I-6", queue, None, text))
    return violations


def _receives(leases: list[Lease], unknown: list[Operation]) -> Iterator[str]:
    """What is wrong with the numbers of one message's leases."""
    numbers = [lease.told.receives for lease in leases]
    if None in numbers:
        return
    for earlier, later in pairwise(leases):
        if later.told.receives < earlier.told.receives and earlier.before(later):
            yield f"receive {later.told.receives} came after receive {earlier.told.receives}"
    previous = 0
    for lease in sorted(leases, key=lambda one: one.told.receives):
        number = lease.told.receives
        answered = lease.receive.returned_at
        hiding = sum(answered is None or one.invoked_at < answered for one in unknown)
        if number == previous:
            yield f"receive {number} was given twice"
        elif number - previous - 1 > hiding:
            yield f"receive {number} follows receive {previous}"
        previous = number


def _attempts(leases: list[Lease], most: int | None, *, may_start_again: bool) -> Iterator[str]:
    """What is wrong with the attempts of one message's leases, whose receives are right.

    A release gives the attempt back, and hq itself does when it could not deliver a reply; so a receive that
    nobody saw adds one attempt or none.
    """
    low = high = previous = 0
    for lease in sorted(leases, key=lambda one: one.told.receives or 0):
        number, attempts = lease.told.receives, lease.told.attempts
        if number is None or attempts is None:
            return
        first = 0 if may_start_again else low
        unseen = number - previous - 1
        if not first + 1 <= attempts <= high + unseen + 1:
            yield f"attempts are {attempts} at receive {number}, not {first + 1} to {high + unseen + 1}"
        elif most is not None and attempts > most:
            yield f"attempts are {attempts}, more than {most}"
        releases = [one for one in lease.settlements if one.verb == "release"]
        low = attempts - bool(releases)
        high = attempts - any(one.ok and one.asked.token == lease.told.token for one in releases)
        previous = number


def limits_are_kept(history: History, final: Final) -> list[Violation]:
    """I-13: concurrency is never exceeded, nor capacity by an enqueue."""
    messages = messages_of(history, final)
    violations = []
    for queue, last in final.queues.items():
        leases = [lease for (of, _), found in leases_of(history).items() if of == queue for lease in found]
        violations += _too_many_leases(queue, leases, last.settings.concurrency, "leases")
        by_key: dict[str, list[Lease]] = defaultdict(list)
        for lease in leases:
            key = messages[lease.name].concurrency_key
            if key is not None:
                by_key[key].append(lease)
        for key, found in by_key.items():
            violations += _too_many_leases(
                queue, found, last.settings.concurrency_per_key, f"leases of key {key}"
            )
        if last.settings.capacity is not None:
            violations += _too_full(history, final, queue, last.settings)
    return violations


def _too_many_leases(queue: str, leases: list[Lease], most: int | None, what: str) -> Iterator[Violation]:
    """Leases that ran at one time for certain; told once, at the first that was too many."""
    if most is None:
        return
    ends: list[int] = []
    for lease in sorted((lease for lease in leases if lease.at is not None), key=lambda one: one.at):
        while ends and ends[0] <= lease.at:
            heappop(ends)
        end = lease.earliest_end((*COMES_AGAIN, *GONE))
        if end is not None and end > lease.at:
            heappush(ends, end)
        if len(ends) > most:
            yield Violation(
                "I-13", queue, lease.told.id, f"{len(ends)} {what} at {lease.at}, more than {most}"
            )
            return


def _too_full(history: History, final: Final, queue: str, settings: Settings) -> Iterator[Violation]:
    """Messages that were live for certain when another was let in by an enqueue."""
    unseen = sum(one.unknown for one in history.of("receive") if one.queue == queue)
    endings = of_message(history, *GONE, "fail")
    removals = of_queue(history, "purge", "delete")[queue]
    known = [one for one in messages_of(history, final).values() if one.queue == queue]
    stamped = [one for one in known if one.enqueued_at is not None and not one.schedule and not one.origin_id]
    ends: list[int] = []
    for message in sorted(stamped, key=lambda one: (one.enqueued_at, one.sequence or 0)):
        while ends and ends[0] <= message.enqueued_at:
            heappop(ends)
        if len(ends) >= (settings.capacity or 0):
            text = f"let in at {message.enqueued_at} beside {len(ends)} others, capacity {settings.capacity}"
            yield Violation("I-13", queue, message.id, text)
            return
        leases = leases_of(history).get((queue, message.id), [])
        most = message.asked.max_attempts or settings.max_attempts
        end = _earliest_death(message, [*endings[queue, message.id], *removals], leases, (most, unseen))
        if end > message.enqueued_at:
            heappush(ends, end)


def _earliest_death(
    message: Message, endings: list[Operation], leases: list[Lease], attempts: tuple[int | None, int]
) -> int:
    """The first instant at which this message may have been settled; its enqueue if nothing is certain."""
    born, (most, unseen) = message.enqueued_at or 0, attempts
    deaths = [one.at if one.ok and one.at is not None else born for one in endings]
    if most is not None and len(leases) + unseen >= most:
        # It may have failed at the end of its last lease; of a receive that nobody saw we know no end.
        deaths += [born] if unseen else [lease.earliest_end(COMES_AGAIN) or born for lease in leases]
    return min([*deaths, message.expires_at or _NEVER])


_NEVER = 1 << 62


def _granted_before(lease: Lease, settlement: Operation) -> bool:
    if lease.at is not None and settlement.at is not None:
        return lease.at < settlement.at
    return lease.receive.returned_before(settlement)
