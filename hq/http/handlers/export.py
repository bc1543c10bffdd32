"""The messages of a queue, many at a time, resumable by sequence."""

from __future__ import annotations

from typing import Any

from hq.domain.commands import MAX_BROWSE, Browse
from hq.domain.ids import MAX_SEQUENCE
from hq.domain.replies import Seen
from hq.domain.settings import in_range
from hq.domain.tasks import Scope
from hq.errors import InvalidInput
from hq.http import columns
from hq.http.calls import Call
from hq.http.handlers.shown import shown
from hq.http.replies import NDJSON, Reply, encode

TABLES = {"messages": Scope.LIVE, "dead_letters": Scope.FAILED}
MAX_ROWS = 10_000
PAGE = 100
MAX_BYTES = 8 << 20


async def export(call: Call) -> Reply:
    """Messages after a sequence; the header HQ-Reached says up to which sequence they were read."""
    query = call.query
    in_range("limit", query.limit, 1, MAX_ROWS)
    in_range("after", query.after, 0, MAX_SEQUENCE)
    in_range("upto", query.upto, 0, MAX_SEQUENCE)
    scope = TABLES.get(query.table)
    if scope is None:
        raise InvalidInput(f"table must be one of {', '.join(TABLES)}")
    number = call.line.number(call.queue)
    if columns.wants_arrow(call):
        async with call.api.columns:
            seen, reached = await _read(call, number, scope)
            body, content_type = await columns.of_messages(call, seen, number), columns.ARROW
    else:
        if query.columns is not None:
            raise InvalidInput(f"columns can be chosen with Accept: {columns.ARROW}")
        seen, reached = await _read(call, number, scope)
        lines = [encode(shown(call, call.queue, number, one.message, str(one.state))) for one in seen]
        # JSON that came in several lines ends them between its words, where a space says the same.
        body = b"".join(line.replace(b"\n", b" ").replace(b"\r", b" ") + b"\n" for line in lines)
        content_type = NDJSON
    return Reply(200, body, content_type, ((b"hq-reached", str(reached).encode()),))


async def _read(call: Call, number: int, scope: Scope) -> tuple[list[Seen], int]:
    """As many as were asked for, unless their payloads are too many bytes; and how far they reach."""
    query = call.query
    found: list[Any] = []
    reached, held = query.after, 0
    while reached < query.upto and len(found) < query.limit and held < MAX_BYTES:
        size = min(PAGE, MAX_BROWSE, query.limit - len(found))
        page: list[Seen] = await call.line.node.post(number, Browse(scope, reached, size))
        reached = page[-1].message.sequence if len(page) == size else query.upto
        found += [one for one in page if one.message.sequence <= query.upto]
        held += sum(len(one.message.payload or b"") for one in page)
    return found, min(reached, query.upto)
