"""select(state, limit, now): the messages one receive takes, in order, exactly.

It looks at the top of each shelf, highest priority first. Taking a lane's first message brings the lane's
next one forward as a candidate by its own priority, so one receive may take several of a group. Nothing is
changed: what is taken off a heap to look behind it is put back. Only entries that no longer hold (see
ordering.py) are dropped for good, which changes no answer.
"""

from __future__ import annotations

from heapq import heappop, heappush
from typing import NamedTuple

from hq.domain.lookups import END, Ahead, Bounds, Key, LanePage, ShelfPage
from hq.domain.messages import WAITING, Message
from hq.domain.ordering import Gate, Lane, Shelf
from hq.domain.signals import Lacking
from hq.domain.state import QueueState

MAX_LANE_PAGE = 64
MAX_LANES_ASKED = 100
MAX_OVER = 1_000


class Selection(NamedTuple):
    """What may be received now, and what was met on the way that is over: expired or out of attempts."""

    taken: list[Message]
    over: list[Message]


def select(state: QueueState, limit: int, now: int) -> Selection:
    """Up to `limit` messages in delivery order; raises Lacking for what memory does not hold."""
    order = state.order
    if not order.bounds_known:
        raise Lacking(Bounds())
    if order.hungry:
        _feed(state)
    return _Search(state, now).run(limit)


def plain(state: QueueState, limit: int, now: int) -> list[Message] | None:
    """The first messages, if all are of one priority, in memory, in no lane and not over: a short cut.

    None says nothing; `select` then looks properly.
    """
    order = state.order
    if order.hungry or not order.bounds_known:
        return None
    for rank in order.ranks:
        shelf = order.shelves[rank]
        if shelf.heap:
            break
        if shelf.rest is not END:
            return None
    else:
        return None
    heap, rest = shelf.heap, shelf.rest
    messages, most_of_queue = state.messages, state.settings.max_attempts
    taken: list[Message] = []
    popped: list[Key] = []
    while heap:
        entry = heap[0]
        message = messages.get(entry[1])
        if (
            message is None
            or (rest is not END and entry >= rest)
            or message.place is not None
            or message.expires_at is not None
            or message.state is not WAITING
            or not message.available_at == entry[0] <= now
        ):
            break
        most = message.options.max_attempts or most_of_queue
        if most is not None and message.attempts >= most:
            break
        if limit == 1:
            return [message]
        taken.append(message)
        if len(taken) == limit:
            break
        popped.append(heappop(heap))
    for entry in popped:
        heappush(heap, entry)
    return taken if len(taken) == limit else None


def gate_is_open(state: QueueState, lane: Lane, taken: int = 0) -> bool:
    """Whether a lane's gate lets another message out, beside `taken` in the same receive."""
    gate = lane.gate
    if lane.id.kind == "group":
        return gate.leased == 0 and lane.id.name not in state.paused_groups
    limit = state.settings.concurrency_per_key
    return limit is None or gate.leased + taken < limit


def is_worn_out(state: QueueState, message: Message) -> bool:
    """Whether a message has had all its attempts."""
    limit = message.options.max_attempts or state.settings.max_attempts
    return limit is not None and message.attempts >= limit


def _feed(state: QueueState) -> None:
    """Ask for the lanes whose first message is not in memory; a closed lane asks again when it opens."""
    hungry = state.order.hungry
    asked = []
    for lane in list(hungry.values()):
        if gate_is_open(state, lane):
            asked.append(lane_page(state, lane))
        else:
            del hungry[lane.id]
    if asked:
        raise Lacking(*asked[:MAX_LANES_ASKED])


def lane_page(state: QueueState, lane: Lane) -> LanePage:
    """The next stored rows of a lane."""
    return LanePage(lane.id, lane.rest, min(state.head, MAX_LANE_PAGE))


