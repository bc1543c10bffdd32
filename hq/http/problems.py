"""Errors over HTTP: one shape (RFC 9457), a stable code, and nothing of what is inside."""

from __future__ import annotations

import logging
from math import ceil
from typing import ClassVar

import msgspec

from hq.errors import CallerError, HQError, JournalPruned, RateLimited, StorageError
from hq.http.replies import Reply

log = logging.getLogger("hq.http")

PROBLEM = "application/problem+json"
RETRY_AFTER_S = 1

STATUSES = {
    "refused": 400,
    "invalid_input": 400,
    "queue_not_found": 404,
    "message_not_found": 404,
    "schedule_not_found": 404,
    "task_not_found": 404,
    "queue_exists": 409,
    "lease_not_held": 409,
    "lease_expired": 409,
    "message_not_waiting": 409,
    "message_not_failed": 409,
    "setting_fixed": 409,
    "journal_pruned": 410,
    "payload_too_large": 413,
    "queue_full": 429,
    "rate_limited": 429,
    "too_many_tasks": 429,
    "overloaded": 429,
    "memory_full": 429,
}
"""The status of each code; what is not here is 503, for it is no fault of the caller's."""


class Problem(msgspec.Struct, omit_defaults=True):
    """What a caller reads: `code` is stable, `detail` is for people."""

    title: str
    status: int
    code: str
    detail: str
    type: str = "about:blank"
    retry_at: int | None = None
    first: int | None = None


class Refused(CallerError):
    """A request that HTTP itself refuses, before any queue is asked."""

    status: ClassVar[int] = 400


class BadRequest(Refused):
    """This is not how HTTP is spoken."""

    code = "bad_request"


class HeadTooLarge(Refused):
    """The head of the request is longer than this server takes."""

    code = "head_too_large"
    status = 431


class NoSuchRoute(Refused):
    """There is nothing at this address."""

    code = "not_found"
    status = 404


class MethodNotAllowed(Refused):
    """This address does not take this method."""

    code = "method_not_allowed"
    status = 405


class RequestTimeout(Refused):
    """The request did not end in time; nothing has changed."""

    code = "request_timeout"
    status = 408


class ArrowMissing(Refused):
    """This server cannot answer in Arrow: install pyarrow beside it (hq-queue[arrow]), or accept NDJSON."""

    code = "not_acceptable"
    status = 406


class BodyTooLarge(Refused):
    """The body is larger than this server takes."""

    code = "body_too_large"
    status = 413


class UnsupportedMediaType(Refused):
    """This route takes JSON: send it with Content-Type: application/json."""

    code = "unsupported_media_type"
    status = 415


class Stopping(Refused):
    """This server is stopping; ask another, or this one later."""

    code = "stopping"
    status = 503


class CrossOrigin(Refused):
    """A page of another origin may not call this server."""

    code = "cross_origin"
    status = 403


def status_of(error: HQError) -> int:
    """The HTTP status of an error."""
    return error.status if isinstance(error, Refused) else STATUSES.get(error.code, 503)


def problem_of(error: HQError) -> Problem:
    """An error as its caller reads it. What only an operator can mend is told without particulars."""
    status = status_of(error)
    detail = str(error)
    if status == 503 or isinstance(error, StorageError):
        detail = type(error).__doc__ or ""
    title = (type(error).__doc__ or error.code).partition("\n")[0]
    problem = Problem(title, status, error.code, detail)
    if isinstance(error, RateLimited):
        problem.retry_at = error.retry_at
    elif isinstance(error, JournalPruned):
        problem.first = error.first
    return problem


def reply_of(error: HQError, now: int) -> Reply:
    """An error as a reply."""
    problem = problem_of(error)
    headers: tuple[tuple[bytes, bytes], ...] = ()
    if problem.status in {429, 503}:
        headers = ((b"retry-after", str(_retry_after_s(error, now)).encode()),)
    if problem.status == 503 and not isinstance(error, Refused):
        log.error("a request could not be served", exc_info=error, extra={"code": error.code})
    return Reply(problem.status, msgspec.json.encode(problem), PROBLEM, headers)


def internal_error(error: BaseException) -> Reply:
    """Something hq did not foresee: told as such, logged in full."""
    log.error("a request broke down", exc_info=error)
    problem = Problem("Something went wrong in hq.", 500, "internal", "The server's log says more.")
    return Reply(500, msgspec.json.encode(problem), PROBLEM)


def _retry_after_s(error: HQError, now: int) -> int:
    if isinstance(error, RateLimited):
        return max(RETRY_AFTER_S, ceil((error.retry_at - now) / 1_000))
    return RETRY_AFTER_S
