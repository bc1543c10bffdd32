"""Token buckets in exact integers, as one number each: the mark.

The mark is the instant, in units of 1/limit ms, at which the bucket is full again; an operation costs
`per_ms` units. So a bucket needs no refill and no fractions, and a mark of 0 is a full bucket.
"""

from __future__ import annotations

from hq.domain.settings import Rate


def allowance(rate: Rate, mark: int, now: int) -> int:
    """How many operations the bucket allows at once."""
    instant = now * rate.limit
    return (instant + rate.burst * rate.per_ms - max(mark, instant)) // rate.per_ms


def spent(rate: Rate, mark: int, now: int, count: int) -> int:
    """The mark after so many operations."""
    return max(mark, now * rate.limit) + count * rate.per_ms


def allowed_at(rate: Rate, mark: int) -> int:
    """When the bucket allows the next operation."""
    return -(((rate.burst - 1) * rate.per_ms - mark) // rate.limit)
