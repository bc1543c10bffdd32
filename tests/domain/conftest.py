"""A queue to ask, in five modes that must answer alike.

`plain` has everything in memory. `stored` writes a checkpoint and forgets it before every question, with a
head of two, so that nearly everything is fetched. `sparse` writes one before every third question only, so
that memory outranks old rows. `crashing` is `stored` that dies and loads again. `torn` dies after the first
chunk of a checkpoint, so that rows are newer than the mark and the journal is replayed.
"""

from itertools import count

import pytest

from hq.domain.commands import Claim, Count, Enqueue, Get, Receive
from hq.domain.messages import Options
from hq.domain.settings import Settings
from hq.errors import CallerError
from hq.testing import MemoryQueue


class Queue(MemoryQueue):
    """A queue with the verbs the tests say most often; its invariants are checked after each question."""

    def reply(self, command):
        if not isinstance(command, Claim):
            self.prepare()
        reply = super().reply(command)
        self.state.check()
        return reply

    def prepare(self):
        """What the mode does to memory before each question: here nothing."""

    def enqueue(self, payload=b"", **options):
        """The new message's number."""
        return self.ask(Enqueue(payload, Options(**options))).message

    def receive(self, limit=100, **options):
        """The deliveries of one receive."""
        return self.ask(Receive(limit, **options))

    def take(self, **options):
        """The one delivery that is next."""
        [delivery] = self.receive(1, **options)
        return delivery

    def received(self, limit=100):
        """The payloads of one receive, as one text."""
        return b"".join(delivery.payload for delivery in self.receive(limit)).decode()

    def get(self, message):
        """The message as it is."""
        return self.ask(Get(message)).message

    def state_of(self, message):
        """Its state in a word; the code of the refusal if there is no such message."""
        return self.refusal(Get(message)) or self.ask(Get(message)).state

    def stats(self):
        """The counts that are not zero."""
        counts = self.ask(Count())
        names = ("ready", "delayed", "leased", "failed", "moving", "enqueued", "completed", "expired")
        names += ("deleted", "purged", "moved")
        return {name: getattr(counts, name) for name in names if getattr(counts, name)}

    def refusal(self, command):
        """The code a command is refused with, None if it is not."""
        reply = self.reply(command)
        return reply.code if isinstance(reply, CallerError) else None


class StoredQueue(Queue):
    """Remembers nothing that is written down, and writes everything down."""

    def prepare(self):
        self.checkpoint()
        self.shed()


class SparseQueue(Queue):
    """Forgets what is written down, and writes down only now and then."""

    def __init__(self, *settings, **options):
        self.questions = count()
        super().__init__(*settings, **options)

    def prepare(self):
        if next(self.questions) % 3 == 1:
            self.checkpoint()
        self.shed()


class CrashingQueue(Queue):
    """Dies and loads again before every question."""

    def prepare(self):
        self.checkpoint()
        self.crash()


class TornQueue(Queue):
    """Dies in the middle of every checkpoint."""

    def prepare(self):
        self.checkpoint_step()
        self.checkpoint_step()
        self.crash()


class SlowQueue(Queue):
    """Always has a chunk that is cut and not written."""

    def prepare(self):
        self.checkpoint_step(2)
        if self._cut is None:
            self.checkpoint_step(2)
        self.shed()


MODES = {
    "plain": Queue,
    "stored": StoredQueue,
    "sparse": SparseQueue,
    "crashing": CrashingQueue,
    "torn": TornQueue,
    "slow": SlowQueue,
}


@pytest.fixture(params=MODES)
def new_queue(request):
    """Build a queue of these settings; every one of a test is in the same mode."""
    head = {} if request.param == "plain" else {"head": 2}

    def build(*, clock=None, chance=None, backend=None, **settings):
        queue = MODES[request.param]
        return queue(Settings(**settings), clock=clock, chance=chance, backend=backend, **head)

    return build
