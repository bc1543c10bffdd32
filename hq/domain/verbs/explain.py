"""Explain: why a message is not being received, and until when."""

from __future__ import annotations

from hq.domain.chance import Chance
from hq.domain.commands import Explain
from hq.domain.lookups import END, Bounds
from hq.domain.messages import FAILED, LEASED, MOVING, Message
from hq.domain.ordering import Gate, Lane
from hq.domain.rates import allowance, allowed_at
from hq.domain.replies import Blocker, Decision, Explanation
from hq.domain.selection import is_worn_out, lane_page
from hq.domain.signals import Lacking, Overdue
from hq.domain.state import QueueState


def explain(state: QueueState, command: Explain, now: int, _: Chance) -> Decision:
    """Everything that keeps a message back; nothing means it can be received now, in its turn."""
    message = state.message(command.message, now)
    if message.state is LEASED:
        blockers = [Blocker("leased", message.lease_expires_at, message.sequence, message.holder)]
    elif message.state is FAILED:
        blockers = [Blocker("failed", reason=message.reason)]
    elif message.state is MOVING:
        blockers = [Blocker("moving", reason=message.target)]
    elif is_worn_out(state, message):
        raise Overdue(message)
    else:
        blockers = [*_by_itself(message, now), *_by_queue(state, now), *_by_lane(state, message)]
    return [], Explanation(message.seen_at(now), tuple(blockers))


def _by_itself(message: Message, now: int) -> list[Blocker]:
    if message.available_at <= now:
        return []
    return [Blocker("delayed", message.available_at, message.sequence)]


def _by_queue(state: QueueState, now: int) -> list[Blocker]:
    settings = state.settings
    blockers = []
    if state.paused is not None:
        blockers.append(Blocker("queue_paused", reason=state.paused))
    if settings.concurrency is not None and len(state.leases) >= settings.concurrency:
        blockers.append(Blocker("concurrency", state.next_lease_end()))
    rate, mark = settings.receive_rate, state.receive_mark
    if rate is not None and allowance(rate, mark, now) < 1:
        blockers.append(Blocker("receive_rate", allowed_at(rate, mark)))
    return blockers


def _by_lane(state: QueueState, message: Message) -> list[Blocker]:
    if message.place is None:
        return []
    lane = message.lane or _lane(state, message)
    if lane.id.kind == "key":
        limit = state.settings.concurrency_per_key
        full = limit is not None and lane.gate.leased >= limit
        return [_lease_of(state, lane.gate, "concurrency_key")] if full else []
    blockers = []
    if lane.id.name in state.paused_groups:
        blockers.append(Blocker("group_paused", reason=state.paused_groups[lane.id.name]))
    if lane.gate.leased:
        blockers.append(_lease_of(state, lane.gate, "group_leased"))
    first = _first(state, lane)
    if first is not message and first.sequence != message.sequence:
        blockers.append(Blocker("group_order", first.available_at, first.sequence))
    return blockers


def _lane(state: QueueState, message: Message) -> Lane:
    """The lane of a row that was fetched for this look alone."""
    lane_id = message.lane_id
    assert lane_id is not None
    if not state.order.bounds_known:
        raise Lacking(Bounds())
    return state.order.lane(lane_id)


def _first(state: QueueState, lane: Lane) -> Message:
    """The message that is first in a lane, which has at least the one explained."""
    first = state.order.first(lane)
    if lane.rest != END and (not lane.heap or lane.heap[0] >= lane.rest):
        raise Lacking(lane_page(state, lane))
    assert first is not None
    return first


def _lease_of(state: QueueState, gate: Gate, code: str) -> Blocker:
    """The lease that ends first among those that keep a gate closed."""
    held = [lease for lease in state.leases.values() if lease.lane is not None and lease.lane.gate is gate]
    first = min(held, key=lambda lease: lease.lease_expires_at)
    return Blocker(code, first.lease_expires_at, first.sequence, first.holder)
