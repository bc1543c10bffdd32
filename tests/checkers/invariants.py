"""The promises of PROMISES.md, one function each, over a history and the last look at the queues.

Every function is pure and speaks only of what is certain: an operation of unknown outcome is given both
branches. Where a stamp is missing it is silent rather than wrong.
"""

from collections.abc import Callable

from tests.checkers.final import Final, Violation
from tests.checkers.history import History
from tests.checkers.leasing import (
    a_stale_token_never_succeeds,
    limits_are_kept,
    no_two_leases_at_once,
    receives_count_up,
)
from tests.checkers.order import a_plain_queue_keeps_its_order, groups_keep_their_order
from tests.checkers.presence import (
    completed_stays_completed,
    nothing_acknowledged_is_lost,
    nothing_appears_from_nowhere,
    nothing_is_gained_or_lost_in_the_counts,
)
from tests.checkers.storage import memory_equals_disk, one_writer_at_a_time
from tests.checkers.timing import (
    each_tick_yields_one_message,
    nothing_comes_after_its_end,
    nothing_comes_before_its_time,
    one_message_per_key,
)

Check = Callable[[History, Final], list[Violation]]

INVARIANTS: dict[str, Check] = {
    "I-1": nothing_acknowledged_is_lost,
    "I-2": nothing_appears_from_nowhere,
    "I-3": no_two_leases_at_once,
    "I-4": a_stale_token_never_succeeds,
    "I-5": completed_stays_completed,
    "I-6": receives_count_up,
    "I-7": groups_keep_their_order,
    "I-8": a_plain_queue_keeps_its_order,
    "I-9": one_message_per_key,
    "I-10": nothing_comes_before_its_time,
    "I-11": nothing_comes_after_its_end,
    "I-12": each_tick_yields_one_message,
    "I-13": limits_are_kept,
    "I-14": nothing_is_gained_or_lost_in_the_counts,
    "I-15": memory_equals_disk,
    "I-16": one_writer_at_a_time,
}


def check_all(history: History, final: Final) -> list[Violation]:
    """Every broken promise there is in this history."""
    return [violation for check in INVARIANTS.values() for violation in check(history, final)]
