"""The store a lake is of: where its journal is read, and whom to tell what is archived."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass

from pyspark_hq.options import Options
from pyspark_hq.server import ServerStore
from pyspark_hq.stores import Store, open_store


@dataclass(frozen=True)
class Place:
    """A server or a database by its url, and what it is asked with."""

    url: str = "http://127.0.0.1:9999"
    token_file: str | None = None
    schema: str = "hq"
    retry_ms: int = 60_000

    @property
    def options(self) -> dict[str, str]:
        """As Spark takes them."""
        said = {"url": self.url, "schema": self.schema, "retry_ms": str(self.retry_ms)}
        return said if self.token_file is None else {**said, "token_file": self.token_file}

    @contextmanager
    def opened(self) -> Iterator[Store]:
        """The store there."""
        with closing(open_store(Options.parse(self.options), self.retry_ms)) as store:
            yield store

    def tell_archived(self, upto: int, incarnation: int, manifest: str) -> bool:
        """Tell the server up to where a lake has its journal; false if this is no server."""
        with self.opened() as store:
            if not isinstance(store, ServerStore):
                return False
            store.archived(upto, incarnation, manifest)
            return True
