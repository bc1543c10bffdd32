"""hq message: enqueue, receive, settle and look at messages."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from hq.cli import messages
from hq.cli.command import MessageIdText, Named, QueueName, command
from hq.cli.lines import enqueue_lines, lines_of, payload_of
from hq.cli.settling import HeldFile, MessageIds, Token, settle, targets_of
from hq.cli.target import Target
from hq.errors import InvalidInput

app = typer.Typer(no_args_is_help=True, help="Enqueue, receive, settle and look at messages.")

Number = int | None
Text = str | None
Payload = Annotated[Text, typer.Option("--payload", help="JSON; with --content-type, any text.")]
PayloadFile = Annotated[
    Path | None, typer.Option("--file", help="Newline-delimited JSON, a payload in each line; - reads stdin.")
]
ContentType = Annotated[Text, typer.Option("--content-type", help="What --payload is, if it is no JSON.")]
DedupKey = Annotated[
    Text,
    typer.Option(
        "--idempotency-key", "--dedup-key", help="What makes it one message, however often it is sent."
    ),
]
DelayMs = Annotated[Number, typer.Option("--delay-ms", help="How long it waits at first.")]
TtlMs = Annotated[Number, typer.Option("--ttl-ms", help="How long it may wait at all.")]
Priority = Annotated[Number, typer.Option("--priority", help="Higher comes first.")]
Group = Annotated[Text, typer.Option("--group", help="Its group.")]
Headers = Annotated[list[str] | None, typer.Option("--header", metavar="NAME=VALUE", help="A header of it.")]
ResultMs = Annotated[Number, typer.Option("--result-ms", help="How long to keep its result.")]
Batch = Annotated[int, typer.Option("--batch", "-n", min=1, max=1_000, help="How many at most.")]
Limit = Annotated[int, typer.Option("--limit", "--batch", min=1, max=1_000, help="How many at most.")]
LeaseMs = Annotated[Number, typer.Option("--lease-ms", "--visibility-ms", help="How long to lease them for.")]
WaitMs = Annotated[int, typer.Option("--wait-ms", min=0, help="How long to wait for the first.")]
Holder = Annotated[Text, typer.Option("--holder", help="Who you are, for whoever looks.")]
ErrorText = Annotated[Text, typer.Option("--error", help="What went wrong.")]
RetryDelayMs = Annotated[
    Number, typer.Option("--delay-ms", help="When it comes again; default: as the queue says.")
]
ExtendMs = Annotated[
    Number, typer.Option("--ms", "--lease-ms", help="For how long from now; default: as the queue says.")
]
MaybeId = Annotated[Text, Named(("--id",), "The id of one message.")]


@command(app, "enqueue")
async def enqueue(
    at: Target,
    queue: QueueName,
    *,
    payload: Payload = None,
    file: PayloadFile = None,
    content_type: ContentType = None,
    idempotency_key: DedupKey = None,
    delay_ms: DelayMs = None,
    ttl_ms: TtlMs = None,
    priority: Priority = None,
    group: Group = None,
    header: Headers = None,
    result_ms: ResultMs = None,
) -> int:
    """Enqueue one message, or one for each line of a file."""
    options: dict[str, Any] = {
        "delay_ms": delay_ms, "ttl_ms": ttl_ms, "priority": priority, "group": group,
        "headers": _headers(header), "result_ms": result_ms,
    }  # fmt: skip
    options = {name: value for name, value in options.items() if value is not None}
    if (payload is None) is (file is None):
        raise InvalidInput("say what to enqueue: --payload or --file")
    if file is not None:
        if idempotency_key is not None or content_type is not None:
            raise InvalidInput("--idempotency-key and --content-type are for one --payload")
        with lines_of(file) as lines:
            return await enqueue_lines(at, queue, lines, options)
    if idempotency_key is not None:
        options["dedup_key"] = idempotency_key
    accepted = await at.queue(queue).enqueue(
        payload_of(payload or "", content_type), content_type=content_type or "application/json", **options
    )
    duplicate = " (a duplicate: it was enqueued before)" if accepted.duplicate else ""
    at.show.done(f"{accepted.id}{duplicate}", {"id": accepted.id, "duplicate": accepted.duplicate})
    return 0


@command(app, "poll")
async def poll(
    at: Target,
    queue: QueueName,
    *,
    batch: Batch = 1,
    lease_ms: LeaseMs = None,
    wait_ms: WaitMs = 0,
    holder: Holder = None,
) -> None:
    """Receive messages: they are yours until their leases end."""
    received = await at.queue(queue).receive(batch, wait_ms=wait_ms, lease_ms=lease_ms, holder=holder)
    messages.tell_rows(at.show, [messages.held(one) for one in received], messages.HELD_COLUMNS)


@command(app, "get")
async def get(at: Target, queue: QueueName, message: MaybeId = None, *, limit: Limit = 1) -> None:
    """Show one message by its id, or the next ones; nothing is leased."""
    there = at.queue(queue)
    found = await there.peek(limit) if message is None else [await there.get(message)]
    messages.tell(at.show, queue, found, messages.COLUMNS)


command(app, "peek")(get)


@command(app, "explain")
async def explain(at: Target, queue: QueueName, message: MessageIdText) -> None:
    """Say why a message is not being received."""
    told = await at.queue(queue).explain(message)
    blockers = [
        {"code": one.code, "until": one.until, "message_id": one.message_id, "reason": one.reason}
        for one in told.blockers
    ]
    if at.show.as_json:
        at.show.json({"id": message, "state": told.state, "blockers": blockers})
    else:
        nothing = f"it is {told.state}, and nothing keeps it from being received"
        at.show.rows(blockers, ("code", "until", "message_id", "reason"), nothing=nothing)


@command(app, "ack")
async def ack(
    at: Target, queue: QueueName, ids: MessageIds = None, *, token: Token = None, file: HeldFile = None
) -> int:
    """Complete messages: the work on them is done."""
    there = at.queue(queue)
    return await settle(at, "completed", there.complete, targets_of(ids, token, file))


@command(app, "nack")
async def nack(
    at: Target,
    queue: QueueName,
    ids: MessageIds = None,
    *,
    token: Token = None,
    file: HeldFile = None,
    delay_ms: RetryDelayMs = None,
    error: ErrorText = None,
) -> int:
    """Retry messages later: this attempt went wrong."""
    there = at.queue(queue)

    async def retry(targets: Any) -> Any:
        return await there.retry(targets, delay_ms=delay_ms, error=error)

    return await settle(at, "to be retried", retry, targets_of(ids, token, file))


@command(app, "fail")
async def fail(
    at: Target,
    queue: QueueName,
    ids: MessageIds = None,
    *,
    token: Token = None,
    file: HeldFile = None,
    error: ErrorText = None,
) -> int:
    """Make messages dead letters: they are never tried again."""
    there = at.queue(queue)

    async def give_up(targets: Any) -> Any:
        return await there.fail(targets, error=error)

    return await settle(at, "failed", give_up, targets_of(ids, token, file))


@command(app, "release")
async def release(
    at: Target, queue: QueueName, ids: MessageIds = None, *, token: Token = None, file: HeldFile = None
) -> int:
    """Give messages back without blame: the attempt does not count."""
    return await settle(at, "released", at.queue(queue).release, targets_of(ids, token, file))


@command(app, "extend-lease")
async def extend_lease(
    at: Target,
    queue: QueueName,
    ids: MessageIds = None,
    *,
    token: Token = None,
    file: HeldFile = None,
    ms: ExtendMs = None,
) -> int:
    """Set a new end of leases, counted from now."""
    there = at.queue(queue)

    async def extend(targets: Any) -> Any:
        return await there.extend(targets, ms)

    return await settle(at, "extended", extend, targets_of(ids, token, file))


@command(app, "remove")
async def remove(at: Target, queue: QueueName, ids: MessageIds = None) -> int:
    """Delete messages, in whatever state they are."""
    return await settle(at, "deleted", at.queue(queue).delete, targets_of(ids, None, None))


def _headers(pairs: list[str] | None) -> dict[str, str] | None:
    if not pairs:
        return None
    parted = [pair.partition("=") for pair in pairs]
    if not all(found for _, found, _ in parted):
        raise InvalidInput("--header takes NAME=VALUE")
    return {name: value for name, _, value in parted}
