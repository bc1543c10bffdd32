"""Messages of a scope in order of their sequence: stored rows, with what memory knows better laid over."""

from __future__ import annotations

from heapq import nsmallest

from hq.domain.lookups import END, SequencePage
from hq.domain.messages import FAILED, LEASED, WAITING, Message
from hq.domain.signals import Lacking
from hq.domain.state import QueueState
from hq.domain.tasks import Scope

STATES = {Scope.LIVE: (WAITING, LEASED), Scope.FAILED: (FAILED,)}


def listed(state: QueueState, scope: Scope, after: int, limit: int, now: int) -> list[Message]:
    """The first messages of a scope after a sequence, without those time has taken."""
    found: list[Message] = []
    reached = after
    while len(found) < limit and reached < state.sequence:
        rows, upto = _rows(state, scope, reached, limit)
        here = {
            message.sequence: message
            for message in (*rows, *state.messages.values())
            if reached < message.sequence <= upto
            and message.state in STATES[scope]
            and not message.is_over(now)
        }
        found += [here[sequence] for sequence in nsmallest(limit - len(found), here)]
        reached = upto
    return found


def _rows(state: QueueState, scope: Scope, after: int, limit: int) -> tuple[list[Message], int]:
    """Stored rows memory does not know better, and the sequence up to which they are all there are."""
    if not state.has_rows:
        return [], state.sequence
    page = SequencePage(scope, after, limit)
    found = state.pages.get(page)
    if found is None:
        raise Lacking(page)
    upto = state.sequence if found.rest == END else found.rest[1] - 1
    return [row for row in found.rows if not state.outranks(row)], upto
