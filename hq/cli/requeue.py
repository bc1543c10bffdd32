"""Bringing dead letters back: a task of the queue, waited for until it has ended."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from hq.domain.settings import Rate

if TYPE_CHECKING:
    from hq.cli.target import Target

PerSecond = Annotated[int | None, typer.Option("--per-second", min=1, help="At most so many a second.")]
Group = Annotated[str | None, typer.Option("--group", help="Only those of this group.")]
Reason = Annotated[str | None, typer.Option("--reason", help="Only those that failed for this reason.")]
KINDS = ("task_advanced", "task_ended")


async def requeue_all(
    at: Target,
    name: str,
    *,
    group: str | None = None,
    reason: str | None = None,
    per_second: int | None = None,
) -> None:
    """Start it, wait for its end, and tell how many came back."""
    queue = at.queue(name)
    rate = None if per_second is None else Rate(per_second, 1_000, burst=per_second)
    waiting = (await queue.stats()).failed
    async with queue.events(kinds=KINDS) as events:
        number = await queue.requeue_dead_letters(group=group, reason=reason, rate=rate)
        with at.show.progress("requeue", total=waiting) as advance:
            done = 0
            async for event in events:
                task: dict[str, Any] = event.details["task"]
                if task["number"] == number:
                    done = task["done"]
                    advance.to(done)
                    if event.kind == "task_ended":
                        break
    at.show.done(f"requeued {done}", {"queue": name, "requeued": done})
