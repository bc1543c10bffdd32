"""Dedup keys: who holds one."""

from __future__ import annotations

from hq.domain.lookups import Entry, KeyOf
from hq.domain.messages import Message
from hq.domain.signals import Lacking
from hq.domain.state import QueueState
from hq.errors import MessageNotFound


def key_holder(state: QueueState, key: str, group: str | None, now: int) -> Entry | None:
    """Who holds a key: its message while that lives, and in any case for the window."""
    scoped = state.dedup_key(key, group)
    if not state.knows_key(scoped):
        raise Lacking(KeyOf(scoped))
    entry = state.entry(scoped)
    if entry is None:
        return None
    if entry.live and entry.expires_at is not None and entry.expires_at <= now:
        # The message may be over without anyone having met it yet: this ends it, and perhaps frees the key.
        state.message(entry.message, now)
    return entry if entry.live or now < entry.until else None


def message_by_key(state: QueueState, key: str, group: str | None, now: int) -> Message:
    """The message that holds a key."""
    entry = key_holder(state, key, group, now)
    if entry is None:
        raise MessageNotFound
    return state.message(entry.message, now)


def key_is_free_for(state: QueueState, message: Message, now: int) -> bool:
    """Whether a message that lives again may hold its key again."""
    key = message.options.dedup_key
    if key is None:
        return False
    entry = key_holder(state, key, message.options.group, now)
    return entry is None or entry.message == message.sequence
