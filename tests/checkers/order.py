"""Order in groups and in a plain queue: I-7, I-8. Both need the server's stamps and are silent without."""

from collections import defaultdict
from collections.abc import Iterator
from heapq import heappop, heappush
from itertools import pairwise

from hq.domain.settings import Groups, Settings
from tests.checkers.final import Final, Violation
from tests.checkers.history import History, Operation
from tests.checkers.seen import (
    COMES_AGAIN,
    GONE,
    Lease,
    Message,
    Name,
    leases_of,
    may_be_requeued,
    messages_of,
)

Place = tuple[int, int]
Rank = tuple[int, int, int]

AFTER_EVERY_PRIORITY = 1 << 15


def groups_keep_their_order(history: History, final: Final) -> list[Violation]:
    """I-7: nothing is leased while one ahead in its group waits, nor beside a lease of another receive."""
    violations = []
    for (queue, group), members in _groups(history, final).items():
        settings = final.of(queue).settings
        texts = [*_overtaken(members, settings), *_side_by_side(members)]
        violations += [Violation("I-7", queue, id_, f"group {group!r}: {text}") for id_, text in texts]
    return violations


def _groups(history: History, final: Final) -> dict[Name, list[tuple[Message, list[Lease]]]]:
    """The received members of every group that is ordered. Who was requeued left its place: not looked at."""
    requeued, any_requeued = may_be_requeued(history)
    messages = messages_of(history, final)
    groups = defaultdict(list)
    for name, leases in leases_of(history).items():
        message, kind = messages[name], final.of(name[0]).settings.groups
        group = message.group or "" if kind is Groups.FIFO else message.group
        plain = group is None or kind is Groups.LABEL or message.concurrency_key is not None
        if not plain and name not in requeued and name[0] not in any_requeued:
            groups[name[0], group].append((message, leases))
    return groups


def _overtaken(members: list[tuple[Message, list[Lease]]], settings: Settings) -> Iterator[tuple[str, str]]:
    """Who was leased while one ahead of it, which was leased later, waited."""
    fifo = settings.groups is Groups.FIFO
    placed = [(place, *one) for one in members if (place := _place(one[0], fifo=fifo)) is not None]
    placed.sort(key=lambda one: one[0])
    latest = -1  # the last lease of anyone ahead, so that most need not be looked at closely
    for index, (_, message, leases) in enumerate(placed):
        for lease in leases:
            if lease.at is None or lease.at >= latest:
                continue
            ahead = next((one for one in placed[:index] if _waited(one[1], one[2], lease, fifo=fifo)), None)
            if ahead is not None:
                yield message.id, f"leased at {lease.at} while {ahead[1].id} waited ahead of it"
                break
        latest = max([latest, *(lease.at for lease in leases if lease.at is not None)])


def _waited(message: Message, leases: list[Lease], passed_by: Lease, *, fifo: bool) -> bool:
    """Whether this message, which is ahead, was for certain waiting and in the way of that lease."""
    at = passed_by.at
    if any(lease.receive is passed_by.receive for lease in leases):
        return False
    if not any(lease.at is not None and lease.at > at for lease in leases):
        return False
    # One that is delayed was never received, and blocks only itself.
    return fifo or message.available_at <= at


def _side_by_side(members: list[tuple[Message, list[Lease]]]) -> Iterator[tuple[str, str]]:
    """Leases of different messages and receives that ran at one time for certain."""
    leases = [lease for _, found in members for lease in found if lease.at is not None]
    running: Lease | None = None
    until = -1
    for lease in sorted(leases, key=lambda one: one.at):
        end = lease.earliest_end((*COMES_AGAIN, *GONE))
        if end is None or end <= lease.at:
            # It may have been over in the millisecond it began, before any other of that millisecond.
            continue
        other = running is not None and running.receive is not lease.receive and running.name != lease.name
        if other and lease.at < until:
            yield lease.told.id, f"leased at {lease.at} beside {running.told.id} of another receive"
        if end > until:
            running, until = lease, end


