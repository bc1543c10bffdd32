"""A nightly report, at half past two in Berlin, whatever the clocks do there.

    hq work examples.nightly:worker -d reports.db

The schedule is in the store: it is set when the worker starts, and a start later changes nothing. A night
that nobody worked in is made up for once.
"""

from __future__ import annotations

import hq

worker = hq.Worker()
written: list[str] = []


@worker.task("reports", dedup_key="nightly", timeout_ms=3_600_000)
async def write_report(kind: str) -> None:
    """Write a report. With a dedup key a slow night does not pile up behind itself."""
    tick = hq.current_message().headers.get("hq-tick-at", "by hand")
    written.append(f"{kind} report of {tick}")


worker.schedule(
    "nightly",
    write_report,
    {"cron": "30 2 * * *", "timezone": "Europe/Berlin", "missed": "run_once"},
    kind="nightly",
)
