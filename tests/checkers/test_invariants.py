"""I-15 and I-16, and that the sixteen promises are all there. The others are in the files beside this one."""

import pytest

from hq.domain.settings import Settings
from tests.checkers.final import Appended, Final, Violation
from tests.checkers.history import history_of
from tests.checkers.invariants import INVARIANTS, check_all
from tests.checkers.story import Story


def test_every_promise_of_the_table_is_checked_and_says_which_it_is():
    assert list(INVARIANTS) == [f"I-{number}" for number in range(1, 17)]
    assert [name for name, check in INVARIANTS.items() if not check.__doc__.startswith(f"{name}: ")] == []


def test_nothing_is_said_of_a_history_in_which_nothing_happened():
    assert check_all(history_of([]), Final()) == []


def test_a_violation_says_which_promise_where_and_what_was_seen():
    assert str(Violation("I-3", "work", "a", "leased twice")) == "I-3 work/a: leased twice"


def test_a_long_good_day_breaks_no_promise():
    story = Story()
    for number in range(30):
        story.enqueue(str(number), at=number, dedup_key=str(number), payload=f"payload {number}")
    for number in range(10):
        story.receive(str(number), at=100 + number).settle("complete", str(number), at=100 + number)
    for number in range(10, 20):
        story.receive(str(number), at=200).settle("release", str(number), at=200 + number)
    for number in range(10, 30):
        story.receive(str(number), at=300).extend(str(number), at=310).settle("fail", str(number), at=320)
    dead = tuple(str(number) for number in range(10, 30))

    assert (
        story.violations(
            settings=Settings(capacity=30, concurrency=20, dedup_ms=1_000),
            at=400,
            left={"ready": (), "leased": (), "failed": dead},
            stats={"enqueued": 30, "completed": 10, "failed": 20},
        )
        == []
    )


# I-15


def test_memory_that_equals_the_disk():
    assert Story().violations(dumps={"memory": "3 ready", "disk": "3 ready", "journal": "3 ready"}) == []


def test_memory_that_differs_from_the_disk():
    assert Story().violations(dumps={"memory": "3 ready", "disk": "2 ready", "journal": "2 ready"}) == [
        "I-15"
    ]


# I-16


def test_a_journal_that_one_writer_after_another_wrote():
    journal = (Appended(1, 1, 1), Appended(1, 2, 5), Appended(2, 6, 6), Appended(2, 7, 9))

    assert Story().violations(journal=journal) == []


def test_a_journal_whose_first_rows_were_pruned():
    assert Story().violations(journal=(Appended(3, 70, 80), Appended(3, 81, 81))) == []


@pytest.mark.parametrize(
    "journal",
    [
        pytest.param((Appended(1, 1, 2), Appended(1, 4, 5)), id="a sequence is missing"),
        pytest.param((Appended(1, 1, 2), Appended(1, 2, 3)), id="a sequence comes twice"),
        pytest.param((Appended(1, 1, 2), Appended(2, 3, 3), Appended(1, 4, 4)), id="an old epoch writes on"),
        pytest.param((Appended(1, 5, 3), Appended(1, 4, 4)), id="a row that ends before it begins"),
    ],
)
def test_a_journal_that_two_wrote(journal):
    assert Story().violations(journal=journal) == ["I-16"]
