"""Arrow arrays made from many values at once: instants, texts that repeat, message ids."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

INSTANT = pa.timestamp("us", tz="UTC")
HEADERS = pa.map_(pa.string(), pa.string())
_US_PER_MS = 1_000
_DASHES = (8, 13, 18, 23)
_TEXT = 36
_VERSION = 0x8000
_VARIANT = 1 << 63
_LOW_BITS = 58

Numbers = npt.NDArray[np.int64]


def array_of(values: Sequence[Any], kind: pa.DataType) -> pa.Array:
    """Values of one type, or None; instants come in milliseconds."""
    if kind == INSTANT:
        return pc.multiply(pa.array(values, pa.int64()), _US_PER_MS).cast(INSTANT)
    if kind == HEADERS and not any(values):
        return pa.nulls(len(values), HEADERS)
    if kind == HEADERS:
        return pa.array([[tuple(pair) for pair in one] if one else None for one in values], HEADERS)
    return pa.array(values, kind)


def chosen(texts: Sequence[str | None], places: Numbers) -> pa.Array:
    """For each place the text there."""
    return pa.array(texts, pa.string()).take(pa.array(places))


def message_ids(incarnation: int, queues: Numbers, sequences: Numbers) -> pa.Array:
    """The ids of many messages, as hq.domain.ids.MessageId writes each.

    All digits come out of one call; a million ids one by one would take a second.
    """
    count = len(sequences)
    halves = np.empty((count, 2), np.uint64)
    queue = queues.astype(np.uint64)
    halves[:, 0] = np.uint64(incarnation << 32 | _VERSION) | queue >> np.uint64(16) << np.uint64(16)
    halves[:, 0] |= queue >> np.uint64(4) & np.uint64(0xFFF)
    halves[:, 1] = np.uint64(_VARIANT) | (queue & np.uint64(0xF)) << np.uint64(_LOW_BITS)
    halves[:, 1] |= sequences.astype(np.uint64)
    digits = np.frombuffer(halves.astype(">u8").tobytes().hex().encode(), np.uint8).reshape(count, 32)
    text = np.full((count, _TEXT), ord("-"), np.uint8)
    text[:, [place for place in range(_TEXT) if place not in _DASHES]] = digits
    offsets = np.arange(count + 1, dtype=np.int32) * np.int32(_TEXT)
    return pa.StringArray.from_buffers(count, pa.py_buffer(offsets), pa.py_buffer(text))
