"""Writing: a message for every row, each with a key, so that a row that is written twice is one message.

Spark runs a task again when it failed, when it is slow, or when its driver died before it had noted the end.
The key and the window in which a queue remembers it make all of that harmless. What is stored is stored: a
job that fails leaves the messages it has sent, and the same job run again adds only those that are missing.
"""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pyarrow as pa
from pyspark.sql.datasource import DataSourceArrowWriter, DataSourceStreamArrowWriter, WriterCommitMessage
from pyspark.sql.types import (
    BinaryType,
    ByteType,
    DataType,
    IntegerType,
    LongType,
    MapType,
    ShortType,
    StringType,
    StructType,
)

from pyspark_hq.errors import HqError, OptionInvalid, Refused, Unreachable
from pyspark_hq.options import Options
from pyspark_hq.requests import Requests, Wait

MAX_BODY_BYTES = 2 << 20
"""A request is sent before it grows beyond this; one message may be larger."""
JSON = "application/json"
BYTES = "application/octet-stream"

_INTEGERS = (ByteType, ShortType, IntegerType, LongType)
_COLUMNS: dict[str, tuple[type[DataType], ...]] = {
    "payload": (StringType, BinaryType),
    "content_type": (StringType,),
    "headers": (MapType,),
    "group": (StringType,),
    "concurrency_key": (StringType,),
    "priority": _INTEGERS,
    "delay_ms": _INTEGERS,
    "ttl_ms": _INTEGERS,
    "max_attempts": _INTEGERS,
    "lease_ms": _INTEGERS,
}
# What a queue or its server refuses now and may take later; with a key, asking again is safe.
_FOR_NOW = {
    "overloaded", "memory_full", "queue_full", "rate_limited", "outcome_unknown", "not_stored", "not_owner",
    "queue_unavailable", "storage", "storage_full", "storage_timeout", "database_locked",
}  # fmt: skip


@dataclass
class Written(WriterCommitMessage):
    """What one task has done: messages stored by it, and rows that were stored before."""

    stored: int
    duplicates: int


class _Rows:
    """What both sinks share: the columns, checked once, and how rows become requests."""

    def __init__(self, options: Options, schema: StructType, patience_ms: int) -> None:
        self._options = options
        if options.queue is None:
            raise OptionInvalid("say which queue to write to in the option queue")
        self._columns = schema.names
        _check_columns(options, schema)
        requests = Requests(options, patience_ms)
        try:
            requests.get(self._path)
        except Refused as refusal:
            if refusal.code != "queue_not_found":
                raise
            raise Refused(f"there is no queue {options.queue!r} at {options.url}", refusal.code) from None
        kind = schema["payload"].dataType
        self._content_type = options.content_type or (BYTES if isinstance(kind, BinaryType) else JSON)

    @property
    def _path(self) -> str:
        return f"/queues/{quote(self._options.queue or '', safe='')}"

    def write(self, iterator: Iterator[pa.RecordBatch]) -> Written:
        """Send all rows of a task."""
        sending = _Sending(Requests(self._options, self._options.retry_ms), self._path, self._options)
        for batch in iterator:
            columns = [column.to_pylist() for column in batch.columns]
            for values in zip(*columns, strict=True):
                sending.add(self._message(dict(zip(self._columns, values, strict=True))))
        sending.send()
        return Written(sending.stored, sending.duplicates)

    def _message(self, row: dict[str, Any]) -> dict[str, Any]:
        options = self._options
        payload = row.pop("payload")
        if payload is None:
            raise HqError("a row has no payload: a message has at least an empty one")
        content = payload.encode() if isinstance(payload, str) else payload
        if options.key_from is None:
            key = row.pop(options.key_column)
            if key is None:
                raise HqError(f"a row has no {options.key_column}: without a key it could be stored twice")
        else:
            key = _hash(content, row)
        message = {name: value for name, value in row.items() if value is not None}
        if "headers" in message:
            message["headers"] = dict(message["headers"])
        message.setdefault("content_type", self._content_type)
        message["dedup_key"] = str(key)
        message["dedup_ms"] = options.dedup_ms
        message["payload_base64"] = b64encode(content).decode()
        return message


