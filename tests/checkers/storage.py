"""Memory, disk and journal: I-15, I-16."""

from itertools import pairwise

from tests.checkers.final import Final, Violation
from tests.checkers.history import History


def memory_equals_disk(_: History, final: Final) -> list[Violation]:
    """I-15: a queue's state is the same wherever it is read from."""
    return [
        Violation("I-15", queue, None, f"{one} differs from {other}")
        for queue, last in final.queues.items()
        for one, other in pairwise(last.dumps)
        if last.dumps[one] != last.dumps[other]
    ]


def one_writer_at_a_time(_: History, final: Final) -> list[Violation]:
    """I-16: a journal's sequences follow each other, and no epoch is followed by an older one."""
    violations = []
    for queue, last in final.queues.items():
        for before, row in pairwise(last.journal):
            if row.first != before.last + 1:
                text = f"sequence {row.first} follows {before.last}"
                violations.append(Violation("I-16", queue, None, text))
            if row.epoch < before.epoch:
                text = f"epoch {row.epoch} wrote sequence {row.first} after epoch {before.epoch}"
                violations.append(Violation("I-16", queue, None, text))
        violations += [
            Violation("I-16", queue, None, f"a row from {row.first} to {row.last}")
            for row in last.journal
            if row.last < row.first
        ]
    return violations
