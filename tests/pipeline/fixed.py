"""A small journal at fixed instants, of which every figure can be worked out by hand.

Seconds are counted from START, ten minutes before a midnight. Of queue emails:

    message  ready  received  ended                       waits    works
    a            0         2      5  completed                2        3
    b            0         2      3  retried (timeout)        2        1
                 7         9     10  completed                2        1
    c            0         9     15  lapsed                   9        6
                15        20     21  failed (bad address)     5        1
    d           10                   open
    e          660              661  deleted

Queue other gets three messages at 0, and is purged at 661.
"""

import hq
from hq.testing import FrozenClock

START = 1_772_409_000_000
"""2026-03-01 23:50:00 UTC."""
S = 1_000


class _Days:
    """A system whose clock is at a second when told so."""

    def __init__(self, begun_at: int) -> None:
        self.clock = FrozenClock(START + begun_at * S)

    def at(self, second: int) -> None:
        self.clock.advance(START + second * S - self.clock.now)


async def write_first(url: str) -> None:
    """What happens up to second 10."""
    days = _Days(0)
    async with hq.open(url, clock=days.clock) as system:
        emails, other = await system.create_queue("emails"), await system.create_queue("other")
        for name in "abc":
            await emails.enqueue(name, dedup_key=name)
        await emails.enqueue("d", dedup_key="d", delay_ms=10 * S)
        await other.enqueue_many(["x", "y", "z"])
        days.at(2)
        a, b = await emails.receive(limit=2, holder="w1")
        days.at(3)
        await emails.retry(b, delay_ms=4 * S, error="timeout after 17 ms")
        days.at(5)
        await emails.complete(a)
        days.at(9)
        _, b = await emails.receive(limit=2, lease_ms=6 * S, holder="w2")
        days.at(10)
        await emails.complete(b)


async def write_second(url: str) -> None:
    """What happens after it."""
    days = _Days(10)
    async with hq.open(url, clock=days.clock) as system:
        emails, other = system.queue("emails"), system.queue("other")
        days.at(15)
        # Whatever a queue is told, it first ends the leases that are over.
        await emails.pause()
        await emails.resume()
        days.at(20)
        [c] = await emails.receive(holder="w1")
        days.at(21)
        await emails.fail(c, error="bad address 42")
        days.at(660)
        e = await emails.enqueue("e", dedup_key="e")
        days.at(661)
        await emails.delete(str(e.id))
        await other.purge()
