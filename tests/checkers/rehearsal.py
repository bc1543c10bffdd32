"""A history of the real rules: seeded clients on one queue in memory, whose answers sometimes get lost.

A lost answer is unknown to its client, whether the command was carried out or not. Now and then the queue
dies and loads again.
"""

from random import Random

from hq.domain import commands
from hq.domain.messages import Options
from hq.domain.replies import Accepted, Delivery, Settled
from hq.domain.settings import Settings
from hq.domain.tasks import Scope
from hq.errors import CallerError
from hq.testing import MemoryQueue
from hq.testing.queue import at_once
from tests.checkers.final import Appended, Final, QueueFinal
from tests.checkers.history import Asked, History, Operation, Outcome, Told, fingerprint, history_of

QUEUE = "work"
SETTLING = {
    "complete": commands.Complete,
    "fail": commands.Fail,
    "retry": commands.Retry,
    "release": commands.Release,
    "extend": commands.Extend,
}


class Rehearsal:
    """One seeded run; `lost` is the share of answers that never arrive."""

    def __init__(self, seed: int, settings: Settings, *, lost: float = 0.1) -> None:
        self.random = Random(seed)
        self.queue = MemoryQueue(settings, head=2)
        self.settings = settings
        self.lost = lost
        self.operations: list[Operation] = []
        self.held: list[Delivery] = []
        self.number = 0

    def run(self, steps: int) -> tuple[History, Final]:
        """So many commands, then what is left."""
        for _ in range(steps):
            self.queue.clock.advance(self.random.choice((0, 0, 1, 3, 20)))
            chosen = self.random.random()
            if chosen < 0.35:
                self.enqueue()
            elif chosen < 0.65:
                self.receive()
            elif chosen < 0.95:
                self.settle()
            elif chosen < 0.97:
                self.remove()
            else:
                self.queue.checkpoint()
                self.queue.crash()
        return history_of(self.operations), self.final()

    def enqueue(self) -> None:
        self.number += 1
        payload = str(self.number).encode()
        said = {
            "priority": self.random.choice((None, None, 0, 5)),
            "group": self.random.choice((None, None, "g", "h")),
            "delay_ms": self.random.choice((None, None, None, 10)),
            "ttl_ms": self.random.choice((None, None, None, 60)),
            "dedup_key": self.random.choice((None, None, "k", "l")),
            "max_attempts": self.random.choice((None, None, 2)),
        }
        asked = Asked(payload=fingerprint(payload), **said)
        self.ask("enqueue", commands.Enqueue(payload, Options(**said)), asked)

    def receive(self) -> None:
        limit, lease_ms = self.random.choice((1, 1, 3)), self.random.choice((0, 10, 40))
        command = commands.Receive(limit, lease_ms)
        answer = self.ask("receive", command, Asked(limit=limit, lease_ms=lease_ms))
        self.held += answer or []

    def settle(self) -> None:
        if not self.held:
            return
        held = self.random.choice(self.held[-6:])
        verb = self.random.choice([*SETTLING])
        said = {}
        if verb == "retry":
            said["delay_ms"] = self.random.choice((0, 5))
        if verb == "extend":
            said["lease_ms"] = self.random.choice((0, 40))
        asked = Asked(message=str(held.message), token=fingerprint(held.token), **said)
        self.ask(verb, SETTLING[verb](held.message, held.token, **said), asked)

    def remove(self) -> None:
        chosen = self.random.random()
        message = self.random.choice(self.held).message if self.held else 1
        if chosen < 0.4:
            self.ask("delete", commands.Delete(message), Asked(message=str(message)))
        elif chosen < 0.8:
            self.ask("requeue", commands.Requeue(message), Asked(message=str(message)))
        else:
            self.ask("purge", commands.Purge(Scope.LIVE), Asked(scope="live"))

    def ask(self, verb: str, command: commands.Command, asked: Asked) -> list[Delivery] | None:
        """Put a command to the queue, unless it is lost on the way, and write down what its client sees."""
        arrives, answered = self.random.random() >= self.lost / 2, self.random.random() >= self.lost / 2
        reply = self.queue.reply(command) if arrives else None
        now = 2 * len(self.operations)
        seen = {"outcome": Outcome.UNKNOWN}
        if arrives and answered:
            refused = isinstance(reply, CallerError)
            seen = {"outcome": Outcome.REFUSED, "code": reply.code} if refused else self.told(reply)
        self.operations.append(Operation("client", verb, QUEUE, now, asked, now + 1, **seen))
        return reply if isinstance(reply, list) and arrives and answered else None

    def told(self, reply) -> dict:
        """What an answer tells, with the server's stamp."""
        match reply:
            case Accepted(message, duplicate):
                told = [Told(str(message), sequence=message, duplicate=duplicate)]
            case Settled(message, "leased", until):
                told = [Told(str(message), lease_expires_at=until)]
            case Settled(message, _, until):
                told = [Told(str(message), until=until)]
            case [*deliveries]:
                told = [told_of(one) for one in deliveries]
            case _:
                told = []
        return {"outcome": Outcome.OK, "at": self.queue.clock.now, "told": tuple(told)}

    def final(self) -> Final:
        """The queue as its own verbs and its journal show it."""
        while self.queue.ask(commands.Wake()).count:
            pass
        left: dict[str, tuple[str, ...]] = {"ready": (), "delayed": (), "leased": (), "failed": ()}
        for scope in Scope:
            for seen in self.queue.ask(commands.Browse(scope, limit=commands.MAX_BROWSE)):
                left[seen.state] += (str(seen.message.sequence),)
        counts = self.queue.ask(commands.Count())
        words = (*left, "moving", "enqueued", "completed", "expired", "deleted", "purged", "moved")
        rows = at_once(self.queue.backend.journal(0, 1 << 30))
        journal = tuple(Appended(row.epoch, row.events[0].sequence, row.events[-1].sequence) for row in rows)
        last = QueueFinal(
            settings=self.settings,
            left=left,
            stats={word: getattr(counts, word) for word in words},
            journal=journal,
        )
        return Final({QUEUE: last}, self.queue.clock.now)


def told_of(delivery: Delivery) -> Told:
    """A delivery as a history keeps it."""
    options = delivery.options
    return Told(
        str(delivery.message),
        sequence=delivery.message,
        token=fingerprint(delivery.token),
        receives=delivery.receives,
        attempts=delivery.attempts,
        lease_expires_at=delivery.lease_expires_at,
        payload=fingerprint(delivery.payload),
        group=options.group,
        priority=options.priority,
        dedup_key=options.dedup_key,
        enqueued_at=delivery.enqueued_at,
    )
