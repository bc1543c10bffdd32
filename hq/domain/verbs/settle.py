"""Complete, retry, fail, release, extend: what the holder of a lease says became of it."""

from __future__ import annotations

from hq.domain.chance import Chance
from hq.domain.commands import Complete, Extend, Fail, Progress, Release, Retry
from hq.domain.events import Completed, Extended, Released, Retried
from hq.domain.messages import LEASED, MAX_ERROR_CHARS, MAX_RESULT_BYTES, WAITING, Message, short_text
from hq.domain.replies import Decision, Settled
from hq.domain.selection import is_worn_out
from hq.domain.settings import FIFO, MAX_LEASE_MS, MAX_SPAN_MS, optional_in_range
from hq.domain.state import QueueState
from hq.domain.timing import Ending, failed
from hq.domain.tokens import is_token
from hq.domain.verbs.enqueue import in_time
from hq.domain.verbs.receive import lease_end
from hq.errors import LeaseExpired, LeaseNotHeld, PayloadTooLarge

NO_RESULT = b"null"


def complete(state: QueueState, command: Complete, now: int, _: Chance) -> Decision:
    """The work is done; its result is kept if the producer asked for one."""
    if command.result is not None and len(command.result) > MAX_RESULT_BYTES:
        raise PayloadTooLarge(f"a result has at most {MAX_RESULT_BYTES} bytes")
    message = _latest(state, command.message, command.token, now)
    if message.state is WAITING:
        _check_late(state)
    event = Completed(state.sequence + 1, now, message.sequence, message.state)
    result_ms = message.options.result_ms
    if result_ms is not None:
        event.result, event.kept_until = command.result or NO_RESULT, now + result_ms
    return [event], Settled(message.sequence, "completed")


def fail(state: QueueState, command: Fail, now: int, _: Chance) -> Decision:
    """Never again: the message becomes a dead letter."""
    short_text("error", command.error, MAX_ERROR_CHARS)
    message = _latest(state, command.message, command.token, now)
    if message.state is WAITING:
        _check_late(state)
    events = failed(state, message, Ending(now, "failed", command.error))
    return events, Settled(message.sequence, "failed")


def retry(state: QueueState, command: Retry, now: int, chance: Chance) -> Decision:
    """The attempt went wrong: try later, or never if it was the last."""
    optional_in_range("delay_ms", command.delay_ms, 0, MAX_SPAN_MS)
    short_text("error", command.error, MAX_ERROR_CHARS)
    message = held(state, command, now)
    if is_worn_out(state, message):
        events = failed(state, message, Ending(now, "attempts", command.error))
        return events, Settled(message.sequence, "failed")
    delay_ms = command.delay_ms
    if delay_ms is None:
        policy = message.options.retry or state.settings.retry
        delay_ms = policy.delay_ms(message.attempts)
        jitter_ms = policy.jitter_ms(delay_ms)
        delay_ms += chance.between(-jitter_ms, jitter_ms) if jitter_ms else 0
    available_at = in_time(now + delay_ms, message.expires_at)
    event = Retried(state.sequence + 1, now, message.sequence, available_at, command.error)
    state_after = "delayed" if available_at > now else "ready"
    return [event], Settled(message.sequence, state_after, available_at)


def release(state: QueueState, command: Release, now: int, _: Chance) -> Decision:
    """Give the message back without blame: the attempt does not count."""
    message = held(state, command, now)
    event = Released(state.sequence + 1, now, message.sequence, message.attempts - 1)
    return [event], Settled(message.sequence, "ready", message.available_at)


def extend(state: QueueState, command: Extend, now: int, _: Chance) -> Decision:
    """Set a new end of the lease, counted from now; 0 ends it."""
    optional_in_range("lease_ms", command.lease_ms, 0, MAX_LEASE_MS)
    message = held(state, command, now)
    until = lease_end(state, message, command.lease_ms, now)
    event = Extended(state.sequence + 1, now, message.sequence, until)
    return [event], Settled(message.sequence, "leased", until)


def _check_late(state: QueueState) -> None:
    """The work is done though the lease has ended: that counts, unless the queue is fifo."""
    if state.settings.groups is FIFO:
        raise LeaseExpired


def held(state: QueueState, command: Retry | Release | Extend | Progress, now: int) -> Message:
    """The message of the latest token, whose lease still runs."""
    message = _latest(state, command.message, command.token, now)
    if message.state is WAITING:
        raise LeaseExpired
    return message


def _latest(state: QueueState, sequence: int, token: bytes | None, now: int) -> Message:
    """The message whose latest token this is; without a token, the message while it is leased."""
    message = state.leases.get(sequence) or state.message(sequence, now)
    if token is None:
        if message.state is not LEASED:
            raise LeaseNotHeld
    elif message.token_hash is None or not is_token(token, message.token_hash):
        raise LeaseNotHeld
    if message.state is not LEASED and message.state is not WAITING:
        raise LeaseExpired
    return message
