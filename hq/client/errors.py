"""From an answer that is no success back to the error it tells."""

from __future__ import annotations

import msgspec

from hq import errors
from hq.errors import HQError
from hq.http.problems import Problem

_KINDS: dict[str, type[HQError]] = {
    kind.code: kind
    for kind in vars(errors).values()
    if isinstance(kind, type) and issubclass(kind, HQError)
} | {"body_too_large": errors.PayloadTooLarge, "cross_origin": errors.InvalidInput}  # fmt: skip


class Unsent(Exception):
    """The request certainly did nothing: no connection, or a server that is stopping."""


class Unanswered(Exception):
    """The request was sent and no answer came: nobody knows what became of it."""


class ItemError(msgspec.Struct):
    """Why one of many was refused."""

    code: str
    detail: str
    retry_at: int | None = None


def error_of(status: int, body: bytes) -> HQError:
    """The error that an answer tells; Unsent or Unanswered is raised if it tells of the server alone."""
    try:
        problem = msgspec.json.decode(body, type=Problem)
    except msgspec.DecodeError:
        raise Unanswered(f"status {status}, and no word of hq's") from None
    if problem.code in {"closed", "stopping"}:
        raise Unsent(problem.detail)
    if problem.code in {"outcome_unknown", "internal"}:
        raise Unanswered(problem.detail)
    if problem.code == "journal_pruned" and problem.first is not None:
        return errors.JournalPruned(problem.first)
    return told(problem)


def told(problem: Problem | ItemError) -> HQError:
    """An error by its code, with its text; one of a newer server is at least an HQError."""
    if problem.code == "rate_limited" and problem.retry_at is not None:
        return errors.RateLimited(problem.retry_at)
    return _KINDS.get(problem.code, HQError)(problem.detail)