def _place(message: Message, *, fifo: bool) -> Place | None:
    if message.sequence is None or (message.available_at is None and not fifo):
        return None
    return (0 if fifo else message.available_at, message.sequence)


def a_plain_queue_keeps_its_order(history: History, final: Final) -> list[Violation]:
    """I-8: priority, then available_at, then sequence, among what was ready for certain."""
    violations = []
    by_queue: dict[str, list[Operation]] = defaultdict(list)
    for receive in history.of("receive"):
        if receive.told and receive.at is not None:
            by_queue[receive.queue].append(receive)
    for queue, receives in by_queue.items():
        receives.sort(key=lambda one: one.at)
        ranks = _ranks(history, final, queue)
        for receive in receives:
            violations += _within_one(receive, ranks)
        violations += _passed_over(receives, _waiting(history, final, queue, ranks), ranks)
    return violations


def _ranks(history: History, final: Final, queue: str) -> dict[str, Rank]:
    """The rank of every plain message at its first receive; smaller comes first."""
    ranks = {}
    for message in messages_of(history, final).values():
        lane = message.group is not None or message.concurrency_key is not None
        fifo = final.of(queue).settings.groups is Groups.FIFO
        known = message.sequence is not None and message.available_at is not None
        if message.queue == queue and known and not lane and not fifo:
            priority = AFTER_EVERY_PRIORITY if message.priority is None else -message.priority
            ranks[message.id] = (priority, message.available_at, message.sequence)
    return ranks


def _within_one(receive: Operation, ranks: dict[str, Rank]) -> Iterator[Violation]:
    """A receive tells its messages in order. Of who was received before, the rank is not known."""
    first_time = [told for told in receive.told if told.receives == 1 and told.id in ranks]
    for one, other in pairwise(first_time):
        if ranks[other.id] < ranks[one.id]:
            yield Violation("I-8", receive.queue, other.id, f"told after {one.id} in one receive")


def _waiting(
    history: History, final: Final, queue: str, ranks: dict[str, Rank]
) -> list[tuple[int, int, str]]:
    """From when to when each message was ready for certain: from its arrival until its first receive."""
    # An unknown receive may have leased what nobody saw again.
    unseen = any(one.unknown and one.queue == queue for one in history.of("receive"))
    left = set() if unseen else final.of(queue).ids_left("ready")
    messages, leases = messages_of(history, final), leases_of(history)
    spans = []
    for id_ in ranks:
        message, found = messages[queue, id_], leases.get((queue, id_))
        if found is None:
            until = _FOREVER if id_ in left else None
        else:
            until = found[0].at if found[0].told.receives == 1 else None
        if until is not None and message.enqueued_at is not None:
            spans.append((max(message.enqueued_at + 1, message.available_at or 0), until, id_))
    return sorted(spans)


_FOREVER = 1 << 62


def _passed_over(
    receives: list[Operation], spans: list[tuple[int, int, str]], ranks: dict[str, Rank]
) -> Iterator[Violation]:
    """Receives that took one while a better one was ready, and not taken by them."""
    heap: list[tuple[Rank, int, str]] = []
    coming = iter(spans)
    upcoming = next(coming, None)
    for receive in receives:
        while upcoming is not None and upcoming[0] <= receive.at:
            heappush(heap, (ranks[upcoming[2]], upcoming[1], upcoming[2]))
            upcoming = next(coming, None)
        while heap and heap[0][1] <= receive.at:
            heappop(heap)
        for told in receive.told:
            rank = ranks.get(told.id)
            if rank is not None and heap and _is_better(heap[0][0], rank, told.receives):
                yield Violation(
                    "I-8", receive.queue, told.id, f"received at {receive.at} before {heap[0][2]}"
                )


def _is_better(rank: Rank, taken: Rank, receives: int | None) -> bool:
    """A retry moves a message to a later time, so of who was received before only the priority is known."""
    return rank < taken if receives == 1 else rank[0] < taken[0]
