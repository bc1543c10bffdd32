"""One item or many in a body: told apart by its first sign, answered one by one."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar

from msgspec import UNSET

from hq.domain.commands import Command
from hq.errors import HQError
from hq.http import models as m
from hq.http import wire
from hq.http.calls import Call
from hq.http.problems import UnsupportedMediaType, problem_of
from hq.system.each import ask_each

Kind = TypeVar("Kind")

_JSON = (b"application/json", b"text/json")


def body_shape(call: Call) -> str:
    """`one`, `array` or `lines`; a body that is declared as something else is refused."""
    declared = call.headers.get(b"content-type", b"").partition(b";")[0].strip().lower()
    if declared in {b"application/x-ndjson", b"application/jsonl"}:
        return "lines"
    if declared and declared not in _JSON and not declared.endswith(b"+json"):
        raise UnsupportedMediaType
    return "array" if call.body.lstrip()[:1] == b"[" else "one"


async def ask_all(call: Call, number: int, kind: type[Kind], build: Callable[[Kind], Command]) -> list[Any]:
    """Ask a command for each item of a body that has many: a reply or an error for each."""
    post = partial(call.line.node.post_many, number)
    lines = body_shape(call) == "lines"
    decoded = None if lines else wire.decode_all(call.body, kind, call.depth)
    if decoded is not None:
        return await ask_each(decoded, build, post)
    items = wire.items(call.body, call.depth, lines=lines)
    return await ask_each(items, lambda item: build(wire.decode(item, kind, call.depth)), post)


def results(told: list[Any], show: Callable[[Any], object]) -> m.Results:
    """A result or an error for each."""
    return m.Results(results=[failed(one) if isinstance(one, HQError) else show(one) for one in told])


def failed(error: HQError) -> m.Failed:
    """Why one of many was refused."""
    problem = problem_of(error)
    retry_at = UNSET if problem.retry_at is None else problem.retry_at
    return m.Failed(error=m.ItemError(code=problem.code, detail=problem.detail, retry_at=retry_at))
