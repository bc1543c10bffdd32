"""Tables of a server, over HTTP as Arrow, a page at a time."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any
from urllib.parse import quote

import pyarrow as pa

from pyspark_hq.errors import DataLost, HqError, Refused
from pyspark_hq.options import Options
from pyspark_hq.requests import Answer, Requests
from pyspark_hq.stores import Bounds, Span

ARROW = "application/vnd.apache.arrow.stream"
VERSION = 1
"""The newest version of hq's tables that this reads."""
PAGE = 10_000


def open_store(options: Options, patience_ms: int) -> ServerStore:
    """The store of the server at the job's url."""
    return ServerStore(options, patience_ms)


class ServerStore:
    """Pages of at most so many entries; the server cuts them shorter if they are large."""

    def __init__(self, options: Options, patience_ms: int) -> None:
        self._requests = Requests(options, patience_ms)
        self._queue = options.queue

    def schema(self, table: str, columns: Sequence[str] | None) -> pa.Schema:
        path = _path(table, self._queue)
        query: dict[str, Any] = {"upto": 0, "columns": None if columns is None else ",".join(columns)}
        query |= {"queue": self._queue} if table == "events" else {"table": table}
        try:
            batches, _ = self._page(path, query)
        except Refused as refusal:
            if refusal.code != "queue_not_found":
                raise
            raise Refused(
                f"there is no queue {self._queue!r} at {self._requests.url}", refusal.code
            ) from None
        return batches.schema

    def bounds(self) -> Bounds:
        told = self._requests.get("/journal/bounds").json()
        return Bounds(told["last"], told["pruned"], told["incarnation"])

    def reach(self, after: int, events: int) -> int:
        reached: int = self._requests.get("/journal/bounds", {"after": after, "events": events}).json()[
            "reach"
        ]
        return reached

    def count(self, span: Span) -> int:
        events: int = self._requests.get("/journal/bounds", span._asdict()).json()["count"]
        return events

    def archived(self, upto: int, incarnation: int, manifest: str) -> int:
        """Tell the server up to where its journal is archived; up to where that now is."""
        said = {"to": upto, "incarnation": incarnation, "manifest": manifest}
        archived: int = self._requests.put("/journal/archived", json.dumps(said).encode()).json()["archived"]
        return archived

    def events(self, span: Span, queue: str | None, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        query = {"queue": queue, "columns": ",".join(columns), "limit": PAGE}
        try:
            yield from self._pages("/journal", span, query)
        except Refused as refusal:
            if refusal.code == "journal_pruned":
                raise DataLost(str(refusal)) from refusal
            raise

    def close(self) -> None:
        self._requests.close()

    def last_sequence(self, queue: str) -> int:
        sequence: int = self._requests.get(f"/queues/{quote(queue, safe='')}/stats").json()["sequence"]
        return sequence

    def messages(
        self, table: str, queue: str, span: Span, columns: Sequence[str]
    ) -> Iterator[pa.RecordBatch]:
        query = {"table": table, "columns": ",".join(columns), "limit": PAGE}
        return self._pages(_path(table, queue), span, query)

    def _pages(self, path: str, span: Span, query: dict[str, Any]) -> Iterator[pa.RecordBatch]:
        """All of a range. While one page is worked on, the server makes the next."""
        if span.after >= span.upto:
            return
        with ThreadPoolExecutor(1) as ahead:

            def ask(after: int) -> Future[tuple[pa.RecordBatchStreamReader, int]]:
                return ahead.submit(self._page, path, {**query, "after": after, "upto": span.upto})

            after, coming = span.after, ask(span.after)
            while True:
                batches, reached = coming.result()
                is_last = not after < reached < span.upto
                if not is_last:
                    after, coming = reached, ask(reached)
                yield from batches
                if is_last:
                    return

    def _page(self, path: str, query: dict[str, Any]) -> tuple[pa.RecordBatchStreamReader, int]:
        answer: Answer = self._requests.get(path, query, ARROW)
        try:
            batches = pa.ipc.open_stream(answer.body)
        except pa.ArrowInvalid as error:
            text = f"{self._requests.url} does not answer as hq does (no Arrow): check the url"
            raise Refused(text) from error
        version = int((batches.schema.metadata or {}).get(b"hq_tables", VERSION))
        if version > VERSION:
            raise HqError(
                f"hq at {self._requests.url} writes tables of version {version}, newer than the"
                f" {VERSION} read here: install the hq-queue of that server for this job"
            )
        return batches, answer.reached


def _path(table: str, queue: str | None) -> str:
    return "/journal" if table == "events" else f"/queues/{quote(queue or '', safe='')}/export"
