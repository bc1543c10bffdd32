"""A call of the SQL function `enqueue` in hq's schema, which is all that an application's role needs."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any, NamedTuple

from hq.domain.messages import PLAIN, TICKET, Options
from hq.errors import CallerError, InvalidInput, PayloadTooLarge, QueueNotFound
from hq.system.keywords import EnqueueKeywords, check_kind, enqueue_command
from hq.system.payloads import Payload

# What the function raises, by its SQLSTATE.
_REFUSALS: dict[str, type[CallerError]] = {
    "HQ001": QueueNotFound,
    "HQ002": InvalidInput,
    "HQ003": PayloadTooLarge,
}
# As long as the function makes them: a message that has no room for its ticket is refused at once.
_ANY_TICKET = "-" * 36


class Call(NamedTuple):
    """What is sent. Options go as text: an application may have taught its driver another JSON."""

    schema: str
    queue: str
    payload: bytes
    options: str

    @classmethod
    def of(cls, schema: str, queue: str, payload: Payload, keywords: EnqueueKeywords) -> Call:
        """A call, checked as every enqueue is."""
        headers = keywords.get("headers")
        check_kind("headers", headers, Mapping)
        if TICKET in (headers or {}):
            raise InvalidInput(f"the header {TICKET} is hq's own")
        ticketed: EnqueueKeywords = {**keywords, "headers": {**(headers or {}), TICKET: _ANY_TICKET}}
        command = enqueue_command(payload, ticketed)
        said = _said(command.options)
        _check_texts([schema, queue, *said["headers"], *said["headers"].values(), *said.values()])
        return cls(schema, queue, command.payload, json.dumps(said))

    def statement(self, queue: str, payload: str, options: str) -> str:
        """The statement, with these in the places of its values."""
        schema = self.schema.replace('"', '""')
        return (
            f'SELECT "{schema}".enqueue(CAST({queue} AS text), CAST({payload} AS bytea),'
            f" CAST(CAST({options} AS text) AS jsonb))"
        )


def refusal(state: str | None, error: Exception) -> CallerError | None:
    """What the function refused, by hq's name; None if the error is none of its own."""
    known = _REFUSALS.get(state or "")
    return None if known is None else known(str(error).partition("\n")[0])


def _said(options: Options) -> dict[str, Any]:
    """What a producer said of a message; what is left out is the queue's to say."""
    said = {name: value for name, value in asdict(options).items() if value != getattr(PLAIN, name)}
    said["headers"] = {name: value for name, value in options.headers if name != TICKET}
    if options.retry is not None:
        said["retry"] = {**said["retry"], "backoff": options.retry.backoff.value}
    return said


def _check_texts(values: list[object]) -> None:
    """Refuse what Postgres has no text for, before it ends the transaction."""
    for text in values:
        if isinstance(text, str) and "\0" in text:
            raise InvalidInput("a name, an option or a header has a NUL, which Postgres cannot keep")
        try:
            str(text).encode()
        except UnicodeEncodeError:
            raise InvalidInput("a name, an option or a header has lone surrogates") from None
