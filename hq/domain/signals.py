"""How a rule says that it cannot answer yet. `decide` turns both into what its caller acts on."""

from __future__ import annotations

from hq.domain.lookups import Lookup
from hq.domain.messages import Message


class Lacking(Exception):
    """The rule needs more than memory has: fetch it and decide again."""

    def __init__(self, *lookups: Lookup) -> None:
        super().__init__(lookups)
        self.lookups = list(lookups)


class Overdue(Exception):
    """The rule met messages that time or their attempts have ended: end them and decide again."""

    def __init__(self, *messages: Message) -> None:
        super().__init__(messages)
        self.messages = messages
