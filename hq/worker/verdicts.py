"""How an attempt ended: what a handler may raise to say so, and what a worker makes of it."""

from __future__ import annotations

import traceback
from dataclasses import dataclass
from typing import Any

from hq.domain.messages import MAX_ERROR_CHARS
from hq.domain.settings import MAX_SPAN_MS, optional_in_range

MAX_HEADLINE_CHARS = 1_000


class Fail(Exception):
    """Raised by a handler: never again. The message becomes a dead letter with this text."""


class Release(Exception):
    """Raised by a handler: give the message back without blame. The attempt does not count."""


class Retry(Exception):
    """Raised by a handler: try again after `delay_ms`, or when the retry policy says."""

    def __init__(self, error: str = "", *, delay_ms: int | None = None) -> None:
        super().__init__(error)
        optional_in_range("delay_ms", delay_ms, 0, MAX_SPAN_MS)
        self.delay_ms = delay_ms


@dataclass(frozen=True, slots=True)
class Completed:
    """The work is done; `result` is what its producer may fetch, if it asked for one."""

    result: Any = None


@dataclass(frozen=True, slots=True)
class Retried:
    """The attempt went wrong."""

    error: str
    delay_ms: int | None = None


@dataclass(frozen=True, slots=True)
class Failed:
    """It is not worth another attempt."""

    error: str


@dataclass(frozen=True, slots=True)
class Released:
    """Nobody is to blame; the attempt does not count."""


@dataclass(frozen=True, slots=True)
class Lost:
    """The lease ended under the handler: there is nothing left to say about the message."""


Verdict = Completed | Retried | Failed | Released | Lost
DONE, RELEASED, LOST = Completed(), Released(), Lost()


def verdict_of(error: Exception) -> Verdict:
    """What an error of a handler says of its attempt."""
    match error:
        case Release():
            return RELEASED
        case Fail():
            return Failed(str(error)[:MAX_ERROR_CHARS])
        case Retry():
            return Retried(str(error)[:MAX_ERROR_CHARS], error.delay_ms)
        case _:
            return Retried(error_text(error))


def error_text(error: Exception) -> str:
    """The error in a line, then as much of the end of its traceback as is kept."""
    headline = f"{type(error).__name__}: {error}"[:MAX_HEADLINE_CHARS]
    trace = "".join(traceback.format_exception(error))
    return f"{headline}\n\n{trace[len(headline) + 2 - MAX_ERROR_CHARS :]}"
