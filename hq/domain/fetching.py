"""needs and absorb: asking storage for what a batch will want, and taking the answers into memory.

What memory knows outranks what is fetched. A fetch and the writing of a checkpoint chunk of the same queue
must not be under way at the same time.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from hq.domain.commands import (
    Command,
    Complete,
    Delete,
    DeleteByKey,
    Enqueue,
    Explain,
    Extend,
    Fail,
    Get,
    Outcome,
    Peek,
    Progress,
    Receive,
    Release,
    Replace,
    Requeue,
    Retry,
    TakeIn,
)
from hq.domain.lookups import (
    Ahead,
    Bounds,
    DelayedAfter,
    EndsPage,
    Entry,
    Found,
    FoundBounds,
    FoundRows,
    InInbox,
    KeyOf,
    LanePage,
    Lookup,
    PayloadOf,
    Rest,
    RowOf,
    SequencePage,
    ShelfPage,
)
from hq.domain.messages import WAITING, Message
from hq.domain.ordering import Lane
from hq.domain.selection import gate_is_open, lane_page
from hq.domain.state import QueueState

_ENQUEUING = (Enqueue, TakeIn)
_BY_ORDER = (Receive, Peek)
_BY_MESSAGE = (Complete, Retry, Fail, Release, Extend, Delete, Requeue, Get, Explain, Progress, Outcome)
_BY_KEY = (DeleteByKey, Replace)


def needs(state: QueueState, commands: Iterable[Command], now: int) -> list[Lookup]:
    """What these commands will want that memory lacks, as far as can be told before deciding them.

    A guess, made to fetch for a whole batch at once: `decide` still says what it lacks.
    """
    lookups: dict[Lookup, None] = {}
    wanted = 0
    messages = state.messages
    for command in commands:
        if isinstance(command, _ENQUEUING):
            options = command.options
            if options.dedup_key is not None:
                _want_key(state, options.dedup_key, options.group, lookups)
        elif isinstance(command, _BY_ORDER):
            wanted += _count(command.limit)
        elif isinstance(command, _BY_MESSAGE):
            if command.message not in messages and not state.knows(command.message):
                lookups[RowOf(command.message)] = None
        elif isinstance(command, _BY_KEY):
            _want_key(state, command.dedup_key, command.group, lookups)
    if wanted:
        lookups.update(dict.fromkeys(_wanted_pages(state, wanted, now)))
    return list(lookups)


def _count(limit: object) -> int:
    """A limit that is no number is refused later, by its rule."""
    return limit if isinstance(limit, int) else 0


def _want_key(state: QueueState, key: str, group: str | None, lookups: dict[Lookup, None]) -> None:
    scoped = state.dedup_key(key, group)
    if not state.knows_key(scoped):
        lookups[KeyOf(scoped)] = None


def _wanted_pages(state: QueueState, wanted: int, now: int) -> list[Lookup]:
    """The pages without which so many messages can hardly be found."""
    order = state.order
    if not order.bounds_known:
        return [Bounds()]
    pages: list[Lookup] = [
        lane_page(state, lane) for lane in order.hungry.values() if gate_is_open(state, lane)
    ]
    for rank in order.ranks:
        shelf = order.shelves[rank]
        if len(shelf.heap) < wanted and shelf.rest[0] <= now:
            pages.append(ShelfPage(rank, shelf.rest, now, state.head))
        wanted -= len(shelf.heap)
        if wanted <= 0:
            break
    return pages


def absorb(state: QueueState, lookups: Sequence[Lookup], answers: Sequence[Found]) -> None:
    """Take answers into memory, under what it knows better."""
    for lookup, answer in zip(lookups, answers, strict=True):
        if isinstance(lookup, RowOf):
            assert answer is None or isinstance(answer, Message)
            _absorb_row(state, lookup.message, answer)
        elif isinstance(lookup, PayloadOf):
            assert answer is None or isinstance(answer, bytes)
            _absorb_payload(state, lookup.message, answer)
        elif isinstance(lookup, KeyOf):
            assert answer is None or isinstance(answer, Entry)
            state.aside_keys[lookup.key] = answer
        elif isinstance(lookup, DelayedAfter):
            assert isinstance(answer, int)
            state.delayed_after[lookup] = answer
        elif isinstance(lookup, InInbox):
            assert isinstance(answer, int)
            state.in_inbox = answer
        elif isinstance(lookup, Bounds):
            assert isinstance(answer, FoundBounds)
            _absorb_bounds(state, answer)
        else:
            assert isinstance(answer, FoundRows)
            _absorb_page(state, lookup, answer)


def _absorb_row(state: QueueState, sequence: int, row: Message | None) -> None:
    if state.find(sequence) is not None:
        return
    if row is None or state.outranks(row):
        state.aside[sequence] = None
    else:
        state.aside[sequence] = _fetched(row)


def _absorb_payload(state: QueueState, sequence: int, payload: bytes | None) -> None:
    held = state.find(sequence)
    if held is not None and held.payload is None:
        held.payload = payload


def _absorb_bounds(state: QueueState, bounds: FoundBounds) -> None:
    order = state.order
    for rank in {*order.shelves, *bounds.shelves}:
        order.shelf(rank).rest = bounds.shelves.get(rank, order.shelf(rank).rest)
    state.ends.rest = bounds.ends
    order.bounds_known = True


def _absorb_page(
    state: QueueState, lookup: ShelfPage | LanePage | EndsPage | SequencePage, page: FoundRows
) -> None:
    match lookup:
        case ShelfPage():
            _absorb_shelf(state, lookup, page)
        case LanePage():
            _absorb_lane(state, lookup, page)
        case EndsPage():
            _absorb_ends(state, page)
        case SequencePage():
            for row in page.rows:
                if not state.outranks(row):
                    state.aside.setdefault(row.sequence, _fetched(row))
            state.pages[lookup] = page


def _absorb_shelf(state: QueueState, lookup: ShelfPage, page: FoundRows) -> None:
    shelf = state.order.shelf(lookup.rank)
    if shelf.rest != lookup.start:
        return
    for row, rest in zip(page.rows, page.lanes, strict=True):
        if row.place is not None:
            _stand_for_lane(state, row, rest)
        elif (message := _taken_in(state, row)) is not None:
            state.order.add(message)
    # Last, because a lane that is new while nothing is left to read has nothing stored.
    shelf.rest = page.rest[:2]


def _stand_for_lane(state: QueueState, row: Message, rest: Rest) -> None:
    """A lane's first stored row: even one that memory knows better tells where its lane goes on."""
    lane_id = row.lane_id
    assert lane_id is not None
    assert row.place is not None
    lane = state.order.lane(lane_id)
    if lane.rest[:2] <= (row.place, row.sequence):
        _read_lane(state, lane, [row], rest)


