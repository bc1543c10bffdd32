"""Checkpoints: what a queue writes down of itself, a chunk at a time, and how it forgets what is written.

A checkpoint begins by noting the mark, its last sequence, and the small state as it is then. The rows follow
in chunks cut from memory as it is at each cut, so they may be newer than the mark; `as_of` says how new. The
mark is written with the last chunk. Before that, loading starts from the mark before; so a checkpoint that
ends anywhere is harmless.

A message's dedup key is always cut with it: replaying an event of a message whose row is gone can no longer
free a key (see loading.py).
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from hq.domain.counters import Counters
from hq.domain.lookups import END, START, DedupKey, Entry
from hq.domain.messages import FAILED, LEASED, MOVING, WAITING, Message
from hq.domain.ordering import Order, Shelf
from hq.domain.schedules import Planned
from hq.domain.settings import Settings
from hq.domain.state import QueueState
from hq.domain.tasks import Scope, Task

_KEPT = (WAITING, LEASED, FAILED, MOVING)


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A queue's small state as it was at a sequence: everything but messages and dedup keys."""

    settings: Settings
    sequence: int = 0
    time: int = 0
    epoch: int = 0
    counters: Counters = field(default_factory=Counters)
    purged: dict[Scope, int] = field(default_factory=lambda: dict.fromkeys(Scope, 0))
    paused: str | None = None
    paused_groups: dict[str, str] = field(default_factory=dict)
    enqueue_mark: int = 0
    receive_mark: int = 0
    schedules: dict[str, Planned] = field(default_factory=dict)
    tasks: dict[int, Task] = field(default_factory=dict)
    next_task: int = 1
    moves: dict[int, int] = field(default_factory=dict)
    next_move: int = 1
    taken: dict[int, int] = field(default_factory=dict)
    used_at: int | None = None
    changed_at: int | None = None


class Chunk(NamedTuple):
    """What one write of a checkpoint stores and removes; the last one carries the snapshot."""

    rows: list[Message]
    gone: list[int]
    keys: dict[DedupKey, Entry | None]
    snapshot: Snapshot | None


def snapshot(state: QueueState) -> Snapshot:
    """A copy of the small state."""
    return Snapshot(
        settings=state.settings,
        sequence=state.sequence,
        time=state.time,
        epoch=state.epoch,
        counters=replace(state.counters),
        purged=dict(state.purged),
        paused=state.paused,
        paused_groups=dict(state.paused_groups),
        enqueue_mark=state.enqueue_mark,
        receive_mark=state.receive_mark,
        schedules={name: replace(planned) for name, planned in state.schedules.items()},
        tasks=dict(state.tasks),
        next_task=state.next_task,
        moves=dict(state.moves),
        next_move=state.next_move,
        taken=dict(state.taken),
        used_at=state.used_at,
        changed_at=state.changed_at,
    )


class Checkpoint:
    """One checkpoint under way: cut a chunk, write it, confirm it; again until there is none."""

    __slots__ = ("_keys", "_messages", "_snapshot", "_state")

    def __init__(self, state: QueueState) -> None:
        assert not state.cutting, "one checkpoint at a time"
        assert not state.cutting_keys, "one checkpoint at a time"
        self._state = state
        self._snapshot: Snapshot | None = snapshot(state)
        state.cutting, state.delta = state.delta, {}
        state.cutting_keys, state.delta_keys = state.delta_keys, {}
        self._messages = deque(state.cutting.values())
        self._keys = deque(state.cutting_keys)

    def cut(self, limit: int, most_bytes: int = 1 << 40) -> Chunk | None:
        """The next chunk, of memory as it is now; None when all is written.

        It has up to `limit` rows and keys, and ends with the row whose payload brings it to `most_bytes`.

        It may only be written once every event applied so far is durable.
        """
        mark = self._snapshot
        if mark is None:
            return None
        chunk = Chunk([], [], {}, mark)
        size = 0
        for _ in range(limit):
            if self._keys:
                self._cut_key(self._keys.popleft(), chunk)
            elif self._messages and size < most_bytes:
                size += self._cut_message(self._messages.popleft(), chunk)
        if self._keys or self._messages:
            return chunk._replace(snapshot=None)
        self._snapshot = None
        return chunk

    def confirm(self, chunk: Chunk) -> None:
        """The chunk is durable: memory need not hold what it wrote."""
        state = self._state
        for row in chunk.rows:
            message = state.cutting.pop(row.sequence, None)
            if message is None:  # purged since it was cut
                continue
            counts = row.state is WAITING and not state.is_purged(row)
            message.stored_at = row.available_at if counts else -1
            if row.payload is not None and row.payload is message.payload:
                message.fresh = False
            if message.state is LEASED and not message.fresh:
                message.payload = None
        for sequence in chunk.gone:
            state.cutting.pop(sequence, None)
        for key in chunk.keys:
            state.cutting_keys.pop(key, None)
        if chunk.snapshot is not None:
            state.cutting.clear()
            state.cutting_keys.clear()

    def _cut_key(self, key: DedupKey, chunk: Chunk) -> None:
        entry = self._state.entry(key)
        if entry is not None and not entry.live and entry.until <= self._state.time:
            entry = None
        chunk.keys[key] = entry
        self._state.has_keys = True

    def _cut_message(self, message: Message, chunk: Chunk) -> int:
        """Add a message to a chunk; how many bytes of payload that is."""
        state = self._state
        if state.is_purged(message):
            return 0
        if message.options.dedup_key is not None:
            key = state.key_of(message)
            if key in state.delta_keys or key in state.cutting_keys:
                self._cut_key(key, chunk)
        if message.state in _KEPT or message.is_result:
            row = message.row()
            if message.stored and not message.fresh:
                row.payload = None
            else:
                # Memory must keep the payload until the chunk is written.
                message.fresh = True
            chunk.rows.append(row)
            message.stored = state.has_rows = True
            return len(row.payload or b"")
        if message.stored:
            chunk.gone.append(message.sequence)
        return 0


def shed(state: QueueState) -> None:
    """Forget everything storage has: what is left is leases, changes since the checkpoint, small state."""
    changed = {**state.cutting, **state.delta}
    for sequence, message in list(state.messages.items()):
        if message.state is not LEASED and sequence not in changed:
            del state.messages[sequence]
    state.forget_aside()
    state.order = order = Order(state.messages)
    order.bounds_known = not state.has_rows
    state.ends = Shelf(START if state.has_rows else END)
    for message in (*state.messages.values(), *changed.values()):
        message.lane = None
        message.offered = message.placed = -1
    for message in {**changed, **state.leases}.values():
        lane_id = message.lane_id
        if lane_id is not None and message.stored:
            order.lane(lane_id).eager = True
    for message in state.messages.values():
        if message.state is LEASED and message.place is not None:
            order.lane_of(message).gate.leased += 1
        elif message.state is WAITING:
            order.add(message)
        state.push_end(message)
    for gate in list(order.gates.values()):
        order.reopen(gate)
