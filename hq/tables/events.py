"""The journal as a table: a row for every event, in order, made a column at a time.

No event is made that only a table wants. Stored records are read into structs the garbage collector leaves
alone, those of a kind become columns at once, and the columns of all kinds are laid back into the order of
the journal.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from itertools import groupby
from operator import attrgetter
from typing import Any, Union, get_args

import msgspec
import numpy as np
import pyarrow as pa

from hq.backends.codec import decode_events, read_events
from hq.backends.packing import names_of
from hq.backends.port import JournalRow
from hq.domain import events as e
from hq.domain.messages import PLAIN, Options
from hq.tables.arrays import HEADERS, INSTANT, Numbers, array_of, chosen, message_ids
from hq.tables.told import KINDS, told

SCHEMA = pa.schema(
    [
        pa.field("position", pa.int64(), nullable=False),
        pa.field("queue", pa.string()),
        pa.field("sequence", pa.int64(), nullable=False),
        pa.field("event", pa.string(), nullable=False),
        pa.field("at", INSTANT, nullable=False),
        pa.field("message_id", pa.string()),
        pa.field("attempts", pa.int32()),
        pa.field("receives", pa.int32()),
        pa.field("holder", pa.string()),
        pa.field("lease_expires_at", INSTANT),
        pa.field("available_at", INSTANT),
        pa.field("expires_at", INSTANT),
        pa.field("was", pa.string()),
        pa.field("reason", pa.string()),
        pa.field("error", pa.string()),
        pa.field("priority", pa.int32()),
        pa.field("group", pa.string()),
        pa.field("concurrency_key", pa.string()),
        pa.field("dedup_key", pa.string()),
        pa.field("origin_id", pa.string()),
        pa.field("content_type", pa.string()),
        pa.field("headers", HEADERS),
        pa.field("payload", pa.binary()),
        pa.field("detail", pa.string()),
    ]
)
"""What an event says that is not of a message is in `detail`, as JSON."""

Record = Any
"""A stored event: its fields as they were packed."""

_RECORDS: dict[int, type[msgspec.Struct]] = {
    cls.kind: msgspec.defstruct(
        cls.__name__,
        [(name, Any, None) for name in names_of(cls)],
        array_like=True,
        tag=cls.kind,
        gc=False,
    )
    for cls in get_args(e.Event)
}
_read = msgspec.msgpack.Decoder(list[Union[tuple(_RECORDS.values())]]).decode  # type: ignore[misc] # noqa: UP007 - made at run time
_EVENTS = {_RECORDS[cls.kind]: cls for cls in get_args(e.Event)}
_OF_MESSAGES = {_RECORDS[cls.kind] for cls in get_args(e.MessageEvent)}
_ENQUEUED = _RECORDS[e.Enqueued.kind]
_OPTIONS = {name: place for place, name in enumerate(names_of(Options))}
_NOT_DETAILS = {"kind", "sequence", "at"}
_encode = msgspec.json.Encoder().encode


class _Kind:
    """The records of one kind on a page."""

    def __init__(self, cls: type[msgspec.Struct]) -> None:
        self.cls = cls
        self.records: list[Record] = []

    def values(self, name: str) -> Sequence[Any] | None:
        """What they, or the options of their messages, say under this name; None if they say nothing."""
        if name in self.cls.__struct_fields__:
            return list(map(attrgetter(name), self.records))
        if self.cls is _ENQUEUED and name in _OPTIONS:
            return self._option(_OPTIONS[name], getattr(PLAIN, name))
        return None

    @cached_property
    def _options(self) -> list[dict[int, Any]]:
        return [record.options or {} for record in self.records]

    @cached_property
    def _said_by_some(self) -> set[int]:
        return set().union(*self._options)

    def _option(self, place: int, default: object) -> Sequence[Any] | None:
        if place in self._said_by_some:
            return [options.get(place, default) for options in self._options]
        return [default] * len(self.records) if default else None


class _Page:
    """Journal rows as records, in order and by kind."""

    def __init__(self, rows: Sequence[JournalRow], names: Mapping[int, str], incarnation: int) -> None:
        self.rows = rows
        self.names = names
        self.incarnation = incarnation
        self.records: list[Record] = []
        for row in rows:
            self.records += read_events(row, _read)
        self.counts = [row.last - row.first + 1 for row in rows]
        self.queues: Numbers = self.spread([row.queue for row in rows])
        found: dict[type[msgspec.Struct], _Kind] = {}
        places, lengths = [], []
        # Events of one append are mostly of one kind: runs of them are cheaper to sort than each by itself.
        for cls, run in groupby(self.records, type):
            kind = found.setdefault(cls, _Kind(cls))
            before = len(kind.records)
            kind.records += run
            lengths.append(len(kind.records) - before)
            places.append(list(found).index(cls))
        self.kinds = list(found.values())
        self.which: Numbers = np.repeat(np.array(places, np.int64), lengths)
        self._order = np.argsort(self.which, kind="stable")
        self._back = np.empty_like(self._order)
        self._back[self._order] = np.arange(len(self._order))

    def spread(self, values: list[int]) -> Numbers:
        """Values of rows, once for each of their events."""
        return np.repeat(np.array(values, np.int64), self.counts)

    def by_kind(self, numbers: Numbers) -> list[Numbers]:
        """Numbers of all events, kind by kind."""
        ends = np.cumsum([len(kind.records) for kind in self.kinds])
        return np.split(numbers[self._order], ends[:-1])

    def in_order(self, parts: list[pa.Array]) -> pa.Array:
        """Parts made kind by kind, in the order of the journal."""
        return parts[0] if len(parts) == 1 else pa.concat_arrays(parts).take(pa.array(self._back))


def events_batch(
    rows: Sequence[JournalRow], names: Mapping[int, str], incarnation: int, columns: Sequence[str]
) -> pa.RecordBatch:
    """The events of these rows; `names` are those of the queues, by number."""
    schema = pa.schema([SCHEMA.field(name) for name in columns])
    if not rows:
        return pa.RecordBatch.from_pylist([], schema)
    page = _Page(rows, names, incarnation)
    arrays = [_MADE[name](page) if name in _MADE else _said(page, name) for name in columns]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def _said(page: _Page, name: str) -> pa.Array:
    """A column of what records say themselves."""
    arrow = SCHEMA.field(name).type
    said = [(kind, kind.values(name)) for kind in page.kinds]
    if all(values is None for _, values in said):
        return pa.nulls(len(page.records), arrow)
    return page.in_order(
        [
            pa.nulls(len(kind.records), arrow) if values is None else array_of(values, arrow)
            for kind, values in said
        ]
    )


def _positions(page: _Page) -> pa.Array:
    return pa.array(page.spread([row.position for row in page.rows]))


def _queues(page: _Page) -> pa.Array:
    numbers, places = np.unique(page.queues, return_inverse=True)
    return chosen([page.names.get(int(number)) for number in numbers], places)


def _events(page: _Page) -> pa.Array:
    return chosen([KINDS[_EVENTS[kind.cls]] for kind in page.kinds], page.which)


def _message_ids(page: _Page) -> pa.Array:
    parts = []
    for kind, queues in zip(page.kinds, page.by_kind(page.queues), strict=True):
        name = "sequence" if kind.cls is _ENQUEUED else "message"
        if name not in kind.cls.__struct_fields__:
            parts.append(pa.nulls(len(kind.records), pa.string()))
        else:
            sequences = np.array(kind.values(name), np.int64)
            parts.append(message_ids(page.incarnation, queues, sequences))
    return page.in_order(parts)


def _details(page: _Page) -> pa.Array:
    """JSON for the few that are not of a message: these alone are made into events."""
    rare = {_EVENTS[kind.cls] for kind in page.kinds if kind.cls not in {*_OF_MESSAGES, _ENQUEUED}}
    if not rare:
        return pa.nulls(len(page.records), pa.string())
    found: list[str | None] = []
    for row, count in zip(page.rows, page.counts, strict=True):
        here = page.records[len(found) : len(found) + count]
        if rare.isdisjoint(_EVENTS[type(record)] for record in here):
            found += [None] * count
        else:
            events = decode_events(row.queue, row.epoch, row.first, row.last, row.body)
            found += [_detail(event) if type(event) in rare else None for event in events]
    return pa.array(found, pa.string())


def _detail(event: e.Event) -> str:
    return _encode({name: value for name, value in told(event).items() if name not in _NOT_DETAILS}).decode()


_MADE: dict[str, Callable[[_Page], pa.Array]] = {
    "position": _positions,
    "queue": _queues,
    "event": _events,
    "message_id": _message_ids,
    "detail": _details,
}
