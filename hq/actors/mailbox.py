"""A bounded mailbox, drained whole. Everything put in is answered, if only by the actor's end."""

from __future__ import annotations

from asyncio import Future
from collections import deque
from collections.abc import Callable
from typing import Any

from hq.domain.commands import Command, Complete, Extend, Fail, Release, Retry
from hq.errors import Overloaded

# Settling outranks the rest under overload: it makes room.
SETTLING = (Complete, Retry, Fail, Release, Extend)


class Envelope:
    """A command and the slot for its reply; `wait_until` is how long a receive may wait for something.

    It may hold many commands that are no receives: then the reply is a list, an error among it for each that
    was refused.
    """

    __slots__ = ("command", "many", "reply", "wait_until")

    def __init__(self, command: Command, reply: Future[Any], wait_until: int | None = None) -> None:
        self.command = command
        self.reply = reply
        self.wait_until = wait_until
        self.many: list[Command] | None = None

    @classmethod
    def of_many(cls, commands: list[Command], reply: Future[Any]) -> Envelope:
        """An envelope of at least one command."""
        envelope = cls(commands[0], reply)
        envelope.many = commands
        return envelope

    @property
    def weight(self) -> int:
        """How many commands it holds."""
        return 1 if self.many is None else len(self.many)

    def answer(self, value: object) -> bool:
        """Give the reply, or raise it if it is an error; False if nobody waits for it any more."""
        if self.reply.done():
            return False
        if isinstance(value, Exception):
            self.reply.set_exception(value)
        else:
            self.reply.set_result(value)
        return True


class Mailbox:
    """Envelopes in the order they came."""

    __slots__ = ("_envelopes", "_held", "limit", "notify")

    def __init__(self, limit: int, notify: Callable[[], None]) -> None:
        self._envelopes: deque[Envelope] = deque()
        self._held = 0
        self.limit = limit
        self.notify = notify

    def __len__(self) -> int:
        """How many commands are in it."""
        return self._held

    def put(self, envelope: Envelope) -> None:
        """Add an envelope; Overloaded if there are too many."""
        held = self._held
        if held >= self.limit and (held >= self.limit * 2 or not isinstance(envelope.command, SETTLING)):
            raise Overloaded
        self._envelopes.append(envelope)
        self._held = held + envelope.weight
        self.notify()

    def take(self, most: int) -> list[Envelope]:
        """Everything there is, or the first until there are so many commands."""
        envelopes = self._envelopes
        if self._held <= most:
            taken = list(envelopes)
            envelopes.clear()
            self._held = 0
            return taken
        taken = []
        while envelopes and most > 0:
            taken.append(envelopes.popleft())
            most -= taken[-1].weight
            self._held -= taken[-1].weight
        return taken

    def put_back(self, envelopes: list[Envelope]) -> None:
        """Return what was taken and not dealt with, to the front."""
        self._envelopes.extendleft(reversed(envelopes))
        self._held += sum(envelope.weight for envelope in envelopes)

    def answer_all(self, error: Exception) -> None:
        """Answer everyone with an error."""
        for envelope in self.take(self._held):
            envelope.answer(error)
