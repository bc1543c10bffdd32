"""From an async function to a command: its target is opened, its names may come by place or by flag.

A verb takes a Target and what it wants to know. Where it wants something `Named`, the command takes that by
its place or by any of its flags, so that `hq queue rm emails` and `hq queue rm --name emails` are the same.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Annotated, Any, NamedTuple, get_args

import typer

from hq.cli.show import Show
from hq.cli.target import AsJson, Database, Place, Target, Url, opened
from hq.errors import InvalidInput

Verb = Callable[..., Awaitable[int | None]]
GIVEN = "given"


class Named(NamedTuple):
    """Something a command wants, by its place or by these flags; unless it is optional, it must be said."""

    flags: tuple[str, ...]
    help: str


QueueName = Annotated[str, Named(("--queue", "--name"), "The queue.")]
MessageIdText = Annotated[str, Named(("--id",), "The id of the message.")]


def command(app: typer.Typer, name: str) -> Callable[[Verb], Verb]:
    """Make a verb a command of this name."""

    def register(verb: Verb) -> Verb:
        def run(**given: Any) -> None:
            code = _run(verb, given)
            if code:
                raise typer.Exit(code)

        run.__name__, run.__doc__, run.__module__ = verb.__name__, verb.__doc__, verb.__module__
        signature = inspect.Signature(_parameters(verb), return_annotation=None)
        run.__signature__ = signature  # type: ignore[attr-defined]  # what inspect and typer look for
        run.__annotations__ = {one.name: one.annotation for one in signature.parameters.values()}
        app.command(name)(run)
        return verb

    return register


def _wanted(verb: Verb) -> list[inspect.Parameter]:
    """What a verb wants beside its target."""
    return list(inspect.signature(verb, eval_str=True).parameters.values())[1:]


def named(parameter: inspect.Parameter) -> Named | None:
    """How it is named, if it may come by its place."""
    return next((one for one in get_args(parameter.annotation) if isinstance(one, Named)), None)


def _parameters(verb: Verb) -> list[inspect.Parameter]:
    keyword = inspect.Parameter.KEYWORD_ONLY
    made: list[inspect.Parameter] = []
    by_place = []
    for wanted in _wanted(verb):
        how = named(wanted)
        if how is None:
            made.append(wanted.replace(kind=keyword))
        else:
            by_place.append(wanted)
            flag = Annotated[str | None, typer.Option(*how.flags, help=how.help)]
            made.append(inspect.Parameter(wanted.name, keyword, default=None, annotation=flag))
    if by_place:
        words = typer.Argument(metavar=" ".join(_place(one) for one in by_place), show_default=False)
        given = Annotated[list[str] | None, words]
        made.insert(0, inspect.Parameter(GIVEN, keyword, default=None, annotation=given))
    for name, annotation in (("url", Url), ("database", Database)):
        made.append(inspect.Parameter(name, keyword, default=None, annotation=annotation))
    made.append(inspect.Parameter("as_json", keyword, default=False, annotation=AsJson))
    return made


def _place(wanted: inspect.Parameter) -> str:
    word = wanted.name.upper()
    return word if wanted.default is inspect.Parameter.empty else f"[{word}]"


def _run(verb: Verb, given: dict[str, Any]) -> int | None:
    place = Place(given.pop("url"), given.pop("database"))
    show = Show(as_json=given.pop("as_json"))
    _fill(verb, given)
    place.where()
    import asyncio
    import logging

    # What goes wrong is told by the command itself, in a sentence.
    logging.getLogger("hq").addHandler(logging.NullHandler())
    return asyncio.run(_asked(place, show, partial(verb, **given)))


def _fill(verb: Verb, given: dict[str, Any]) -> None:
    """Give what came by its place, in the order of what did not come by a flag."""
    words = list(given.pop(GIVEN, None) or ())
    for wanted in _wanted(verb):
        how = named(wanted)
        if how is None or given[wanted.name] is not None:
            continue
        if words:
            given[wanted.name] = words.pop(0)
        elif wanted.default is inspect.Parameter.empty:
            raise InvalidInput(f"{wanted.name.upper()} is missing: name it, or use {how.flags[0]}")
    if words:
        raise InvalidInput(f"{words[0]!r} is one word too many")


async def _asked(place: Place, show: Show, verb: Callable[[Target], Awaitable[int | None]]) -> int | None:
    async with opened(place) as system:
        return await verb(Target(system, show))
