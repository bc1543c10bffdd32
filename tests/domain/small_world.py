"""A world small enough to walk through whole: three messages, two groups, two holders, two dedup keys.

Every command is tried in every state there is, breadth first, with a head of two messages and with
checkpoints and forgetting in between. On every edge the real queue must answer as the reference does and keep
the promises below. What breaks one is printed as a test to paste, and since the walk is breadth first it is
one of the shortest there are.

    python -m tests.domain.small_world              every edge of every world
    python -m tests.domain.small_world --edges N    the first N of each
"""

from __future__ import annotations

import argparse
import pickle
import sys
import time
from collections import deque
from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass, fields
from typing import Any

from hq.domain import commands as c
from hq.domain.events import Event
from hq.domain.messages import LEASED, Options
from hq.domain.settings import Backoff, Groups, RetryPolicy, Settings
from hq.testing import MemoryQueue
from tests.domain.reference import LIVE, Outcome
from tests.domain.reference import Message as Model
from tests.domain.twin import Twin

MESSAGES = 3
LAST_INSTANT = 3
MOST_RECEIVES = 3
MOST_ATTEMPTS = 2

WORLDS = {
    kind.value: Settings(
        max_attempts=MOST_ATTEMPTS,
        lease_ms=1,
        retry=RetryPolicy(Backoff.FIXED, base_ms=1, jitter_percent=0),
        dedup_ms=1,
        failed_ms=2,
        groups=kind,
    )
    for kind in (Groups.ORDERED, Groups.FIFO)
}
OPTIONS = (
    Options(),
    Options(group="a"),
    Options(group="b", priority=1),
    Options(group="a", dedup_key="k"),
    Options(group="a", delay_ms=1),
    Options(dedup_key="l", ttl_ms=2),
)

Step = c.Command | str


@dataclass
class Broken(Exception):
    """A promise was broken at the end of this path."""

    world: str
    path: list[Step]
    cause: str


class SilentQueue(MemoryQueue):
    """A queue that keeps no journal: the world has no crashes, and a journal only makes states heavier."""

    def _append(self, events: list[Event]) -> None:
        pass


class SilentTwin(Twin):
    """The twin that walks."""

    queue_type = SilentQueue

    def take(self, step: Step) -> Outcome | None:
        """One edge of the world."""
        if step == "advance":
            self.advance(1)
            self._wake()
            return None
        if step in ("checkpoint", "shed"):
            getattr(self.queue, str(step))()
            return None
        assert not isinstance(step, str)
        before = {message.ordinal: Past(message) for message in self.reference.messages}
        outcome = self.ask(step)
        check_promises(self, step, outcome, before)
        return outcome


class Past:
    """What a message was before a step."""

    def __init__(self, message: Model) -> None:
        self.state = message.state
        self.receives = message.receives
        self.lease_expires_at = message.lease_expires_at
        self.group = message.group


def steps(twin: Twin) -> Iterator[Step]:
    """Everything one can do here."""
    messages = twin.reference.messages
    if len(messages) < MESSAGES:
        yield from (c.Enqueue(b"p", options) for options in OPTIONS)
    if all(message.receives < MOST_RECEIVES for message in messages):
        yield from (c.Receive(limit, holder=holder) for limit, holder in ((1, "x"), (2, "y")))
    for message in messages:
        ordinal, latest = message.ordinal, message.receives
        if message.state in LIVE and latest:
            for verb in (c.Complete, c.Retry, c.Fail, c.Release, c.Extend):
                yield verb(ordinal, latest)
                yield verb(ordinal, latest - 1 or -1)
        yield c.Complete(ordinal)
        yield c.Delete(ordinal)
        yield c.Requeue(ordinal)
    yield from (c.DeleteByKey("k", "a"), c.Replace("l", b"q"), c.Purge())
    yield from (c.PauseGroup("a"), c.ResumeGroup("a"), c.Peek(3), c.Count())
    if twin.clock.now < LAST_INSTANT:
        yield "advance"
    yield from ("checkpoint", "shed")


def check_promises(twin: Twin, step: c.Command, outcome: Outcome, before: dict[int, Past]) -> None:
    """The domain's promises, said without the reference's help."""
    now = twin.clock.now
    if outcome[0] == "received":
        check_deliveries(twin, [delivery[0] for delivery in outcome[1]], before)
    if outcome[0] == "settled" and isinstance(step, c.Complete | c.Retry | c.Fail | c.Release | c.Extend):
        past = before[step.message]
        assert past.state in LIVE, "only a live message is settled by its holder"
        assert step.token in (None, past.receives), "a stale token never succeeds"
        if isinstance(step, c.Retry | c.Release | c.Extend) or step.token is None:
            assert past.state == "leased", "it needs a running lease"
            assert past.lease_expires_at > now, "it needs a running lease"
    for message in twin.queue.state.messages.values():
        assert message.attempts <= MOST_ATTEMPTS, "attempts stay within their bound"
        if message.state is LEASED:
            assert message.lease_expires_at >= now, "no lease outlives its end"


def check_deliveries(twin: Twin, ordinals: list[int], before: dict[int, Past]) -> None:
    """What one receive may hand out."""
    now = twin.clock.now
    state = twin.queue.state
    groups = {}
    for ordinal in ordinals:
        past = before[ordinal]
        message = state.messages[twin.sequences[ordinal - 1]]
        lease_ran = past.state == "leased" and past.lease_expires_at > now
        assert past.state in LIVE, "what is settled is never received"
        assert not lease_ran, "no two valid leases at once"
        assert message.receives == past.receives + 1, "receives count every lease"
        assert message.available_at <= now, "nothing is received before it is available"
        assert message.expires_at is None or message.expires_at > now, "nothing is received after it expired"
        if past.group is not None:
            groups.setdefault(past.group, []).append(ordinal)
    for group, taken in groups.items():
        assert group not in state.paused_groups, "a paused group hands nothing out"
        assert taken == sorted(taken) or twin.reference.settings.groups is not Groups.FIFO, "fifo is in order"
        held = [past for past in before.values() if past.group == group and past.state == "leased"]
        assert all(past.lease_expires_at <= now for past in held), "a leased message blocks its group"


