"""What a Spark job is told, in one sentence each."""

from __future__ import annotations


class HqError(Exception):
    """hq could not do what the job asked of it."""


class OptionInvalid(HqError):
    """An option is unknown, missing, or has a value that makes no sense."""


class Unreachable(HqError):
    """The server did not answer for as long as it was tried."""


class Refused(HqError):
    """The server, or the database, says no; `code` is hq's name for why."""

    def __init__(self, text: str, code: str = "") -> None:
        super().__init__(text)
        self.code = code


class DataLost(HqError):
    """What was to be read next is no longer kept, or belongs to another store."""
