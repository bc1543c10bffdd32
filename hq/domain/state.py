"""A queue in memory: its settings and small state, its leases, what changed since the checkpoint, its head.

`delta` is what changed since it was last cut for a checkpoint, settled messages too; `cutting` is what was
cut and may not be durable yet. Both outrank anything fetched. `aside` holds what was fetched for one batch.
"""

from __future__ import annotations

from heapq import heapify, heappop, heappush

from hq.domain.counters import Counters
from hq.domain.lookups import DedupKey, DelayedAfter, Entry, FoundRows, Key, PayloadOf, RowOf, SequencePage
from hq.domain.messages import COMPLETED, FAILED, LEASED, MOVING, WAITING, Message
from hq.domain.ordering import Order, Shelf
from hq.domain.schedules import Planned
from hq.domain.settings import DedupScope, Settings
from hq.domain.signals import Lacking, Overdue
from hq.domain.tasks import Scope, Task
from hq.errors import BrokenInvariant, MessageNotFound

DEFAULT_HEAD = 1_000
# Heaps drop what no longer holds when it surfaces; past this slack they are rebuilt.
SLACK = 64


class QueueState:
    """Everything a queue's rules look at."""

    __slots__ = (
        "aside", "aside_keys", "changed_at", "counters", "cutting", "cutting_keys", "delayed_after", "delta",
        "delta_keys",
        "ends", "enqueue_mark", "epoch", "has_inbox", "has_keys", "has_rows", "head", "in_inbox",
        "lease_ends", "leases", "messages", "moves", "next_move", "next_task", "order", "pages", "paused",
        "paused_groups", "purged", "receive_mark", "schedules", "sequence", "settings", "taken", "tasks",
        "time", "used_at",
    )  # fmt: skip

    def __init__(self, settings: Settings, head: int = DEFAULT_HEAD) -> None:
        self.settings = settings
        self.head = head
        self.sequence = 0
        self.time = 0
        self.epoch = 0
        self.counters = Counters()
        self.messages: dict[int, Message] = {}
        self.order = Order(self.messages)
        self.leases: dict[int, Message] = {}
        self.lease_ends: list[Key] = []
        self.ends = Shelf()
        self.delta: dict[int, Message] = {}
        self.cutting: dict[int, Message] = {}
        self.delta_keys: dict[DedupKey, Entry | None] = {}
        self.cutting_keys: dict[DedupKey, Entry | None] = {}
        self.has_rows = False
        self.has_keys = False
        self.has_inbox = False
        self.in_inbox: int | None = None
        self.aside: dict[int, Message | None] = {}
        self.aside_keys: dict[DedupKey, Entry | None] = {}
        self.pages: dict[SequencePage, FoundRows] = {}
        self.delayed_after: dict[DelayedAfter, int] = {}
        self.purged: dict[Scope, int] = {Scope.LIVE: 0, Scope.FAILED: 0}
        self.paused: str | None = None
        self.paused_groups: dict[str, str] = {}
        self.enqueue_mark = 0
        self.receive_mark = 0
        self.schedules: dict[str, Planned] = {}
        self.tasks: dict[int, Task] = {}
        self.next_task = 1
        self.moves: dict[int, int] = {}
        self.next_move = 1
        self.taken: dict[int, int] = {}
        self.used_at: int | None = None
        self.changed_at: int | None = None

    def find(self, sequence: int) -> Message | None:
        """A message in memory, or fetched aside; None if it is settled or not here."""
        return self.messages.get(sequence) or self.aside.get(sequence)

    def knows(self, sequence: int) -> bool:
        """Whether memory can tell what became of a message without asking storage."""
        return (
            sequence in self.messages
            or sequence in self.aside
            or sequence in self.delta
            or sequence in self.cutting
            or not self.has_rows
            or not 0 < sequence <= self.sequence
        )

    def message(self, sequence: int, now: int) -> Message:
        """The message, if it is not settled; one that time takes away is taken away first."""
        message = self.message_or_result(sequence, now)
        if message.state is COMPLETED:
            raise MessageNotFound
        return message

    def message_or_result(self, sequence: int, now: int) -> Message:
        """The message, or what is kept of it if it is completed."""
        message = self.messages.get(sequence) or self.aside.get(sequence)
        if message is None:
            if not self.knows(sequence):
                raise Lacking(RowOf(sequence))
            raise MessageNotFound
        if message.state is not LEASED and message.is_over(now):
            raise Overdue(message)
        return message

    def with_payload(self, message: Message) -> bytes:
        """The payload of a message; a leased one's is only in its row."""
        if message.payload is None:
            raise Lacking(PayloadOf(message.sequence))
        return message.payload

    def outranks(self, row: Message) -> bool:
        """Whether memory knows better than this stored row."""
        sequence = row.sequence
        return (
            sequence in self.messages
            or sequence in self.delta
            or sequence in self.cutting
            or self.is_purged(row)
        )

    def is_purged(self, row: Message) -> bool:
        """Whether a purge after the row's last change has taken it."""
        if row.state is WAITING or row.state is LEASED:
            return row.as_of < self.purged[Scope.LIVE]
        return row.state is FAILED and row.as_of < self.purged[Scope.FAILED]

    def settled(self, message: Message) -> None:
        """A message is over: only the need to remove its row remains."""
        sequence = message.sequence
        self.messages.pop(sequence, None)
        if self.aside:
            self.aside.pop(sequence, None)
        if message.stored:
            message.payload = None
            self.delta[sequence] = message
        else:
            self.delta.pop(sequence, None)

    def dedup_key(self, key: str, group: str | None) -> DedupKey:
        """A key within its scope."""
        return ((group or "") if self.settings.dedup_scope is DedupScope.GROUP else "", key)

    def key_of(self, message: Message) -> DedupKey:
        """The dedup key a message was given, within its scope."""
        assert message.options.dedup_key is not None
        return self.dedup_key(message.options.dedup_key, message.options.group)

    def entry(self, key: DedupKey) -> Entry | None:
        """Who holds a key, as far as memory knows."""
        for known in (self.delta_keys, self.cutting_keys, self.aside_keys):
            if key in known:
                entry = known[key]
                return None if entry is None or entry.as_of < self.purged[Scope.LIVE] else entry
        return None

    def knows_key(self, key: DedupKey) -> bool:
        """Whether memory can tell who holds a key without asking storage."""
        return (
            not self.has_keys or key in self.delta_keys or key in self.cutting_keys or key in self.aside_keys
        )

    def push_lease_end(self, message: Message) -> None:
        """Time the end of a lease."""
        ends = self.lease_ends
        heappush(ends, (message.lease_expires_at, message.sequence))
        if len(ends) > SLACK and len(ends) > 2 * len(self.leases) + SLACK:
            ends[:] = [(held.lease_expires_at, held.sequence) for held in self.leases.values()]
            heapify(ends)

    def next_lease_end(self) -> int | None:
        """When the first running lease ends."""
        ends = self.lease_ends
        while ends:
            instant, sequence = ends[0]
            held = self.leases.get(sequence)
            if held is not None and held.lease_expires_at == instant:
                return instant
            heappop(ends)
        return None

    def push_end(self, message: Message) -> None:
        """Time when a waiting message expires or a failed one is dropped."""
        instant = message.ends_at
        if instant is None:
            return
        heap = self.ends.heap
        if len(heap) > 2 * len(self.messages) + SLACK:
            timed = ((held.ends_at, held.sequence) for held in self.messages.values())
            heap[:] = [(end, sequence) for end, sequence in timed if end is not None]
            heapify(heap)
        else:
            heappush(heap, (instant, message.sequence))

    def next_end(self) -> Key | None:
        """The first message in memory that time takes away, and when."""
        heap = self.ends.heap
        while heap:
            instant, sequence = heap[0]
            message = self.messages.get(sequence)
            if message is not None and message.ends_at == instant:
                return heap[0]
            heappop(heap)
        return None

    def forget_aside(self) -> None:
        """Drop what was fetched for a batch that is over."""
        if self.aside or self.aside_keys or self.pages or self.delayed_after:
            self.aside.clear()
            self.aside_keys.clear()
            self.pages.clear()
            self.delayed_after.clear()
        self.in_inbox = None

    def check(self) -> None:
        """Every invariant memory can check on itself."""
        counts = {WAITING: 0, LEASED: 0, FAILED: 0, MOVING: 0, COMPLETED: 0}
        gates: dict[tuple[str, str], int] = {}
        for sequence, message in self.messages.items():
            _ensure(message.sequence == sequence, "a message is filed under its sequence")
            _ensure(message.state in counts, "a settled message is not in memory")
            _ensure(message.state is not COMPLETED or message.is_result, "only a result outlives its message")
            counts[message.state] += 1
            lane_id = message.lane_id
            if message.state is LEASED:
                _ensure(self.leases.get(sequence) is message, "a leased message is among the leases")
                if lane_id is not None:
                    gates[lane_id[:2]] = gates.get(lane_id[:2], 0) + 1
            limit = message.options.max_attempts
            _ensure(0 <= message.attempts <= message.receives, "attempts are receives not given back")
            _ensure(limit is None or message.attempts <= limit, "attempts stay within the message's bound")
        _ensure(counts[LEASED] == len(self.leases) == self.counters.leased, "all leases are in memory")
        for state, count in counts.items():
            _ensure(count <= getattr(self.counters, state.value), f"no more {state.value} than counted")
        for name, gate in self.order.gates.items():
            _ensure(gate.leased == gates.pop(name, 0), "a gate counts its leases")
        _ensure(not gates, "a leased message's gate is known")
        _ensure(self.counters.balance() == 0, "nothing is lost and nothing comes from nowhere")


def _ensure(holds: object, promise: str) -> None:
    if not holds:
        raise BrokenInvariant(f"broken: {promise}")
