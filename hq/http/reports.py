"""What is told of many lines, or of a whole store."""

from __future__ import annotations

from hq.http.models import Given, ItemError


class LineRefused(Given, kw_only=True):
    """A line of an import that is no message, or that the queue does not take."""

    line: int
    error: ItemError


class Imported(Given, kw_only=True, omit_defaults=False):
    """How many lines are new messages, how many were imported before, and which were refused."""

    imported: int
    duplicates: int
    refused: list[LineRefused]


class Examined(Given, kw_only=True, omit_defaults=False):
    """What storage is and how it is set, and what of all it has cannot be read."""

    facts: dict[str, str | int]
    damage: list[str]
