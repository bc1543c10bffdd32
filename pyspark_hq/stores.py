"""Where tables are read: the seam between what Spark asks and what holds the journal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from importlib import import_module
from typing import NamedTuple, Protocol

import pyarrow as pa

from pyspark_hq.errors import HqError, OptionInvalid
from pyspark_hq.options import Options


class Bounds(NamedTuple):
    """The last position that is final, that up to which all is pruned, and whose positions they are."""

    last: int
    pruned: int
    incarnation: int


class Span(NamedTuple):
    """Positions, or sequences, after one and up to another."""

    after: int
    upto: int


class Store(Protocol):
    """One store of journal and messages, read by ranges, so that any part can be read again."""

    def schema(self, table: str, columns: Sequence[str] | None) -> pa.Schema:
        """The columns of a table, or those of them that are named."""

    def bounds(self) -> Bounds:
        """Which positions the journal has."""

    def reach(self, after: int, events: int) -> int:
        """The last position up to which no more than so many events come, or one entry does."""

    def count(self, span: Span) -> int:
        """How many events are in a range of all queues."""

    def events(self, span: Span, queue: str | None, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """The events of a range, of one queue or of all; DataLost if part of it is no longer kept."""

    def close(self) -> None:
        """Let go of what it holds; whoever asks again opens it again."""

    def last_sequence(self, queue: str) -> int:
        """No message of the queue has a higher sequence now."""

    def messages(
        self, table: str, queue: str, span: Span, columns: Sequence[str]
    ) -> Iterator[pa.RecordBatch]:
        """Messages or dead letters of a queue, by their sequence."""


# The one place where a store is chosen: a scheme, and the module whose `open_store` knows it.
_MODULES = {
    "http": "server",
    "https": "server",
    "postgresql": "postgres",
    "postgres": "postgres",
    "sqlite": "sqlite",
}


def open_store(options: Options, patience_ms: int) -> Store:
    """The store at the job's url; what does not answer is asked again for so long."""
    scheme = options.url.partition(":")[0].lower()
    module = _MODULES.get(scheme)
    if module is None:
        raise OptionInvalid(
            f"url must begin with {', '.join(f'{one}://' for one in _MODULES)}, not {scheme}:"
        )
    try:
        opens = import_module(f"pyspark_hq.{module}").open_store
    except ModuleNotFoundError as error:
        raise HqError(
            f"{scheme}:// is read with {error.name}, which is not installed here:"
            " pip install 'hq-queue[postgres,arrow]' wherever the job runs"
        ) from error
    store: Store = opens(options, patience_ms)
    return store
