"""A table on the wire: an Arrow IPC stream whose schema says which version of hq's tables it is."""

from __future__ import annotations

import pyarrow as pa

VERSION = 1
"""Grows when a column changes its meaning or goes; a reader refuses what is newer than it knows."""

_METADATA = {"hq_tables": str(VERSION)}


def stream_of(batch: pa.RecordBatch) -> bytes:
    """One batch as a whole stream."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema.with_metadata(_METADATA)) as stream:
        stream.write_batch(batch)
    written: bytes = sink.getvalue().to_pybytes()
    return written
