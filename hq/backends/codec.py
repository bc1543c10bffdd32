"""Events, snapshots, settings and rows to bytes and back: compact, versioned and checksummed.

Every blob is a version byte, four bytes of checksum and a msgpack body. The checksum covers the version, the
body and the numbers of the place it belongs to (queue, sequences), so a blob that is damaged, cut short or
in another's place is told and never served. That head stays as it is in every version to come: a blob with
a right checksum and an unknown version was written by a newer hq.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from struct import Struct, error
from typing import Any, TypeVar, get_args
from zlib import crc32

from msgspec import DecodeError
from msgspec.msgpack import Decoder, Encoder

from hq.backends.packing import names_of, packer, shape_of, unpacker
from hq.backends.port import JournalRow
from hq.domain.checkpoint import Snapshot
from hq.domain.events import VERSION, Event
from hq.domain.messages import LaneId, Message, State
from hq.domain.settings import Settings
from hq.errors import CallerError, HQError, JournalDamaged, RowDamaged, SchemaTooNew, SnapshotDamaged

Kept = TypeVar("Kept")
_HEAD = Struct(">BI")
_PLACES = {count: Struct(f">{count}q").pack for count in (2, 4, 7)}
_encode = Encoder().encode
_decode = Decoder().decode
# What encoding a batch raises if a value has no place in the journal: a lone surrogate, an integer too large.
UNSTORABLE = (AssertionError, KeyError, OverflowError, TypeError, ValueError)
# Whatever plain values of a wrong shape can raise while they become records again.
_WRONG_SHAPE = (
    DecodeError, error, ArithmeticError, AttributeError, LookupError, TypeError, ValueError, CallerError,
)  # fmt: skip

_KINDS: dict[int, tuple[type[Any], Callable[[list[Any]], list[Any]]]] = {
    cls.kind: (cls, unpacker(cls, names_of(cls))) for cls in get_args(Event)
}
_PACKERS: dict[type[Any], Callable[[Any], Any]] = {
    cls: packer(cls, names_of(cls), kind) for kind, (cls, _) in _KINDS.items()
}
_STATES = {state.value: (number, state) for number, state in enumerate(State)}
# What a row has in no column of its own, in the order of Message.
_BODY = (
    "options", "enqueued_at", "expires_at", "dedup_until", "origin_id", "holds_key", "receives", "attempts",
    "token_hash", "holder", "received_at", "lease_expires_at", "history", "failed_at", "kept_until", "reason",
    "error", "move", "target", "progress",
)  # fmt: skip
_pack_body = packer(Message, _BODY)
_unpack_body = unpacker(Message, _BODY)
_SNAPSHOT = shape_of(Snapshot)
_SETTINGS = shape_of(Settings)


def encode_events(queue: int, epoch: int, events: Sequence[Event]) -> bytes:
    """The events of one batch, whose sequences follow each other."""
    first, last = events[0].sequence, events[-1].sequence
    assert last - first + 1 == len(events), "the sequences of a batch follow each other"
    packers = _PACKERS
    return _sealed((queue, epoch, first, last), [packers[type(event)](event) for event in events])


def decode_events(queue: int, epoch: int, first: int, last: int, blob: bytes) -> list[Event]:
    """The events of one journal row; raises JournalDamaged or SchemaTooNew."""
    events = _unsealed((queue, epoch, first, last), blob, _events, JournalDamaged)
    if (events[0].sequence, events[-1].sequence, len(events)) != (first, last, last - first + 1):
        raise JournalDamaged(f"a journal row of queue {queue} holds other events than {first} to {last}")
    return events


def read_events(row: JournalRow, read: Callable[[memoryview], list[Kept]]) -> list[Kept]:
    """The same by a reader of one's own, who gets the msgpack body: an array of arrays, a kind and fields."""
    _, queue, epoch, first, last, blob = row
    events: list[Kept] = _unsealed((queue, epoch, first, last), blob, _same, JournalDamaged, read)
    if len(events) != last - first + 1:
        raise JournalDamaged(f"a journal row of queue {queue} holds other events than {first} to {last}")
    return events


def encode_snapshot(queue: int, snapshot: Snapshot) -> bytes:
    """A queue's small state."""
    assert _SNAPSHOT.pack is not None
    return _sealed((queue, snapshot.sequence), _SNAPSHOT.pack(snapshot))


def decode_snapshot(queue: int, mark: int, blob: bytes) -> Snapshot:
    """The snapshot of a queue at its mark; raises SnapshotDamaged or SchemaTooNew."""
    assert _SNAPSHOT.unpack is not None
    snapshot: Snapshot = _unsealed((queue, mark), blob, _SNAPSHOT.unpack, SnapshotDamaged)
    return snapshot


