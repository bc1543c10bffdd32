"""hq schedule: messages that are enqueued again and again."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from hq.cli.command import Named, QueueName, command
from hq.cli.lines import payload_of
from hq.cli.target import Target

if TYPE_CHECKING:
    from hq.system.schedules import Schedule

app = typer.Typer(no_args_is_help=True, help="Enqueue messages again and again.")

Number = int | None
Text = str | None
ScheduleName = Annotated[str, Named(("--schedule",), "The name of the schedule.")]
Payload = Annotated[str, typer.Option("--payload", help="JSON: what each tick enqueues.")]
EveryMs = Annotated[Number, typer.Option("--every-ms", help="A tick every so many milliseconds.")]
Cron = Annotated[Text, typer.Option("--cron", help="Ticks by five fields, as in '0 9 * * 1-5'.")]
Timezone = Annotated[Text, typer.Option("--timezone", help="The zone of --cron; default UTC.")]
Missed = Annotated[
    Text,
    typer.Option("--missed", help="What becomes of missed ticks: skip, run_once or catch_up."),
]
CatchUp = Annotated[Number, typer.Option("--catch-up", help="How many of them at most.")]
Priority = Annotated[Number, typer.Option("--priority", help="The priority of its messages.")]
COLUMNS = ("name", "every_ms", "cron", "timezone", "next")


@command(app, "list")
async def list_schedules(at: Target, queue: QueueName) -> None:
    """Show the schedules of a queue, with their next ticks."""
    rows = [_row(one) for one in await at.queue(queue).schedules()]
    at.show.rows(rows, COLUMNS, nothing="there is no schedule")


@command(app, "set")
async def set_schedule(
    at: Target,
    queue: QueueName,
    name: ScheduleName,
    *,
    payload: Payload = "null",
    every_ms: EveryMs = None,
    cron: Cron = None,
    timezone: Timezone = None,
    missed: Missed = None,
    catch_up: CatchUp = None,
    priority: Priority = None,
) -> None:
    """Add a schedule or change the one of this name."""
    said: dict[str, Any] = {
        "every_ms": every_ms, "cron": cron, "timezone": timezone, "missed": missed, "catch_up": catch_up,
        "priority": priority,
    }  # fmt: skip
    how = {one: value for one, value in said.items() if value is not None}
    body = payload_of(payload, None)
    made = await at.queue(queue).set_schedule(name, body, content_type="application/json", **how)
    row = _row(made)
    at.show.done(f"the next tick of {name} is at {row['next']}", row)


@command(app, "rm")
async def remove(at: Target, queue: QueueName, name: ScheduleName) -> None:
    """Stop repeating; what was enqueued stays."""
    await at.queue(queue).remove_schedule(name)
    at.show.done(f"removed the schedule {name}", {"queue": queue, "name": name, "removed": True})


def _row(schedule: Schedule) -> dict[str, Any]:
    from hq.cli.messages import instant

    return {
        "name": schedule.name,
        "every_ms": schedule.every_ms,
        "cron": schedule.cron,
        "timezone": schedule.timezone,
        "missed": schedule.missed.value,
        "catch_up": schedule.catch_up,
        "last_at": schedule.last_at,
        "next_ticks": list(schedule.next_ticks),
        "next": instant(schedule.next_ticks[0]),
    }
