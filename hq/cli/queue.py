"""hq queue: make, look at, change and empty queues."""

from __future__ import annotations

from typing import Annotated

import typer

from hq.cli import messages, numbers, settings
from hq.cli.command import QueueName, command
from hq.cli.consent import Yes, consent
from hq.cli.requeue import Group, PerSecond, Reason, requeue_all
from hq.cli.target import Target

app = typer.Typer(no_args_is_help=True, help="Make, look at, change and empty queues.")

Limit = Annotated[int, typer.Option("--limit", min=1, max=1_000, help="How many at most.")]
Counts = Annotated[bool, typer.Option("--counts/--no-counts", help="With how much is in each.")]
Why = Annotated[str, typer.Option("--reason", help="Why; it is shown to whoever looks.")]
PauseGroup = Annotated[str | None, typer.Option("--group", help="This group alone.")]
NAMES_ALONE = ("queue",)


@command(app, "list")
async def list_queues(at: Target, *, counts: Counts = True) -> None:
    """List the queues there are."""
    queues = sorted(await at.system.queues(), key=lambda queue: queue.name)
    if counts:
        rows = [await numbers.numbers(at.system, queue) for queue in queues]
        at.show.rows(rows, numbers.COLUMNS, nothing="there is no queue")
    else:
        at.show.rows(({"queue": queue.name} for queue in queues), NAMES_ALONE, nothing="there is no queue")


@command(app, "add")
async def add(
    at: Target,
    name: QueueName,
    *,
    max_attempts: settings.MaxAttempts = None,
    lease_ms: settings.LeaseMs = None,
    delay_ms: settings.DelayMs = None,
    ttl_ms: settings.TtlMs = None,
    dedup_ms: settings.DedupMs = None,
    groups: settings.Groups = None,
    concurrency: settings.Concurrency = None,
    capacity: settings.Capacity = None,
    dead_letter_queue: settings.DeadLetterQueue = None,
    sets: settings.Sets = None,
) -> None:
    """Make a queue; one of this name and these settings is found."""
    flags = {
        "max_attempts": max_attempts, "lease_ms": lease_ms, "delay_ms": delay_ms, "ttl_ms": ttl_ms,
        "dedup_ms": dedup_ms, "groups": groups, "concurrency": concurrency, "capacity": capacity,
        "dead_letter_queue": dead_letter_queue,
    }  # fmt: skip
    queue = await at.system.create_queue(name, **settings.settings_of(flags, sets))
    at.show.done(f"there is a queue {name}", await settings.shown(queue))


@command(app, "rm")
async def remove(at: Target, name: QueueName, *, yes: Yes = False) -> None:
    """Delete a queue with all it holds."""
    consent(yes, f"delete the queue {name} with all it holds")
    await at.system.delete_queue(name)
    at.show.done(f"deleted the queue {name}", {"queue": name, "deleted": True})


command(app, "remove")(remove)


@command(app, "show")
async def show(at: Target, name: QueueName) -> None:
    """Show a queue: its settings and its numbers."""
    queue = at.queue(name)
    shown = await settings.shown(queue)
    counted = await numbers.numbers(at.system, queue)
    if at.show.as_json:
        at.show.json(shown | {"stats": counted})
    else:
        at.show.record(counted | shown["settings"])


@command(app, "update")
async def update(
    at: Target,
    name: QueueName,
    *,
    max_attempts: settings.MaxAttempts = None,
    lease_ms: settings.LeaseMs = None,
    delay_ms: settings.DelayMs = None,
    ttl_ms: settings.TtlMs = None,
    dedup_ms: settings.DedupMs = None,
    concurrency: settings.Concurrency = None,
    capacity: settings.Capacity = None,
    dead_letter_queue: settings.DeadLetterQueue = None,
    sets: settings.Sets = None,
) -> None:
    """Change some settings of a queue and leave the others."""
    flags = {
        "max_attempts": max_attempts, "lease_ms": lease_ms, "delay_ms": delay_ms, "ttl_ms": ttl_ms,
        "dedup_ms": dedup_ms, "concurrency": concurrency, "capacity": capacity,
        "dead_letter_queue": dead_letter_queue,
    }  # fmt: skip
    queue = at.queue(name)
    await queue.configure(**settings.settings_of(flags, sets))
    at.show.done(f"changed the queue {name}", await settings.shown(queue))


@command(app, "pause")
async def pause(at: Target, name: QueueName, *, reason: Why = "", group: PauseGroup = None) -> None:
    """Accept messages, but hand none out."""
    queue = at.queue(name)
    await (queue.pause(reason) if group is None else queue.pause_group(group, reason))
    at.show.done(f"paused {_what(name, group)}", {"queue": name, "group": group, "paused": True})


@command(app, "resume")
async def resume(at: Target, name: QueueName, *, group: PauseGroup = None) -> None:
    """Hand messages out again."""
    queue = at.queue(name)
    await (queue.resume() if group is None else queue.resume_group(group))
    at.show.done(f"resumed {_what(name, group)}", {"queue": name, "group": group, "paused": False})


@command(app, "purge")
async def purge(at: Target, name: QueueName, *, yes: Yes = False) -> None:
    """Take out all messages that wait or are leased."""
    consent(yes, f"take out all messages of {name}")
    purged = await at.queue(name).purge()
    at.show.done(f"purged {purged}", {"queue": name, "purged": purged})


@command(app, "peek")
async def peek(at: Target, name: QueueName, *, limit: Limit = 1) -> None:
    """Show the next messages and leave them where they are."""
    messages.tell(at.show, name, await at.queue(name).peek(limit), messages.COLUMNS)


@command(app, "requeue-dlq")
async def requeue_dead_letters(
    at: Target, name: QueueName, *, group: Group = None, reason: Reason = None, per_second: PerSecond = None
) -> None:
    """Bring dead letters back, and wait until all are."""
    await requeue_all(at, name, group=group, reason=reason, per_second=per_second)


@command(app, "compact")
async def compact(at: Target, name: QueueName) -> None:
    """Give free space of the store back to the system."""
    await at.queue(name).compact()
    at.show.done("compacted", {"queue": name, "compacted": True})


def _what(name: str, group: str | None) -> str:
    return name if group is None else f"the group {group} of {name}"
