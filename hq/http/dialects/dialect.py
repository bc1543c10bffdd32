"""What a dialect is: its name, where it is mounted, and how it says no. Its routes are in its own module."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from hq.errors import HQError
from hq.http.calls import Api, Headers
from hq.http.problems import Refused, problem_of, reply_of
from hq.http.replies import Reply

TEXT = "text/plain; charset=utf-8"
NO_TYPE = ""

Refuse = Callable[[Api, Refused, bytes, Headers], Reply]


class Dialect(NamedTuple):
    """One contract. `tell` is an error as its clients know it; `refuse` the same where no route fits."""

    name: str
    prefix: str
    tell: Callable[[HQError, int], Reply]
    refuse: Refuse


def in_words(error: HQError, now: int) -> Reply:
    """An error in the status that hq gives it, for clients that read texts."""
    return reply_of(error, now)._replace(body=problem_of(error).detail.encode(), content_type=TEXT)


def nothing(status: int) -> Reply:
    """A status says it all."""
    return Reply(status, b"", NO_TYPE)
