"""The real queue and the naive reference side by side: both are asked the same and must answer the same."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from hq.domain import commands as c
from hq.domain.replies import Accepted, Done, Settled, Stats
from hq.domain.replies import Outcome as Told
from hq.domain.settings import Settings
from hq.domain.timing import wake_at
from hq.errors import CallerError
from hq.testing import FrozenClock, MemoryQueue
from tests.domain.reference import Outcome, Reference

FOREIGN = -1
BY_ID = None
COUNTED = ("ready", "delayed", "leased", "failed", "completed", "expired", "deleted", "purged", "enqueued")


class Twin:
    """Commands name messages by ordinal and tokens by the receive they came from, as the reference does."""

    queue_type = MemoryQueue

    def __init__(self, settings: Settings, head: int = 2) -> None:
        self.clock = FrozenClock(0)
        self.queue = self.queue_type(settings, clock=self.clock, head=head)
        self.reference = Reference(settings)
        self.sequences: list[int] = []
        self.tokens: dict[tuple[int, int], bytes] = {}

    def ask(self, command: c.Command) -> Outcome:
        """Ask both, compare, and give the common answer."""
        self._wake()
        reply = self.queue.reply(self._in_sequences(command))
        if isinstance(command, c.Retry) and isinstance(reply, Settled):
            self.reference.retry_available_at = reply.until
        expected = self.reference.ask(command, self.clock.now)
        outcome = self._in_ordinals(command, reply)
        assert outcome == expected, f"{command}: {outcome}, but the reference says {expected}"
        self.queue.state.check()
        return outcome

    def advance(self, ms: int) -> None:
        """Let time pass."""
        self.clock.advance(ms)

    def _wake(self) -> None:
        """Do what time has made due, as an actor's timer would; the reference does so at every question."""
        while (due := wake_at(self.queue.state)) is not None and due <= self.clock.now:
            self.queue.ask(c.Wake())

    def _in_sequences(self, command: Any) -> c.Command:
        """The command in the real queue's terms."""
        if getattr(command, "message", None) is None:
            return command
        ordinal = command.message
        known = 1 <= ordinal <= len(self.sequences)
        named = replace(command, message=self.sequences[ordinal - 1] if known else 10_000)
        if getattr(command, "token", None) is not None:
            named.token = self.tokens.get((ordinal, command.token), b"a foreign token.")
        return named

    def _in_ordinals(self, command: c.Command, reply: Any) -> Outcome:
        """The reply in the reference's terms."""
        match reply:
            case CallerError():
                return ("refused", reply.code)
            case Accepted(message, duplicate):
                if not duplicate:
                    self.sequences.append(message)
                return ("accepted", self._ordinal(message), duplicate)
            case Settled(message, state, _):
                return ("settled", self._ordinal(message), state)
            case Told(message, state, attempts, progress, result):
                return ("outcome", self._ordinal(message), state, attempts, progress, result)
            case Stats():
                return ("stats", {name: getattr(reply, name) for name in COUNTED})
            case Done(count):
                return ("done", count) if isinstance(command, c.Purge) else ("done",)
        if isinstance(command, c.Peek):
            return ("peeked", [self._ordinal(seen.message.sequence) for seen in reply])
        return ("received", [self._delivered(delivery) for delivery in reply])

    def _delivered(self, delivery: Any) -> Outcome:
        ordinal = self._ordinal(delivery.message)
        self.tokens[ordinal, delivery.receives] = delivery.token
        return (ordinal, delivery.receives, delivery.attempts, delivery.lease_expires_at, delivery.payload)

    def _ordinal(self, sequence: int) -> int:
        return self.sequences.index(sequence) + 1
