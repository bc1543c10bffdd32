"""Many commands at once, a reply or an error for each."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any, TypeVar

from hq.domain.commands import Command
from hq.domain.settings import in_range
from hq.errors import HQError, QueueNotFound

MAX_ITEMS = 1_000

Item = TypeVar("Item")


async def ask_each(
    items: Sequence[Item],
    build: Callable[[Item], Command],
    post: Callable[[list[Command]], Awaitable[list[Any]]],
) -> list[Any]:
    """Ask a command for each item, all at once, so that one commit can hold them; a reply or error each."""
    in_range("number of items", len(items), 0, MAX_ITEMS)
    commands: list[Command] = []
    refused: dict[int, HQError] = {}
    for position, item in enumerate(items):
        try:
            commands.append(build(item))
        except HQError as error:
            refused[position] = error
    told = await _told(commands, post)
    for position, refusal in refused.items():
        told.insert(position, refusal)
    return told


async def _told(commands: list[Command], post: Callable[[list[Command]], Awaitable[list[Any]]]) -> list[Any]:
    if not commands:
        return []
    try:
        return await post(commands)
    except QueueNotFound:
        # There is nobody to refuse them one by one.
        raise
    except HQError as error:
        return [error] * len(commands)