def encode_settings(queue: int, settings: Settings) -> bytes:
    """The copy of a queue's settings that lists are made from."""
    assert _SETTINGS.pack is not None
    return _sealed((queue, 0), _SETTINGS.pack(settings))


def decode_settings(queue: int, blob: bytes) -> Settings:
    """A queue's settings; raises SnapshotDamaged or SchemaTooNew."""
    assert _SETTINGS.unpack is not None
    settings: Settings = _unsealed((queue, 0), blob, _SETTINGS.unpack, SnapshotDamaged)
    return settings


def encode_row(queue: int, row: Message) -> bytes:
    """What a message says beside its columns; the checksum covers those too, but not the payload."""
    place = -1 if row.place is None else row.place
    number = _STATES[row.state.value][0]
    numbers = (queue, row.sequence, number, row.rank, row.available_at, place, row.as_of)
    return _sealed(numbers, _pack_body(row))


def columns_of(queue: int, row: Message) -> tuple[object, ...]:
    """A row but for its payload, in the order that the statements of all backends take it."""
    lane = row.lane_id if row.state is State.WAITING else None
    marked = row.state is State.WAITING and lane is None
    return (
        row.state.value, row.rank, row.available_at, row.place, row.as_of, *(lane or (None, None, None)),
        marked, row.ends_at, encode_row(queue, row), queue, row.sequence,
    )  # fmt: skip


def lanes_of(rows: Iterable[Message]) -> set[LaneId]:
    """The lanes that rows wait in."""
    lanes = {row.lane_id for row in rows if row.state is State.WAITING}
    return {lane for lane in lanes if lane is not None}


def payload_check(queue: int, sequence: int, payload: bytes) -> int:
    """The checksum of a payload: its own, because a row may be written again without its payload."""
    return crc32(payload, crc32(_PLACES[2](queue, sequence)))


def checked_payload(queue: int, sequence: int, payload: object, check: int) -> bytes:
    """The payload if it is what was written; else raises RowDamaged."""
    if type(payload) is not bytes or payload_check(queue, sequence, payload) != check:
        raise RowDamaged(f"the payload of message {sequence} of queue {queue} does not match its checksum")
    return payload


def decode_row(queue: int, columns: Sequence[Any]) -> Message:
    """A row from its columns in the order of statements.ROW; raises RowDamaged or SchemaTooNew."""
    sequence, state, rank, available_at, place, as_of, payload, check, blob = columns
    number, known = _STATES.get(state, (-1, State.WAITING))
    if payload is not None:
        checked_payload(queue, sequence, payload, check)
    numbers = (queue, sequence, number, rank, available_at, -1 if place is None else place, as_of)

    def rebuild(values: list[Any]) -> Message:
        options, enqueued_at, expires_at, dedup_until, origin_id, *rest = _unpack_body(values)
        return Message(
            sequence, options, payload, rank, enqueued_at, available_at, expires_at, place, dedup_until,
            origin_id, as_of, known, *rest,
        )  # fmt: skip

    return _unsealed(numbers, blob, rebuild, RowDamaged)


def _same(body: Kept) -> Kept:
    return body


def _events(body: list[list[Any]]) -> list[Event]:
    events: list[Event] = []
    for values in body:
        cls, unpack = _KINDS[values[0]]
        events.append(cls(*unpack(values[1:])))
    return events


def _sealed(numbers: tuple[int, ...], body: object) -> bytes:
    encoded = _encode(body)
    return _HEAD.pack(VERSION, crc32(encoded, crc32(_PLACES[len(numbers)](*numbers), VERSION))) + encoded


def _unsealed(
    numbers: tuple[int, ...],
    blob: bytes,
    rebuild: Callable[[Any], Kept],
    damaged: type[HQError],
    decode: Callable[[memoryview], Any] = _decode,
) -> Kept:
    try:
        version, check = _HEAD.unpack_from(blob)
        encoded = memoryview(blob)[_HEAD.size :]
        if crc32(encoded, crc32(_PLACES[len(numbers)](*numbers), version)) != check:
            raise damaged(f"what is stored at {numbers} does not match its checksum")
        if version > VERSION:
            raise SchemaTooNew(f"what is stored at {numbers} is of version {version}, newer than {VERSION}")
        return rebuild(decode(encoded))
    except _WRONG_SHAPE as cause:
        raise damaged(f"what is stored at {numbers} cannot be read") from cause