def _absorb_lane(state: QueueState, lookup: LanePage, page: FoundRows) -> None:
    lane = state.order.lane(lookup.lane)
    if lane.rest == lookup.start:
        _read_lane(state, lane, page.rows, page.rest)


def _read_lane(state: QueueState, lane: Lane, rows: list[Message], rest: Rest) -> None:
    lane.rest = rest
    # A row that memory knows better cannot stand for what comes after it.
    lane.eager = isinstance(rest, Ahead) and state.knows(rest.sequence)
    for row in rows:
        message = _taken_in(state, row)
        if message is not None:
            state.order.place(message, lane)
    state.order.hungry.pop(lane.id, None)
    state.order.offer(lane)


def _absorb_ends(state: QueueState, page: FoundRows) -> None:
    """Rows that are over: they come into memory to be ended, not to be received."""
    state.ends.rest = page.rest[:2]
    for row in page.rows:
        if state.outranks(row):
            continue
        message = state.messages[row.sequence] = _own(state, row)
        if message.state is WAITING and message.place is not None:
            state.order.lane_of(message).eager = True
        state.push_end(message)


def _taken_in(state: QueueState, row: Message) -> Message | None:
    """A waiting row as a message in memory; None if memory knows better."""
    if state.outranks(row):
        return None
    message = state.messages[row.sequence] = _own(state, row)
    if message.expires_at is not None:
        state.push_end(message)
    return message


def _own(state: QueueState, row: Message) -> Message:
    """The one object for a row: that which an earlier fetch put aside, if there is one."""
    return state.aside.pop(row.sequence, None) or _fetched(row)


def _fetched(row: Message) -> Message:
    row.stored = True
    row.stored_at = row.available_at if row.state is WAITING else -1
    return row
