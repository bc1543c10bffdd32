"""Messages of an export, or of any file of lines, put into a queue."""

from __future__ import annotations

from hq.domain.settings import in_range
from hq.errors import HQError, InvalidInput
from hq.http import reports, wire
from hq.http.calls import Call
from hq.http.handlers.many import failed
from hq.http.replies import Reply, ok
from hq.system.each import MAX_ITEMS
from hq.system.queue import Queue


async def import_lines(call: Call) -> Reply:
    """Some lines of a file; `first` is the number of the first of them, by which a line is known again."""
    query = call.query
    in_range("first", query.first, 1, 1 << 53)
    lines = [
        (number, text)
        for number, text in enumerate(call.body.split(b"\n"), start=query.first)
        if text.strip()
    ]
    if len(lines) > MAX_ITEMS:
        raise InvalidInput(f"one request has at most {MAX_ITEMS} lines")
    for _, text in lines:
        wire.check_depth(text, call.depth)
    told = await Queue(call.queue, call.line).import_lines(lines, source=query.source)
    refused = [
        reports.LineRefused(line=number, error=failed(one).error)
        for (number, _), one in zip(lines, told, strict=True)
        if isinstance(one, HQError)
    ]
    accepted = [one for one in told if not isinstance(one, HQError)]
    duplicates = sum(one.duplicate for one in accepted)
    return ok(reports.Imported(imported=len(accepted) - duplicates, duplicates=duplicates, refused=refused))
