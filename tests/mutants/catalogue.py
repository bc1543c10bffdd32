"""The seeded bugs: in which file which text becomes which, and what that breaks."""

from __future__ import annotations

from typing import NamedTuple


class Mutant(NamedTuple):
    """One bug."""

    breaks: str
    file: str
    text: str
    becomes: str


MUTANTS = [
    Mutant(
        "a release does not give the attempt back",
        "verbs/settle.py",
        "message.sequence, message.attempts - 1)",
        "message.sequence, message.attempts)",
    ),
    Mutant(
        "a token is not checked",
        "verbs/settle.py",
        "message.token_hash is None or not is_token(token, message.token_hash)",
        "message.token_hash is None",
    ),
    Mutant(
        "retry, release and extend work after the lease ended",
        "verbs/settle.py",
        "    if message.state is WAITING:\n        raise LeaseExpired\n",
        "",
    ),
    Mutant(
        "a fifo queue accepts an expired token",
        "verbs/settle.py",
        "if state.settings.groups is FIFO:",
        "if state.settings.groups is None:",
    ),
    Mutant(
        "a group is not blocked while its message is leased",
        "selection.py",
        "return gate.leased == 0 and",
        "return",
    ),
    Mutant(
        "a group is not blocked while its first message waits for a retry",
        "apply.py",
        "if message.options.concurrency_key is not None and message.place is not None:\n"
        "        message.place = event.available_at",
        "if message.place:\n        message.place = event.available_at",
    ),
    Mutant(
        "a paused group is handed out",
        "selection.py",
        " and lane.id.name not in state.paused_groups",
        "",
    ),
    Mutant(
        "an expired message is served",
        "messages.py",
        "return ends_at is not None and ends_at <= now",
        "return ends_at is not None and ends_at < now",
    ),
    Mutant(
        "a dedup key is forgotten at completion, before its window ends",
        "apply.py",
        "if message.dedup_until > at:",
        "if message.dedup_until > at and message.state is not State.COMPLETED:",
    ),
    Mutant(
        "a duplicate is refused by a full queue",
        "verbs/enqueue.py",
        "    if options.dedup_key is not None:\n        entry",
        "    if options.dedup_key is not None and state.counters.live() != settings.capacity:\n        entry",
    ),
    Mutant(
        "capacity counts what is waiting only",
        "counters.py",
        "return self.waiting + self.leased\n",
        "return self.waiting\n",
    ),
    Mutant(
        "a message gets one attempt too many",
        "selection.py",
        "return limit is not None and message.attempts >= limit",
        "return limit is not None and message.attempts > limit",
    ),
    Mutant(
        "messages without a priority come before those with a negative one",
        "messages.py",
        "NO_PRIORITY = -(1 << 15) - 1",
        "NO_PRIORITY = 0",
    ),
    Mutant(
        "what is not in memory is overlooked while there is something in memory",
        "selection.py",
        "if not heap or heap[0] >= shelf.rest:",
        "if not heap:",
    ),
    Mutant(
        "a concurrency key lets one too many out in one receive",
        "selection.py",
        "return limit is None or gate.leased + taken < limit",
        "return limit is None or gate.leased < limit",
    ),
    Mutant(
        "a requeued message keeps the attempts of its last round",
        "apply.py",
        "    message.attempts = 0\n",
        "",
    ),
    Mutant(
        "a move that comes twice is taken twice",
        "verbs/move.py",
        "if command.number <= state.taken.get(command.source, 0):",
        "if command.number < state.taken.get(command.source, 0):",
    ),
    Mutant(
        "a tick that was dealt with yields a message again",
        "verbs/schedule.py",
        "if planned.next_at <= instant)",
        "if planned.next_at <= instant or instant)",
    ),
    Mutant(
        "a dedup key is not written with the message that held it",
        "checkpoint.py",
        "            if key in state.delta_keys or key in state.cutting_keys:\n"
        "                self._cut_key(key, chunk)\n",
        "            del key\n",
    ),
    Mutant(
        "an event a row already knows is applied again when loading",
        "loading.py",
        "message.as_of < event.sequence",
        "message.as_of <= event.sequence",
    ),
    Mutant(
        "a purge leaves the row of a message that changed since",
        "apply.py",
        "if sequence in state.delta or sequence in state.cutting:",
        "if sequence in state.cutting:",
    ),
    Mutant(
        "a queue's time goes back with the clock",
        "decide.py",
        "        now = state.time\n",
        "        pass\n",
    ),
    Mutant(
        "a rate's bucket never runs dry",
        "rates.py",
        "return max(mark, now * rate.limit) + count * rate.per_ms",
        "return max(mark, now * rate.limit)",
    ),
    Mutant(
        "a lane whose stored row changed is not asked for",
        "apply.py",
        "state.order.lane_of(message).eager = True",
        "state.order.lane_of(message)",
    ),
    Mutant(
        "a result is not written down",
        "checkpoint.py",
        "if message.state in _KEPT or message.is_result:",
        "if message.state in _KEPT:",
    ),
    Mutant(
        "a result is kept for ever",
        "messages.py",
        "return self.kept_until if self.is_result else None",
        "return None",
    ),
    Mutant(
        "a completed message is found while its result is kept",
        "state.py",
        "        if message.state is COMPLETED:\n            raise MessageNotFound\n",
        "",
    ),
    Mutant(
        "a message with a result keeps its dedup key",
        "apply.py",
        "    _drop_lease(state, message, event.was)\n"
        "    if message.holds_key:\n"
        "        message.holds_key = False\n"
        "        free_key(state, message, event.at)\n"
        "    state.push_end(message)\n"
        "\n"
        "\n"
        "def _progressed",
        "    _drop_lease(state, message, event.was)\n    state.push_end(message)\n\n\ndef _progressed",
    ),
    Mutant(
        "a result that replaces a stored payload is not written",
        "apply.py",
        "    message.payload = event.result\n    message.fresh = True\n",
        "    message.payload = event.result\n",
    ),
    Mutant(
        "a message that failed before leaves a result nobody asked for",
        "apply.py",
        "    message.kept_until = event.kept_until\n    if event.result is None:\n",
        "    message.kept_until = event.kept_until or message.kept_until\n    if event.result is None:\n",
    ),
    Mutant(
        "progress is told after the lease has ended",
        "verbs/outcome.py",
        "message = held(state, command, now)",
        "message = state.message(command.message, now)",
    ),
]
