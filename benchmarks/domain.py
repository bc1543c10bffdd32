"""What the rules cost: a cycle of enqueue, receive, complete, against a toy, and against the backlog's size.

The toy is a slotted message, a heap of ready ones, a dictionary of leases and a random token: the least a
queue can be. Both run in this process, in turns; each figure is the best of several rounds. Backlogs are
stored, and each round begins with none of it in memory, so pages of the memory backend are in the figure.
"""

from __future__ import annotations

import argparse
import gc
from collections.abc import Callable, Sequence
from heapq import heappop, heappush
from secrets import token_bytes
from time import perf_counter

from hq.actors.chance import SystemChance
from hq.domain.apply import apply
from hq.domain.chance import Chance
from hq.domain.checkpoint import Checkpoint, shed
from hq.domain.commands import Complete, Enqueue, Receive
from hq.domain.decide import decide
from hq.domain.fetching import absorb
from hq.domain.lookups import Bounds
from hq.domain.messages import PLAIN, Options
from hq.domain.replies import AGAIN, Needs, Reply
from hq.domain.settings import Settings
from hq.domain.state import QueueState
from hq.testing.queue import MemoryQueue, at_once

AIM_OF_A_TOY = 6.0
AIM_OF_SLOPE = 1.2
BACKLOG_ROUNDS = 9


class ToyMessage:
    """The least a message can be."""

    __slots__ = ("lease_expires_at", "payload", "sequence", "token")

    def __init__(self, sequence: int, payload: bytes) -> None:
        self.sequence = sequence
        self.payload = payload
        self.token = b""
        self.lease_expires_at = 0


class Toy:
    """The least a queue can be."""

    def __init__(self) -> None:
        self.sequence = 0
        self.ready: list[tuple[int, ToyMessage]] = []
        self.leases: dict[int, ToyMessage] = {}

    def enqueue(self, payload: bytes) -> int:
        """Put in."""
        self.sequence += 1
        heappush(self.ready, (self.sequence, ToyMessage(self.sequence, payload)))
        return self.sequence

    def receive(self, now: int) -> ToyMessage:
        """Take out."""
        message = heappop(self.ready)[1]
        message.token = token_bytes(16)
        message.lease_expires_at = now + 30_000
        self.leases[message.sequence] = message
        return message

    def complete(self, sequence: int, token: bytes) -> None:
        """Done."""
        if self.leases[sequence].token != token:
            raise ValueError
        del self.leases[sequence]


def toy_cycles(toy: Toy, count: int) -> None:
    """Enqueue, receive, complete, `count` times."""
    for _ in range(count):
        toy.enqueue(b"payload")
        message = toy.receive(1_000_000)
        toy.complete(message.sequence, message.token)


def hq_cycles(state: QueueState, chance: Chance, count: int) -> None:
    """The same by decide and apply; each decision of a plain message is one event."""
    now = 1_000_000
    for _ in range(count):
        [event], _ = decide(state, Enqueue(b"payload"), now, chance)
        apply(state, event)
        [event], [delivery] = decide(state, Receive(), now, chance)
        apply(state, event)
        [event], _ = decide(state, Complete(delivery.message, delivery.token), now, chance)
        apply(state, event)


class Driven:
    """A queue driven by decide and apply alone, and by pages where memory ends."""

    def __init__(self, queue: MemoryQueue) -> None:
        self.queue = queue
        self.state: QueueState = queue.state
        self.chance = SystemChance()
        self.now = queue.clock.now

    def ask(self, command: Enqueue | Receive | Complete) -> Reply:
        """Decide, fetching what is lacking, and apply."""
        state = self.state
        while True:
            decision = decide(state, command, self.now, self.chance)
            if isinstance(decision, Needs):
                backend, number = self.queue.backend, self.queue.number
                absorb(state, decision.lookups, at_once(backend.fetch(number, decision.lookups)))
                continue
            events, reply = decision
            for event in events:
                apply(state, event)
            if reply is not AGAIN:
                return reply

    def cycles(self, count: int, options: Sequence[Options]) -> None:
        """Enqueue, receive, complete, `count` times."""
        for number in range(count):
            self.ask(Enqueue(b"payload", options[number % len(options)]))
            [delivery] = self.ask(Receive())
            self.ask(Complete(delivery.message, delivery.token))


