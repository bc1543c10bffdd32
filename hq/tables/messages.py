"""Messages as a table: what waits or is leased, and dead letters, in order of their sequence."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from hq.domain.replies import Seen
from hq.domain.request_keys import producers_key
from hq.tables.arrays import HEADERS, INSTANT, array_of, message_ids

SCHEMA = pa.schema(
    [
        pa.field("message_id", pa.string(), nullable=False),
        pa.field("queue", pa.string(), nullable=False),
        pa.field("sequence", pa.int64(), nullable=False),
        pa.field("state", pa.string(), nullable=False),
        pa.field("attempts", pa.int32(), nullable=False),
        pa.field("receives", pa.int32(), nullable=False),
        pa.field("holder", pa.string()),
        pa.field("lease_expires_at", INSTANT),
        pa.field("enqueued_at", INSTANT, nullable=False),
        pa.field("available_at", INSTANT, nullable=False),
        pa.field("expires_at", INSTANT),
        pa.field("failed_at", INSTANT),
        pa.field("reason", pa.string()),
        pa.field("error", pa.string()),
        pa.field("priority", pa.int32()),
        pa.field("group", pa.string()),
        pa.field("concurrency_key", pa.string()),
        pa.field("dedup_key", pa.string()),
        pa.field("origin_id", pa.string()),
        pa.field("content_type", pa.string(), nullable=False),
        pa.field("headers", HEADERS),
        pa.field("payload", pa.binary(), nullable=False),
    ]
)

_OPTIONS = {"priority", "group", "concurrency_key", "content_type", "headers"}


def messages_batch(
    seen: Sequence[Seen], queue: str, number: int, incarnation: int, columns: Sequence[str]
) -> pa.RecordBatch:
    """These messages of one queue."""
    sequences = np.array([one.message.sequence for one in seen], np.int64)
    made: dict[str, Callable[[], Any]] = {
        "message_id": lambda: message_ids(incarnation, np.full(len(seen), number, np.int64), sequences),
        "queue": lambda: [queue] * len(seen),
        "state": lambda: [one.state for one in seen],
        "lease_expires_at": lambda: [
            one.message.lease_expires_at if one.state == "leased" else None for one in seen
        ],
        "dedup_key": lambda: [producers_key(one.message.options.dedup_key) for one in seen],
        "failed_at": lambda: [one.message.failed_at or None for one in seen],
    }
    arrays = []
    for name in columns:
        arrow = SCHEMA.field(name).type
        if name in made:
            values = made[name]()
        elif name in _OPTIONS:
            values = [getattr(one.message.options, name) for one in seen]
        else:
            values = [getattr(one.message, name) for one in seen]
        arrays.append(values if isinstance(values, pa.Array) else array_of(values, arrow))
    return pa.RecordBatch.from_arrays(arrays, schema=pa.schema([SCHEMA.field(name) for name in columns]))