class MessageSink(_Rows, DataSourceArrowWriter):
    """Batch writing. Nothing is left to be done in the end: a message is there as soon as it is stored."""

    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        """All tasks have stored all their rows; say how many, if that is wanted."""
        if self._options.summary_file is not None:
            done = [one for one in messages if isinstance(one, Written)]
            summary = {name: sum(getattr(one, name) for one in done) for name in ("stored", "duplicates")}
            Path(self._options.summary_file).write_text(json.dumps(summary))

    def abort(self, messages: list[WriterCommitMessage | None]) -> None:
        """What is stored may be with a consumer already, and stays; the job run again adds the rest."""


class MessageStreamSink(_Rows, DataSourceStreamArrowWriter):
    """The same for a stream, batch by batch."""

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803 - Spark's
        """All tasks of a batch have stored all their rows."""

    def abort(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803 - Spark's
        """As with a batch job: the batch is written again, and adds the rest."""


class _Sending:
    """Messages on their way, in requests of bounded size."""

    def __init__(self, requests: Requests, path: str, options: Options) -> None:
        self._requests = requests
        self._path = f"{path}/messages"
        self._options = options
        self._waiting: list[bytes] = []
        self._bytes = 0
        self.stored = 0
        self.duplicates = 0

    def add(self, message: dict[str, Any]) -> None:
        """Send this with the next request."""
        encoded = json.dumps(message, separators=(",", ":")).encode()
        if self._waiting and self._bytes + len(encoded) > MAX_BODY_BYTES:
            self.send()
        self._waiting.append(encoded)
        self._bytes += len(encoded)
        if len(self._waiting) == self._options.batch_rows:
            self.send()

    def send(self) -> None:
        """Send what waits until the server has taken all of it."""
        wait = Wait(self._options.retry_ms)
        waiting, self._waiting, self._bytes = self._waiting, [], 0
        while waiting:
            waiting, refusal = self._once(waiting)
            if waiting and not wait.once():
                raise Unreachable(
                    f"queue {self._options.queue!r} at {self._options.url} takes no more messages: {refusal}"
                )

    def _once(self, waiting: list[bytes]) -> tuple[list[bytes], str]:
        """Send these; which of them were refused for now, and why."""
        answer = self._requests.post(self._path, b"[" + b",".join(waiting) + b"]").json()
        left, why = [], ""
        for message, result in zip(waiting, answer["results"], strict=True):
            refusal = result.get("error")
            if refusal is None:
                self.duplicates += result["duplicate"]
                self.stored += not result["duplicate"]
            elif refusal["code"] in _FOR_NOW:
                left.append(message)
                why = refusal["detail"]
            else:
                key = json.loads(message)["dedup_key"]
                raise Refused(
                    f"queue {self._options.queue!r} refuses the row of key {key!r}: {refusal['detail']}"
                    f" ({refusal['code']})",
                    refusal["code"],
                )
        return left, why


def _check_columns(options: Options, schema: StructType) -> None:
    known = dict(_COLUMNS)
    if options.key_from is None:
        if options.key_column not in schema.names:
            raise OptionInvalid(
                f"rows need a key, so that one written twice is one message: there is no column"
                f" {options.key_column!r}; name one in key_column, or set key_from to hash"
            )
        known[options.key_column] = (StringType, *_INTEGERS)
    if "payload" not in schema.names:
        raise OptionInvalid("there is no column 'payload': make one, such as to_json(struct('*')) AS payload")
    for field in schema.fields:
        if field.name not in known:
            raise OptionInvalid(
                f"a message has no {field.name!r}: drop the column, or put it into the payload;"
                f" there are {', '.join(known)}"
            )
        if not isinstance(field.dataType, known[field.name]):
            raise OptionInvalid(f"column {field.name!r} cannot be of type {field.dataType.simpleString()}")


def _hash(content: bytes, row: dict[str, Any]) -> str:
    """A key that is the same for rows that say the same."""
    said = json.dumps(sorted(row.items()), default=str, separators=(",", ":")).encode()
    return sha256(len(said).to_bytes(8) + said + content).hexdigest()
