"""hq dlq: the dead letters of a queue."""

from __future__ import annotations

from typing import Annotated

import typer

from hq.cli import messages
from hq.cli.command import QueueName, command
from hq.cli.consent import Yes, consent
from hq.cli.requeue import Group, PerSecond, Reason, requeue_all
from hq.cli.settling import MessageIds, settle, targets_of
from hq.cli.target import Target

app = typer.Typer(no_args_is_help=True, help="Look at dead letters, bring them back, take them out.")

Limit = Annotated[int, typer.Option("--limit", min=1, max=1_000, help="How many at most.")]
After = Annotated[str | None, typer.Option("--after", help="Those after this id: the next page.")]


@command(app, "list")
async def list_dead_letters(at: Target, queue: QueueName, *, limit: Limit = 100, after: After = None) -> None:
    """Show failed messages, oldest first."""
    found = await at.queue(queue).dead_letters(after=after, limit=limit)
    messages.tell(at.show, queue, found, messages.DEAD_COLUMNS)


@command(app, "purge")
async def purge(at: Target, queue: QueueName, *, yes: Yes = False) -> None:
    """Take out all dead letters."""
    consent(yes, f"take out all dead letters of {queue}")
    purged = await at.queue(queue).purge_dead_letters()
    at.show.done(f"purged {purged}", {"queue": queue, "purged": purged})


@command(app, "requeue")
async def requeue(
    at: Target,
    queue: QueueName,
    ids: MessageIds = None,
    *,
    group: Group = None,
    reason: Reason = None,
    per_second: PerSecond = None,
) -> int:
    """Bring dead letters back: those named, or all of them."""
    if ids is not None:
        return await settle(at, "requeued", at.queue(queue).requeue, targets_of(ids, None, None))
    await requeue_all(at, queue, group=group, reason=reason, per_second=per_second)
    return 0
