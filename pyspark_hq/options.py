"""The options of source and sink: every one named, checked once, when the job is planned."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from pyspark_hq.errors import OptionInvalid

TABLES = ("events", "messages", "dead_letters")
WEEK_MS = 7 * 24 * 60 * 60 * 1_000
# An option that Spark takes itself and tells a sink of too.
_OF_SPARK = {"checkpointlocation"}
MAX_ITEMS = 1_000
"""The most messages a server takes in one request."""


@dataclass(frozen=True)
class Options:
    """All of them; the page docs/spark.md says what each is for."""

    url: str = "http://127.0.0.1:9999"
    table: str = "events"
    queue: str | None = None
    columns: tuple[str, ...] | None = None
    payload: bool = True
    from_position: int | None = None
    to_position: int | None = None
    partitions: int = 8
    starting: str = "earliest"
    max_rows_per_trigger: int = 200_000
    fail_on_data_loss: bool = True
    schema: str = "hq"
    key_column: str = "dedup_key"
    key_from: str | None = None
    dedup_ms: int = WEEK_MS
    content_type: str | None = None
    batch_rows: int = MAX_ITEMS
    summary_file: str | None = None
    retry_ms: int = 60_000
    token: str | None = field(default=None, repr=False)
    token_file: str | None = None

    @classmethod
    def parse(cls, said: Mapping[str, str]) -> Options:
        """The options of a job, else OptionInvalid."""
        found: dict[str, Any] = {}
        for name, text in said.items():
            lower = name.lower()
            if lower in _OF_SPARK:
                continue
            if lower == "path":
                raise OptionInvalid("hq has no path: use load() and save() without one, and say where in url")
            if lower not in _READ:
                near = get_close_matches(lower, _READ, 1)
                hint = f"; did you mean {near[0]!r}?" if near else ""
                raise OptionInvalid(f"hq has no option {name!r}{hint}")
            found[lower] = _READ[lower](lower, str(text))
        options = cls(**found)
        if options.table not in TABLES:
            raise OptionInvalid(f"table must be one of {', '.join(TABLES)}, not {options.table!r}")
        if options.table != "events" and options.queue is None:
            raise OptionInvalid(
                f"table {options.table!r} is read of one queue: say which in the option queue"
            )
        if options.key_from not in {None, "hash"}:
            raise OptionInvalid(f"key_from must be hash, not {options.key_from!r}")
        if options.starting not in {"earliest", "latest"} and not options.starting.isdecimal():
            raise OptionInvalid(f"starting must be earliest, latest or a position, not {options.starting!r}")
        return options

    def secret(self) -> str | None:
        """The token: by option, of a file on this machine, or of its environment."""
        if self.token is not None:
            return self.token
        if self.token_file is not None:
            try:
                return Path(self.token_file).read_text().strip()
            except OSError as error:
                raise OptionInvalid(f"token_file cannot be read: {error}") from error
        return os.environ.get("HQ_TOKEN")


def _text(_: str, text: str) -> str:
    return text


def _number(least: int) -> Callable[[str, str], int]:
    def read(name: str, text: str) -> int:
        if not text.isdecimal() or int(text) < least:
            raise OptionInvalid(f"{name} must be an integer of at least {least}, not {text!r}")
        return int(text)

    return read


def _truth(name: str, text: str) -> bool:
    if text.lower() not in {"true", "false"}:
        raise OptionInvalid(f"{name} must be true or false, not {text!r}")
    return text.lower() == "true"


def _names(name: str, text: str) -> tuple[str, ...]:
    names = tuple(part.strip() for part in text.split(","))
    if not all(names) or len(set(names)) != len(names):
        raise OptionInvalid(f"{name} must be names with commas between them, each once, not {text!r}")
    return names


def _batch(name: str, text: str) -> int:
    rows = _number(1)(name, text)
    if rows > MAX_ITEMS:
        raise OptionInvalid(f"{name} must be at most {MAX_ITEMS}, not {text!r}")
    return rows


_READ: dict[str, Callable[[str, str], Any]] = {
    "url": _text,
    "table": _text,
    "queue": _text,
    "columns": _names,
    "payload": _truth,
    "from_position": _number(1),
    "to_position": _number(1),
    "partitions": _number(1),
    "starting": _text,
    "max_rows_per_trigger": _number(1),
    "fail_on_data_loss": _truth,
    "schema": _text,
    "key_column": _text,
    "key_from": _text,
    "dedup_ms": _number(0),
    "content_type": _text,
    "batch_rows": _batch,
    "summary_file": _text,
    "retry_ms": _number(0),
    "token": _text,
    "token_file": _text,
}
