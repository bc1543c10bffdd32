"""Order: which message comes next, exactly, while memory holds only the head of the backlog.

A *shelf* is one priority: a heap of (available_at, sequence) and `rest`, the key of the first stored row
not read yet. Whatever is before `rest` is in memory, so the top of the heap may be trusted when it is
smaller; otherwise the shelf must be read on. A *lane* is the same for one group, or for one priority of a
concurrency key, in the lane's own order; only the first message of a lane is *offered* on a shelf. If that
message was not read yet, a *ghost* is offered in its place, and the row is read when the ghost surfaces. A
*gate* is the group or key itself: it counts leases and closes its lanes. Entries that no longer hold
(settled, leased, no longer first in their lane, gate closed) are dropped when they surface; whatever may open
a lane again calls `offer`.
"""

from __future__ import annotations

from heapq import heappop, heappush

from hq.domain.lookups import END, START, Ahead, Key, Rest
from hq.domain.messages import WAITING, LaneId, Message


class Shelf:
    """One priority's waiting messages in delivery order."""

    __slots__ = ("heap", "rest")

    def __init__(self, rest: Key = END) -> None:
        self.heap: list[Key] = []
        self.rest = rest


class Gate:
    """A group or a concurrency key: how many of its messages are leased, and its lanes."""

    __slots__ = ("lanes", "leased")

    def __init__(self) -> None:
        self.leased = 0
        self.lanes: dict[LaneId, Lane] = {}


class Lane:
    """One lane's waiting messages in memory, in the lane's order.

    `rest` is START while storage has not been asked. A lane made by a new message need not ask before it
    comes first on its shelf, because the shelf's pages would find the lane's stored row; a lane of which an
    unread row was changed (`eager`) must, because that row no longer stands for it.
    """

    __slots__ = ("eager", "gate", "heap", "id", "rest")

    def __init__(self, lane_id: LaneId, gate: Gate, rest: Rest) -> None:
        self.id = lane_id
        self.gate = gate
        self.heap: list[Key] = []
        self.rest = rest
        self.eager = False


class Order:
    """The delivery order of one queue, as far as memory knows it."""

    __slots__ = ("bounds_known", "gates", "ghosts", "hungry", "messages", "ranks", "shelves")

    def __init__(self, messages: dict[int, Message]) -> None:
        self.messages = messages
        self.shelves: dict[int, Shelf] = {}
        self.ranks: list[int] = []
        self.gates: dict[tuple[str, str], Gate] = {}
        self.hungry: dict[LaneId, Lane] = {}
        self.ghosts: dict[int, Lane] = {}
        self.bounds_known = True

    def add(self, message: Message) -> None:
        """Take in a waiting message."""
        if message.place is None:
            available_at = message.available_at
            if message.offered != available_at:
                message.offered = available_at
                shelf = self.shelves.get(message.rank) or self.shelf(message.rank)
                heappush(shelf.heap, (available_at, message.sequence))
            return
        lane = self.lane_of(message)
        self.place(message, lane)
        if lane.heap[0][1] == message.sequence:
            self.offer(lane)

    def place(self, message: Message, lane: Lane) -> None:
        """Put a waiting message into its lane, without offering the lane's first."""
        message.lane = lane
        if message.place is not None and message.placed != message.place:
            message.placed = message.place
            heappush(lane.heap, (message.place, message.sequence))

    def leased(self, message: Message) -> None:
        """A waiting message is now leased: it leaves its shelf and lane and closes its gate."""
        heap = (self.shelves.get(message.rank) or self.shelf(message.rank)).heap
        if heap and heap[0][1] == message.sequence:
            heappop(heap)
            message.offered = -1
        lane = message.lane
        if lane is not None:
            lane.gate.leased += 1
            self._surface(lane)
            if lane.id.kind == "key":
                self.offer(lane)

    def unleased(self, message: Message) -> None:
        """A lease has ended, however: its gate may open."""
        lane = message.lane
        if lane is not None:
            lane.gate.leased -= 1
            self.reopen(lane.gate)

    def gone(self, message: Message) -> None:
        """A waiting message has been settled: what it kept waiting may come forward."""
        if message.lane is not None:
            self.offer(message.lane)

    def reopen(self, gate: Gate) -> None:
        """Offer the first message of each of a gate's lanes."""
        for lane in list(gate.lanes.values()):
            self.offer(lane)

    def offer(self, lane: Lane) -> None:
        """Put the lane's first message on its shelf, ask storage for it, or forget an empty lane."""
        self._surface(lane)
        heap, rest = lane.heap, lane.rest
        if heap and (heap[0] < rest or (rest == START and not lane.eager)):
            message = self.messages[heap[0][1]]
            if message.offered != message.available_at:
                message.offered = message.available_at
                heappush(self.shelf(message.rank).heap, (message.available_at, message.sequence))
        elif rest == END:
            self._forget(lane)
        elif lane.eager or not isinstance(rest, Ahead):
            self.hungry[lane.id] = lane
        elif self.ghosts.get(rest.sequence) is not lane:
            self.ghosts[rest.sequence] = lane
            heappush(self.shelf(rest.rank).heap, (rest.available_at, rest.sequence))

    def shelf(self, rank: int) -> Shelf:
        """The shelf of a priority, made if there is none."""
        shelf = self.shelves.get(rank)
        if shelf is None:
            shelf = self.shelves[rank] = Shelf()
            self.ranks = sorted(self.shelves, reverse=True)
        return shelf

    def lane_of(self, message: Message) -> Lane:
        """The lane a message is in, made if there is none."""
        if message.lane is None:
            lane_id = message.lane_id
            assert lane_id is not None
            message.lane = self.lane(lane_id)
        return message.lane

    def lane(self, lane_id: LaneId) -> Lane:
        """A lane by its id; a new one has nothing stored if no shelf has."""
        gate = self.gates.get(lane_id[:2])
        if gate is None:
            gate = self.gates[lane_id[:2]] = Gate()
        lane = gate.lanes.get(lane_id)
        if lane is None:
            lane = gate.lanes[lane_id] = Lane(lane_id, gate, START if self.any_stored() else END)
        return lane

    def any_stored(self) -> bool:
        """Whether storage may hold waiting rows that memory does not."""
        return not self.bounds_known or any(shelf.rest != END for shelf in self.shelves.values())

    def first(self, lane: Lane) -> Message | None:
        """The first message of a lane that is in memory."""
        self._surface(lane)
        return self.messages[lane.heap[0][1]] if lane.heap else None

    def _surface(self, lane: Lane) -> None:
        heap = lane.heap
        while heap:
            place, sequence = heap[0]
            message = self.messages.get(sequence)
            if message is not None and message.state is WAITING and message.place == place:
                return
            heappop(heap)
            if message is not None and message.placed == place:
                message.placed = -1

    def _forget(self, lane: Lane) -> None:
        gate = lane.gate
        self.hungry.pop(lane.id, None)
        if gate.leased == 0:
            gate.lanes.pop(lane.id, None)
            if not gate.lanes:
                self.gates.pop(lane.id[:2], None)