def cost_us(run: Callable[[], None], cycles: int) -> float:
    """Microseconds a cycle; collections happen between rounds, not within."""
    gc.collect()
    gc.disable()
    started = perf_counter()
    run()
    elapsed = perf_counter() - started
    gc.enable()
    return elapsed / cycles * 1e6


def row(name: str, cost: float, ratio: float) -> None:
    """Print one line of the table."""
    print(f"{name:<50}{cost:7.2f} us{ratio:10.2f} x")


def against_toy(cycles: int, rounds: int) -> float:
    """Print what a cycle costs, beside the toy; the ratio."""
    toy, state, chance = Toy(), QueueState(Settings()), SystemChance()
    toy_us = hq_us = float("inf")
    for _ in range(rounds):
        toy_us = min(toy_us, cost_us(lambda: toy_cycles(toy, cycles), cycles))
        hq_us = min(hq_us, cost_us(lambda: hq_cycles(state, chance, cycles), cycles))
    row("toy queue", toy_us, 1)
    row("decide + apply", hq_us, hq_us / toy_us)
    return hq_us / toy_us


def backlog_us(size: int, per_group: int | None, head: int = 1_000) -> float:
    """Microseconds a cycle with so many messages waiting, every round beginning without any in memory."""
    queue = MemoryQueue(head=head)
    driven = Driven(queue)
    groups = [PLAIN] if per_group is None else [Options(group=str(n)) for n in range(size // per_group)]
    for number in range(size):
        driven.ask(Enqueue(b"payload", groups[number % len(groups)]))
    gc.freeze()

    def cold() -> None:
        checkpoint = Checkpoint(queue.state)
        while chunk := checkpoint.cut(100_000):
            at_once(queue.backend.checkpoint(queue.number, chunk, None))
            checkpoint.confirm(chunk)
        shed(queue.state)
        at_once(queue.backend.fetch(queue.number, [Bounds()]))

    best = float("inf")
    for _ in range(BACKLOG_ROUNDS):
        cold()
        best = min(best, cost_us(lambda: driven.cycles(head, groups), head))
    gc.unfreeze()
    return best


def against_backlog(sizes: list[int], per_group: int | None) -> float:
    """Print what a cycle costs behind backlogs of several sizes; the largest over the smallest."""
    costs = [backlog_us(size, per_group) for size in sizes]
    for size, cost in zip(sizes, costs, strict=True):
        name = f"{size:,} waiting, " + ("no groups" if per_group is None else f"groups of {per_group}")
        row(name, cost, cost / costs[0])
    return costs[-1] / costs[0]


def main() -> None:
    """Run everything and say whether the aims are met."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cycles", type=int, default=200)
    parser.add_argument("--rounds", type=int, default=300)
    parser.add_argument("--sizes", type=int, nargs="+", default=[1_000, 100_000, 1_000_000])
    arguments = parser.parse_args()
    ratio = against_toy(arguments.cycles, arguments.rounds)
    slopes = [against_backlog(arguments.sizes, per_group) for per_group in (None, 10)]
    told("aim: of the toy at most", f"{AIM_OF_A_TOY:.2f} x", ratio <= AIM_OF_A_TOY)
    told(
        "aim: from the first backlog to the last at most",
        f"{AIM_OF_SLOPE:.2f} x",
        max(slopes) <= AIM_OF_SLOPE,
    )


def told(name: str, aim: str, met: object) -> None:
    """Print whether an aim is met."""
    print(f"{name:<50}{aim:>10}{'met' if met else 'not met':>12}")


if __name__ == "__main__":
    main()
