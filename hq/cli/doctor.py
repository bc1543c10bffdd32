"""hq doctor: what is wrong, what may become wrong, and what is stuck and why."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Any, NamedTuple

import typer

from hq.cli.command import command
from hq.cli.config import settings
from hq.cli.exits import FAILURE
from hq.cli.target import Target
from hq.errors import HQError

if TYPE_CHECKING:
    from hq.system.queue import Queue

COLUMNS = ("verdict", "about", "finding")
PATIENCE_S = 10
FIXED = (3, 51, 3)
"""Older versions can damage a log that one connection resets while another checkpoints."""


class Finding(NamedTuple):
    """Something that was looked at: `good`, `look` (it may be meant so) or `bad`."""

    verdict: str
    about: str
    finding: str


def add_to(app: typer.Typer) -> None:
    """Make it a command."""
    command(app, "doctor")(doctor)


async def doctor(at: Target) -> int:
    """Examine settings, storage and every queue; exit 1 if anything is bad.

    All that is stored is read once, beside all other work.
    """
    found = [finding._asdict() async for finding in _findings(at)]
    told = settings(None, None)
    changed = [row for row in told if row["from"] != "default"]
    if at.show.as_json:
        at.show.json({"findings": found, "settings": told})
    else:
        at.show.rows(found, COLUMNS)
        print()
        at.show.rows(changed, ("key", "value", "from"), nothing="all settings here are the defaults")
    return FAILURE if any(row["verdict"] == "bad" for row in found) else 0


async def _findings(at: Target) -> AsyncIterator[Finding]:
    try:
        durability = await at.system.ready()
        yield Finding(
            "good" if durability == "power" else "look", "durability", f"an answer survives: {durability}"
        )
    except HQError as error:
        yield Finding("bad", "storage", str(error))
    facts, damage = await at.system.examine()
    yield _version(facts)
    for sentence in damage:
        yield Finding("bad", "storage", sentence)
    if not damage:
        yield Finding("good", "storage", "everything that is stored can be read")
    for queue in await at.system.queues():
        for finding in await _patiently(queue):
            yield finding


async def _patiently(queue: Queue) -> list[Finding]:
    """What is to be told of a queue; one that cannot be loaded does not answer."""
    import anyio

    try:
        with anyio.fail_after(PATIENCE_S):
            return [finding async for finding in _of_queue(queue)]
    except TimeoutError:
        return [Finding("bad", queue.name, f"it did not answer in {PATIENCE_S} s; its node logs why")]
    except HQError as error:
        return [Finding("bad", queue.name, str(error))]


def _version(facts: dict[str, Any]) -> Finding:
    version = facts.get("sqlite_version")
    if version is None:
        return Finding("good", "storage", f"{facts['backend']} {facts.get('server_version', '')}".strip())
    if tuple(map(int, str(version).split("."))) >= FIXED:
        return Finding("good", "storage", f"SQLite {version}")
    return Finding(
        "good", "storage",
        f"SQLite {version}: a log may be damaged where two connections checkpoint; hq has one",
    )  # fmt: skip


async def _of_queue(queue: Queue) -> AsyncIterator[Finding]:
    stats = await queue.stats()
    name = queue.name
    if stats.paused is not None:
        yield Finding("look", name, f"it is paused: {stats.paused or 'no reason was given'}")
    if stats.failed:
        yield Finding("look", name, f"{stats.failed} dead letters: hq dlq list {name}")
    if stats.inbox:
        yield Finding("look", name, f"{stats.inbox} messages of the inbox find no room")
    oldest = await queue.browse(limit=1)
    if not oldest or oldest[0].state != "ready":
        return
    told = await queue.explain(oldest[0].id)
    for blocker in told.blockers:
        why = f": {blocker.reason}" if blocker.reason else ""
        yield Finding("look", name, f"its oldest message {oldest[0].id} waits ({blocker.code}{why})")
