"""A lease as its holder knows it: the token, until when, and what became of it."""

from __future__ import annotations

from collections.abc import Callable

from hq.domain.ids import MessageId
from hq.errors import (
    LeaseExpired,
    LeaseNotHeld,
    MessageNotFound,
    OutcomeUnknown,
    QueueNotFound,
    Unreachable,
)

# Whoever is told one of these no longer holds the message.
LOST = (LeaseExpired, LeaseNotHeld, MessageNotFound, QueueNotFound)
# Nobody heard whoever is told one of these, or nobody answered.
UNHEARD = (OutcomeUnknown, Unreachable)


class Lease:
    """Changes as its holder settles or extends it; `ended` is called once, when nothing is left to keep."""

    __slots__ = (
        "__weakref__", "ended", "expires_at", "lease_ms", "lost", "message", "renew_at", "settling", "state",
        "token",
    )  # fmt: skip

    def __init__(self, message: MessageId, token: bytes, expires_at: int, lease_ms: int | None) -> None:
        self.message = message
        self.token = token
        self.expires_at = expires_at
        self.lease_ms = lease_ms
        self.renew_at = expires_at
        self.state = "leased"
        self.lost = False
        self.settling = False
        self.ended: Callable[[Lease], None] | None = None

    @property
    def is_held(self) -> bool:
        """Whether it is worth renewing: not settled, not about to be, not lost."""
        return self.state == "leased" and not self.settling and not self.lost

    def plan(self, now: int) -> None:
        """Renew it when a third of what is left has passed."""
        self.renew_at = now + max(1, (self.expires_at - now) // 3)

    def become(self, state: str, until: int | None) -> None:
        """The queue has said what the message is now."""
        self.state = state
        if state == "leased":
            self.expires_at = self.expires_at if until is None else until
        else:
            self.end()

    def lose(self) -> None:
        """The queue has said that it is no longer held."""
        self.lost = True
        self.end()

    def end(self) -> None:
        """Tell whoever keeps it, once."""
        ended, self.ended = self.ended, None
        if ended is not None:
            ended(self)
