"""Telling a queue what became of messages, which are named by their ids, with or without a token."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hq.cli.command import Named
from hq.cli.exits import worst
from hq.cli.lines import MOST, lines_of
from hq.errors import HQError, InvalidInput

if TYPE_CHECKING:
    from hq.cli.target import Target
    from hq.system.settle import Target as MessageTarget

MessageIds = Annotated[str | None, Named(("--ids", "--id"), "The ids of messages, with commas between.")]
Token = Annotated[
    str | None, typer.Option("--token", help="The token of the lease of the one message; without it, by id.")
]
HeldFile = Annotated[
    Path | None,
    typer.Option("--file", help="What `hq message poll --json` printed: ids and tokens; - reads stdin."),
]


def targets_of(ids: str | None, token: str | None, file: Path | None) -> list[MessageTarget]:
    """The messages that were named, in one of the ways there are."""
    from hq.system.settle import Held

    if (ids is None) is (file is None):
        raise InvalidInput("say which messages: --ids or --file")
    if file is not None:
        if token is not None:
            raise InvalidInput("--token is for one of --ids; a --file has tokens")
        with lines_of(file) as lines:
            return [_held(number, text) for number, text in lines]
    named = [one.strip() for one in (ids or "").split(",") if one.strip()]
    if token is None:
        return list(named)
    if len(named) != 1:
        raise InvalidInput("a --token is of one message")
    return [Held(named[0], token)]


def _held(number: int, text: bytes) -> MessageTarget:
    import msgspec

    from hq.system.settle import Held

    try:
        said = msgspec.json.decode(text, type=dict[str, Any])
        message, token = said["id"], said.get("token")
    except (msgspec.DecodeError, KeyError):
        raise InvalidInput(f"line {number} is no JSON object with an id") from None
    if not isinstance(message, str) or not isinstance(token, str | None):
        raise InvalidInput(f"line {number} has an id or a token that is no text")
    return message if token is None else Held(message, token)


async def settle(
    at: Target,
    became: str,
    verb: Callable[[Any], Awaitable[Any]],
    targets: list[MessageTarget],
) -> int:
    """Settle them all, and tell of each; the exit code says whether any was refused."""
    told: list[Any] = []
    for start in range(0, len(targets), MOST):
        told += await verb(targets[start : start + MOST])
    refused = []
    for target, one in zip(targets, told, strict=True):
        message = target if isinstance(target, str) else target.id
        if isinstance(one, HQError):
            refused.append(one)
            row = {"id": message, "error": {"code": one.code, "detail": str(one)}}
        else:
            row = {"id": message, "state": one.state, "until": one.until}
        if at.show.as_json:
            at.show.line(row)
        elif isinstance(one, HQError):
            typer.echo(f"hq: {message}: {one}", err=True)
    if not at.show.as_json:
        print(f"{len(targets) - len(refused)} {became}")
    return worst(refused) if refused else 0
