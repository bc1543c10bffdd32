"""Hand-made histories: one sentence of a test per operation, in the order they are told.

Unless a test says otherwise an operation is answered ok before the next one is asked, `at` is the server's
stamp, leases last 30, and receives, attempts, sequences and tokens are what a right queue would give.
"""

from collections import Counter
from dataclasses import replace

from hq.domain.settings import Settings
from tests.checkers.final import Final, QueueFinal
from tests.checkers.history import Asked, Operation, Outcome, Told, history_of
from tests.checkers.invariants import check_all

QUEUE = "work"
LEASE_MS = 30


class Story:
    """A history in the making, of one queue."""

    def __init__(self) -> None:
        self.operations: list[Operation] = []
        self._sequence = 0
        self._receives: Counter[str] = Counter()
        self._attempts: Counter[str] = Counter()
        self._born: dict[str, Told] = {}

    def enqueue(self, id_, at=None, *, duplicate=False, outcome=Outcome.OK, **asked):
        """A message whose payload is its id, or says otherwise."""
        asked = Asked(payload=asked.pop("payload", id_), **asked)
        kept = {name: getattr(asked, name) for name in ("payload", "group", "priority", "dedup_key")}
        if not duplicate:
            self._sequence += 1
            self._born[id_] = Told(
                id_, sequence=self._sequence, concurrency_key=asked.concurrency_key, enqueued_at=at, **kept
            )
        told = Told(id_, duplicate=True) if duplicate else self._born[id_]
        return self._add("enqueue", at, asked, (told,), outcome)

    def receive(self, *ids, at=None, lease_ms=LEASE_MS, outcome=Outcome.OK, limit=None, **told):
        """One receive that got these; keywords change what it told of them."""
        found = []
        for id_ in ids:
            self._receives[id_] += 1
            self._attempts[id_] += 1
            number = self._receives[id_]
            delivery = replace(
                self._born.get(id_) or Told(id_, payload=id_),
                token=f"{id_}#{number}",
                receives=number,
                attempts=self._attempts[id_],
                lease_expires_at=None if at is None else at + lease_ms,
            )
            found.append(replace(delivery, **told))
        asked = Asked(limit=limit or max(len(ids), 1), lease_ms=lease_ms)
        return self._add("receive", at, asked, tuple(found), outcome)

    def settle(self, verb, id_, at=None, *, token=None, outcome=Outcome.OK, **asked):
        """Complete, fail, retry or release with the latest token, or the one of this receive."""
        asked = Asked(message=id_, token=f"{id_}#{token or self._receives[id_]}", **asked)
        if verb == "release" and outcome is Outcome.OK:
            self._attempts[id_] -= 1
        until = at + asked.delay_ms if at is not None and asked.delay_ms is not None else None
        return self._add(verb, at, asked, (Told(id_, until=until),), outcome)

    def extend(self, id_, at=None, *, lease_ms=LEASE_MS, token=None, outcome=Outcome.OK):
        """Extend with the latest token, or the one of this receive."""
        asked = Asked(message=id_, token=f"{id_}#{token or self._receives[id_]}", lease_ms=lease_ms)
        end = None if at is None else at + lease_ms
        return self._add("extend", at, asked, (Told(id_, lease_expires_at=end),), outcome)

    def ask(self, verb, at=None, *, outcome=Outcome.OK, **asked):
        """Anything else: delete, requeue, purge, set_schedule."""
        if verb == "requeue":
            self._attempts[asked["message"]] = 0
        return self._add(verb, at, Asked(**asked), (), outcome)

    def at_once(self, count):
        """Make the last operations overlap: all are invoked before any of them is answered."""
        first, last = self.operations[-count].invoked_at, self.operations[-1].returned_at
        for index in range(-count, 0):
            self.operations[index] = replace(self.operations[index], invoked_at=first, returned_at=last)

    def violations(self, *, at=None, settings=None, **last):
        """The invariants that are broken, by name, when the queue is found like this at the end."""
        queue = QueueFinal(settings=settings or Settings(), **last)
        return [one.invariant for one in check_all(history_of(self.operations), Final({QUEUE: queue}, at))]

    def _add(self, verb, at, asked, told, outcome):
        now = 2 * len(self.operations)
        happened = outcome is Outcome.OK
        self.operations.append(
            Operation(
                client=f"client {len(self.operations) + 1}",
                verb=verb,
                queue=QUEUE,
                invoked_at=now,
                asked=asked,
                returned_at=now + 1,
                outcome=outcome,
                at=at if happened else None,
                told=told if happened else (),
            )
        )
        return self
