"""The page of the first seed: the messages something happened to last, by the journal."""

from __future__ import annotations

from contextlib import suppress
from html import escape
from typing import NamedTuple

from hq.domain.commands import Get
from hq.domain.events import Enqueued, Event, MessageEvent
from hq.errors import MessageNotFound, QueueNotFound
from hq.http.calls import Call
from hq.http.dialects.clock_text import timestamp
from hq.http.handlers.about import HTML, POLICY, STYLE
from hq.http.replies import Reply

MESSAGES = 10
ENTRIES = 10
SHOWN_CHARS = 200
TABLE = "th { text-align: left; padding: .3rem .6rem; } td:last-child { white-space: nowrap; }"


class Latest(NamedTuple):
    """What happened to a message last."""

    queue: int
    message: int
    event: Event


async def page(call: Call) -> Reply:
    """The latest messages, for people."""
    call.line.guard.check()
    rows = "".join([await _row(call, latest) for latest in await _latest(call)])
    text = (
        "<!doctype html><html lang=en><meta charset=utf-8><meta http-equiv=refresh content=5>"
        f"<title>hq</title><style>{STYLE}{TABLE}</style>"
        f"<h1>Latest messages</h1><table><tr><th>message<th>queue<th>args<th>what happened<th>when</tr>{rows}"
        f"</table>{'' if rows else '<p>There is none yet.</p>'}</html>"
    )
    return Reply(200, text.encode(), HTML, ((b"content-security-policy", POLICY),))


async def _latest(call: Call) -> list[Latest]:
    """The messages of the last entries of the journal, the latest first."""
    bounds = await call.node.journal_bounds()
    found: dict[tuple[int, int], Latest] = {}
    if bounds.last:
        entries = await call.node.journal(max(bounds.first - 1, bounds.last - ENTRIES), ENTRIES)
        for entry in reversed(entries):
            for event in reversed(entry.events):
                if len(found) == MESSAGES:
                    break
                if isinstance(event, Enqueued | MessageEvent):
                    message = event.sequence if isinstance(event, Enqueued) else event.message
                    found.setdefault((entry.queue, message), Latest(entry.queue, message, event))
    return list(found.values())


async def _row(call: Call, latest: Latest) -> str:
    payload = ""
    try:
        queue = call.node.name(latest.queue)
        with suppress(MessageNotFound):
            seen = await call.line.node.post(latest.queue, Get(latest.message))
            payload = seen.message.payload[: 4 * SHOWN_CHARS].decode(errors="replace")[:SHOWN_CHARS]
    except QueueNotFound:
        return ""
    cells = (
        f"<code>{call.node.id_of(latest.queue, latest.message)}</code>",
        escape(queue),
        f"<code>{escape(payload)}</code>",
        type(latest.event).__name__.lower(),
        timestamp(latest.event.at),
    )
    return f"<tr>{''.join(f'<td>{cell}</td>' for cell in cells)}</tr>"
