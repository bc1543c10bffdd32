"""Tell a queue what became of messages, whether named by a message in hand or by its id."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

from hq.domain.commands import Command
from hq.domain.ids import MessageId
from hq.domain.replies import Settled as Reply
from hq.errors import HQError, InvalidInput
from hq.system.each import ask_each
from hq.system.lease import LOST
from hq.system.line import Line
from hq.system.message import Message
from hq.system.results import Settled
from hq.system.seen import SeenMessage


class Held(NamedTuple):
    """A message by its id, and by the token of its lease in hexadecimal: whoever has both holds it."""

    id: str
    token: str


Target = Message | SeenMessage | Held | str
# A list is invariant: a list of messages is no list of targets.
Targets = list[Message] | list[SeenMessage] | list[Held] | list[str] | list[Target]

Build = Callable[[int, bytes | None], Command]


class Settler:
    """Settles messages of one queue."""

    __slots__ = ("_line", "_queue")

    def __init__(self, line: Line, queue: str) -> None:
        self._line = line
        self._queue = queue

    async def one(self, target: Target, build: Build) -> Settled:
        """What became of one message; a refusal is raised."""
        number = self._line.number(self._queue)
        command = self._command(number, target, build)
        try:
            reply: Reply = await self._line.node.post(number, command)
        except BaseException as error:
            _note(target, error)
            raise
        return self._settled(number, target, reply)

    async def many(self, targets: Targets, build: Build) -> list[Settled | HQError]:
        """What became of each, or why it was refused."""
        number = self._line.number(self._queue)
        post = partial(self._line.node.post_many, number)
        try:
            told = await ask_each(targets, partial(self._command, number, build=build), post)
        except BaseException as error:
            for target in targets:
                _note(target, error)
            raise
        return [self._told(number, *pair) for pair in zip(targets, told, strict=True)]

    def sequence(self, number: int, target: Target) -> int:
        """The sequence of a message in its queue."""
        if isinstance(target, Message | SeenMessage | Held):
            target = target.id
        elif not isinstance(target, str):
            raise InvalidInput("a message is named by itself or by its id")
        return self._line.sequence_of(number, MessageId.parse(target))

    def _command(self, number: int, target: Target, build: Build) -> Command:
        """The command for one; until it is answered, no renewal interferes."""
        if isinstance(target, Held):
            return build(self.sequence(number, target), _token(target.token))
        if not isinstance(target, Message):
            return build(self.sequence(number, target), None)
        lease = target.lease
        command = build(self._line.sequence_of(number, lease.message), lease.token)
        lease.settling = True
        return command

    def _told(self, number: int, target: Target, told: Reply | HQError) -> Settled | HQError:
        if isinstance(told, HQError):
            _note(target, told)
            return told
        return self._settled(number, target, told)

    def _settled(self, number: int, target: Target, reply: Reply) -> Settled:
        if isinstance(target, Message):
            target.lease.settling = False
            target.lease.become(reply.state, reply.until)
            return Settled(target.lease.message, reply.state, reply.until)
        return Settled(self._line.id_of(number, reply.message), reply.state, reply.until)


def _token(text: str) -> bytes:
    try:
        return bytes.fromhex(text)
    except ValueError:
        raise InvalidInput("a token is hexadecimal") from None


def _note(target: Target, error: BaseException) -> None:
    """A message's lease knows that it was not settled, and whether it is lost."""
    if isinstance(target, Message):
        target.lease.settling = False
        if isinstance(error, LOST):
            target.lease.lose()
