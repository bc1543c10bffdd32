"""Progress and outcome: how far the work on a message is, and what came of it."""

from __future__ import annotations

from hq.domain.chance import Chance
from hq.domain.commands import Outcome, Progress
from hq.domain.events import Progressed
from hq.domain.messages import COMPLETED, FAILED, MAX_PROGRESS_BYTES, MOVING
from hq.domain.replies import Decision, Settled
from hq.domain.replies import Outcome as Told
from hq.domain.state import QueueState
from hq.domain.verbs.settle import held
from hq.errors import PayloadTooLarge


def progress(state: QueueState, command: Progress, now: int, _: Chance) -> Decision:
    """Say how far the work is; the next attempt finds it, should this one not be the last."""
    if len(command.progress) > MAX_PROGRESS_BYTES:
        raise PayloadTooLarge(f"a progress has at most {MAX_PROGRESS_BYTES} bytes")
    message = held(state, command, now)
    event = Progressed(state.sequence + 1, now, message.sequence, command.progress)
    return [event], Settled(message.sequence, "leased", message.lease_expires_at)


def outcome(state: QueueState, command: Outcome, now: int, _: Chance) -> Decision:
    """What came of a message, or how far it is; a dead letter on its way elsewhere is failed too."""
    message = state.message_or_result(command.message, now)
    seen = "failed" if message.state in {FAILED, MOVING} else message.seen_at(now)
    result = state.with_payload(message) if message.state is COMPLETED else None
    told = Told(message.sequence, seen, message.attempts, message.progress, result, message.error)
    return [], told