def fingerprint(twin: Twin) -> Hashable:
    """What tells two states of the world apart: what happened, and what memory holds of it."""
    state = twin.queue.state
    names = {sequence: ordinal for ordinal, sequence in enumerate(twin.sequences, start=1)}
    now = twin.clock.now

    def rest(key: Any) -> Hashable:
        return key[0], names.get(key[1], key[1])

    def of_model(message: Model) -> Hashable:
        key_until = max(message.dedup_until, now) if message.holds_key else now
        if message.state not in (*LIVE, "failed"):
            return message.state, key_until if message.options.dedup_key else 0
        return (
            OPTIONS.index(message.options), message.state, message.available_at, message.expires_at,
            message.place, message.receives, message.attempts, message.spent_receives, key_until,
            message.lease_expires_at if message.state == "leased" else 0, message.holds_key,
            message.kept_until if message.state == "failed" else 0, message.payload,
        )  # fmt: skip

    def of_memory(sequence: int) -> Hashable:
        held = state.messages.get(sequence) or state.delta.get(sequence)
        if held is None:
            return None
        known = (sequence in state.messages, sequence in state.delta, held.stored, held.fresh)
        return known, held.payload is None, held.holder, held.stored_at, held.lane is None

    return (
        now,
        tuple(of_model(message) for message in twin.reference.messages),
        frozenset(twin.reference.paused_groups),
        tuple(of_memory(sequence) for sequence in twin.sequences),
        tuple((rank, rest(shelf.rest)) for rank, shelf in sorted(state.order.shelves.items())),
        tuple(
            (lane.id, rest(lane.rest), lane.eager, lane.id in state.order.hungry)
            for gate in state.order.gates.values()
            for lane in gate.lanes.values()
        ),
        (state.order.bounds_known, state.has_rows, state.has_keys, rest(state.ends.rest)),
    )


@dataclass
class Walk:
    """How far a walk came."""

    edges: int = 0
    states: int = 1
    whole: bool = False


def walk(world: str, most_edges: int | None = None, told: Callable[[Walk], None] | None = None) -> Walk:
    """Try every step in every state, breadth first, until all are tried or the bound is reached."""
    twin = SilentTwin(WORLDS[world])
    done = Walk()
    seen = {fingerprint(twin): 0}
    came_from: list[tuple[int, Step] | None] = [None]
    frontier = deque([(0, pickle.dumps(twin, pickle.HIGHEST_PROTOCOL))])
    while frontier:
        number, frozen = frontier.popleft()
        twin = pickle.loads(frozen)
        here = fingerprint(twin)
        for step in list(steps(twin)):
            if done.edges == most_edges:
                return done
            try:
                twin.take(step)
                there = fingerprint(twin)
            except Exception as cause:
                path = [*path_to(number, came_from), step]
                raise Broken(world, path, f"{type(cause).__name__}: {cause}") from cause
            done.edges += 1
            if there == here:
                continue
            if there not in seen:
                seen[there] = len(came_from)
                came_from.append((number, step))
                frontier.append((seen[there], pickle.dumps(twin, pickle.HIGHEST_PROTOCOL)))
                done.states += 1
                if told is not None and done.states % 10_000 == 0:
                    told(done)
            twin = pickle.loads(frozen)
    done.whole = True
    return done


def path_to(number: int, came_from: list[tuple[int, Step] | None]) -> list[Step]:
    """The steps from the beginning to a state."""
    path: list[Step] = []
    while (origin := came_from[number]) is not None:
        number, step = origin
        path.append(step)
    return path[::-1]


def as_test(broken: Broken) -> str:
    """A broken promise as a test to paste into tests/domain/test_small_world.py."""
    lines = [f"    twin.take({step_source(step)})" for step in broken.path]
    opening = [
        f"# {broken.cause}",
        "def test_found_by_the_small_world():",
        f'    twin = SilentTwin(WORLDS["{broken.world}"])',
    ]
    return "\n".join([*opening, *lines])


def step_source(step: Step) -> str:
    """A step as it is written in a test."""
    if isinstance(step, str):
        return repr(step)
    if isinstance(step, c.Enqueue):
        return f"c.Enqueue({step.payload!r}, OPTIONS[{OPTIONS.index(step.options)}])"
    values = ((field.name, getattr(step, field.name), field.default) for field in fields(step))
    told = [f"{name}={value!r}" for name, value, default in values if value != default]
    return f"c.{type(step).__name__}({', '.join(told)})"


def main() -> None:
    """Walk the worlds and report."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--edges", type=int, default=None)
    parser.add_argument("--worlds", nargs="+", choices=list(WORLDS), default=list(WORLDS))
    arguments = parser.parse_args()
    for world in arguments.worlds:
        started = time.monotonic()

        def told(done: Walk, world: str = world) -> None:
            print(f"  {world}: {done.edges:,} edges, {done.states:,} states", file=sys.stderr)

        try:
            done = walk(world, arguments.edges, told)
        except Broken as broken:
            raise SystemExit(as_test(broken)) from broken
        seconds = time.monotonic() - started
        extent = "all of them" if done.whole else "the first"
        print(f"{world}: {done.edges:,} edges ({extent}), {done.states:,} states, {seconds:.0f} s")


if __name__ == "__main__":
    main()
