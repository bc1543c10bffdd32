"""The settings of a queue, as flags."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from hq.errors import InvalidInput

if TYPE_CHECKING:
    from hq.system.queue import Queue

Number = int | None
Text = str | None
MaxAttempts = Annotated[Number, typer.Option("--max-attempts", help="Attempts before it fails; default 5.")]
LeaseMs = Annotated[
    Number, typer.Option("--lease-ms", "--visibility-ms", help="How long a lease lasts; default 30000.")
]
DelayMs = Annotated[Number, typer.Option("--delay-ms", help="How long a new message waits.")]
TtlMs = Annotated[Number, typer.Option("--ttl-ms", help="How long a message may wait at all.")]
DedupMs = Annotated[Number, typer.Option("--dedup-ms", help="How long a dedup key is remembered.")]
Groups = Annotated[Text, typer.Option("--groups", help="What groups are: ordered, label or fifo.")]
Concurrency = Annotated[Number, typer.Option("--concurrency", help="How many may be leased at once.")]
Capacity = Annotated[Number, typer.Option("--capacity", help="How many the queue holds.")]
DeadLetterQueue = Annotated[
    Text, typer.Option("--dead-letter-queue", "--dlq", help="Where failed messages go; default: kept here.")
]
Sets = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="NAME=JSON", help="Any setting by its name; null clears it."),
]


def settings_of(flags: dict[str, Any], sets: list[str] | None) -> dict[str, Any]:
    """The settings that were said, checked."""
    import msgspec

    from hq.http import models, wire
    from hq.http.handlers.settings import said

    given = {name: value for name, value in flags.items() if value is not None}
    for pair in sets or ():
        name, found, value = pair.partition("=")
        if not found:
            raise InvalidInput(f"--set takes NAME=JSON, not {pair!r}")
        given[name] = _value(value)
    return said(wire.decode(msgspec.json.encode(given), models.ChangedSettings, 8))


def _value(text: str) -> Any:
    """A JSON value; what is none is a text."""
    import msgspec

    try:
        return msgspec.json.decode(text)
    except msgspec.DecodeError:
        return text


async def shown(queue: Queue) -> dict[str, Any]:
    """A queue with its settings."""
    from hq.http.handlers.settings import plain

    return {"queue": queue.name, "settings": plain(await queue.settings())}