class _Search:
    """One pass over the delivery order, undone at its end."""

    __slots__ = ("extras", "ghosts", "now", "opened", "over", "passed", "popped", "state", "taken")

    def __init__(self, state: QueueState, now: int) -> None:
        self.state = state
        self.now = now
        self.taken: list[Message] = []
        self.over: list[Message] = []
        self.passed: set[int] = set()
        self.popped: list[tuple[list[Key], Key]] = []
        # Candidates brought forward in their lanes, the unread ones among them, and what was let out by gate.
        self.extras: list[tuple[int, int, int]] = []
        self.ghosts: dict[int, Lane] = {}
        self.opened: dict[Gate, int] = {}

    def run(self, limit: int) -> Selection:
        try:
            while (message := self._next()) is not None:
                if message.is_over(self.now) or is_worn_out(self.state, message):
                    self.over.append(message)
                else:
                    self.taken.append(message)
                if len(self.taken) == limit or len(self.over) == MAX_OVER:
                    break
                self._go_past(message)
        finally:
            for heap, key in self.popped:
                heappush(heap, key)
        return Selection(self.taken, self.over)

    def _next(self) -> Message | None:
        """The best candidate there is: on a shelf, or brought forward in its lane."""
        order, extras = self.state.order, self.extras
        for rank in order.ranks:
            if extras and -extras[0][0] > rank:
                break
            message = self._top(rank, order.shelves[rank])
            if message is not None:
                if extras and extras[0] < (-rank, message.available_at, message.sequence):
                    break
                return message
        return self._first_extra()

    def _first_extra(self) -> Message | None:
        """The best of those brought forward, unless its gate was closed since."""
        extras = self.extras
        while extras:
            sequence = extras[0][2]
            message = self.state.messages.get(sequence)
            lane = self.ghosts[sequence] if message is None else message.lane
            if lane is None or self._is_open(lane):
                if message is None and lane is not None:
                    raise Lacking(lane_page(self.state, lane))
                return message
            heappop(extras)
        return None

    def _top(self, rank: int, shelf: Shelf) -> Message | None:
        """The first message of a shelf that may be received, if there is one."""
        heap, messages, now = shelf.heap, self.state.messages, self.now
        while True:
            if not heap or heap[0] >= shelf.rest:
                if shelf.rest[0] <= now:
                    raise Lacking(ShelfPage(rank, shelf.rest, now, self.state.head))
                if not heap:
                    return None
            available_at, sequence = heap[0]
            if available_at > now:
                return None
            message = messages.get(sequence)
            if message is None:
                keep = self._keeps_ghost(sequence)
            elif message.offered != available_at:
                keep = False
            elif self._is_candidate(message):
                return message
            else:
                keep = self._keeps(message)
                if not keep:
                    message.offered = -1
            entry = heappop(heap)
            if keep:
                self.popped.append((heap, entry))

    def _is_candidate(self, message: Message) -> bool:
        """Whether a message that is on its shelf may still be received."""
        if message.state is not WAITING or message.available_at != message.offered:
            return False
        if message.sequence in self.passed:
            return False
        lane = message.lane
        if lane is None:
            return True
        if not self._is_open(lane):
            return False
        first = self.state.order.first(lane)
        if lane.rest <= lane.heap[0] and not isinstance(lane.rest, Ahead):
            raise Lacking(lane_page(self.state, lane))
        return first is message and lane.heap[0] < lane.rest

    def _keeps(self, message: Message) -> bool:
        """Whether only this receive keeps a message back, so that its entry must stay."""
        lane = message.lane
        return message.sequence in self.passed or (
            message.state is WAITING and lane is not None and self._closed_here(lane)
        )

    def _keeps_ghost(self, sequence: int) -> bool:
        """Read the row a ghost stands for if its lane is open; else whether the entry must stay."""
        ghosts = self.state.order.ghosts
        lane = ghosts.get(sequence)
        if lane is None:
            return False
        if lane.rest[1] == sequence and not (lane.heap and lane.heap[0] < lane.rest):
            if self._is_open(lane):
                raise Lacking(lane_page(self.state, lane))
            if self._closed_here(lane):
                return True
        del ghosts[sequence]
        return False

    def _is_open(self, lane: Lane) -> bool:
        return gate_is_open(self.state, lane, self.opened.get(lane.gate, 0))

    def _closed_here(self, lane: Lane) -> bool:
        """Whether the gate was open before this receive; asked of lanes that are closed now."""
        return lane.gate in self.opened and gate_is_open(self.state, lane)

    def _go_past(self, message: Message) -> None:
        """Look behind a message: the next entry of its shelf, and the next of its lane."""
        self.passed.add(message.sequence)
        extras = self.extras
        if extras and extras[0][2] == message.sequence:
            heappop(extras)
        else:
            heap = self.state.order.shelves[message.rank].heap
            self.popped.append((heap, heappop(heap)))
        lane = message.lane
        if lane is None:
            return
        self.popped.append((lane.heap, heappop(lane.heap)))
        if self.taken and self.taken[-1] is message:
            self.opened[lane.gate] = self.opened.get(lane.gate, 0) + 1
        if self._is_open(lane):
            self._bring_forward(lane)

    def _bring_forward(self, lane: Lane) -> None:
        """The lane's next message becomes a candidate, in memory or not."""
        following, rest = self.state.order.first(lane), lane.rest
        if following is not None and lane.heap[0] < rest:
            rank, available_at, sequence = following.rank, following.available_at, following.sequence
        elif rest == END:
            return
        elif lane.eager or not isinstance(rest, Ahead):
            raise Lacking(lane_page(self.state, lane))
        else:
            rank, available_at, sequence = rest.rank, rest.available_at, rest.sequence
            self.ghosts[sequence] = lane
        if available_at <= self.now:
            heappush(self.extras, (-rank, available_at, sequence))
