"""What is said of the journal as a whole: which positions it has, and up to where it is archived."""

from __future__ import annotations

from msgspec import UNSET, UnsetType

from hq.http.models import Given, Taken


class NewArchived(Taken, kw_only=True):
    """Up to which position a lake has the journal, of which store; the sum of its manifest."""

    to: int
    incarnation: int
    manifest: str | None = None


class JournalBounds(Given, kw_only=True, omit_defaults=False):
    """The first position there is and the last that is final; all up to `pruned` is no longer kept.

    `reach` is the last position up to which no more than the `events` asked for come, or one entry does;
    `count` is how many come up to the `upto` asked for; all up to `archived` is in a lake.
    """

    first: int
    last: int
    incarnation: int
    pruned: int
    archived: int
    reach: int | UnsetType = UNSET
    count: int | UnsetType = UNSET


class Archived(Given, kw_only=True):
    """Up to which position the journal is archived now."""

    archived: int
