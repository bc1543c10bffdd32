"""I-7, I-8: order in groups and in a plain queue; each shown to hold and to break."""

import pytest

from hq.domain.settings import Groups, Settings
from tests.checkers.history import Outcome
from tests.checkers.story import Story

UNKNOWN = Outcome.UNKNOWN
FIFO = Settings(groups=Groups.FIFO)


def group_of_two(**options):
    return Story().enqueue("a", at=0, group="g", **options).enqueue("b", at=1, group="g")


# I-7


def test_a_group_in_its_order():
    story = group_of_two().receive("a", at=2).settle("complete", "a", at=3).receive("b", at=3)

    assert story.violations() == []


def test_a_group_out_of_its_order():
    story = group_of_two().receive("b", at=2).settle("complete", "b", at=3).receive("a", at=3)

    assert story.violations() == ["I-7"]


def test_groups_that_are_labels_have_no_order():
    story = group_of_two().receive("b", at=2).receive("a", at=3)

    assert story.violations(settings=Settings(groups=Groups.LABEL)) == []


def test_two_groups_do_not_wait_for_each_other():
    story = Story().enqueue("a", at=0, group="g").enqueue("b", at=1, group="h")

    assert story.receive("b", at=2).receive("a", at=3).violations() == []


def test_one_receive_may_take_several_of_a_group():
    assert group_of_two().receive("a", "b", at=2).violations() == []


def test_two_receives_may_not_hold_a_group_at_one_time():
    assert group_of_two().receive("a", at=2).receive("b", at=31).violations() == ["I-7"]


def test_a_lease_of_no_length_may_have_been_over_before_the_next_of_its_millisecond():
    story = group_of_two().receive("a", "b", at=2, lease_ms=0)

    assert story.receive("a", at=2).violations() == []


@pytest.mark.parametrize("verb", ["complete", "fail"])
def test_an_unknown_settlement_may_have_opened_the_group(verb):
    story = group_of_two().receive("a", at=2).settle(verb, "a", outcome=UNKNOWN)

    assert story.receive("b", at=3).violations() == []


def test_a_retried_message_keeps_its_place_in_its_group():
    story = group_of_two().receive("a", at=2).settle("retry", "a", at=3, delay_ms=10)

    assert story.receive("b", at=5, lease_ms=1).receive("a", at=13).violations() == ["I-7"]


def test_a_message_retried_out_of_a_batch_was_not_overtaken_by_the_rest_of_it():
    story = group_of_two().receive("a", "b", at=2).settle("retry", "a", at=3, delay_ms=10)

    assert story.settle("complete", "b", at=4).receive("a", at=13).violations() == []


def test_a_delayed_message_blocks_only_itself():
    story = Story().enqueue("a", at=0, group="g", delay_ms=50).enqueue("b", at=1, group="g")
    story.receive("b", at=2).settle("complete", "b", at=3)

    assert story.receive("a", at=50).violations() == []


def test_in_a_fifo_queue_a_delayed_message_blocks_all_behind_it():
    story = Story().enqueue("a", at=0, delay_ms=50).enqueue("b", at=1)
    story.receive("b", at=2).settle("complete", "b", at=3)

    assert story.receive("a", at=50).violations(settings=FIFO) == ["I-7"]


def test_in_a_fifo_queue_messages_without_a_group_are_one():
    story = Story().enqueue("a", at=0, priority=1).enqueue("b", at=1, priority=9)
    story.receive("a", at=2).settle("complete", "a", at=3)

    assert story.receive("b", at=4).violations(settings=FIFO) == []


def test_a_requeued_message_has_lost_its_place():
    story = group_of_two().receive("a", at=2).settle("fail", "a", at=3)
    story.receive("b", at=4).settle("complete", "b", at=5)

    assert story.ask("requeue", at=6, message="a").receive("a", at=7).violations() == []


# I-8


def test_a_plain_queue_in_its_order():
    story = Story().enqueue("a", at=0, delay_ms=3).enqueue("b", at=1).enqueue("c", at=2, priority=1)

    assert story.receive("c", at=3).receive("b", at=3).receive("a", at=4).violations() == []


def test_a_later_message_may_not_come_first():
    story = Story().enqueue("a", at=0).enqueue("b", at=1)

    assert story.receive("b", at=2).receive("a", at=3).violations() == ["I-8"]


def test_of_two_in_one_millisecond_the_first_comes_first():
    story = Story().enqueue("a", at=0).enqueue("b", at=0)

    assert story.receive("b", at=2).receive("a", at=3).violations() == ["I-8"]


def test_a_higher_priority_comes_first():
    story = Story().enqueue("a", at=0).enqueue("b", at=1, priority=-5)

    assert story.receive("a", at=2).receive("b", at=3).violations() == ["I-8"]


def test_an_unknown_enqueue_that_is_received_has_its_place_too():
    story = Story().enqueue("a", at=0, outcome=UNKNOWN).enqueue("b", at=1)

    assert story.receive("b", at=2).receive("a", at=3).violations() == ["I-8"]


def test_what_is_left_at_the_end_was_passed_over():
    story = Story().enqueue("a", at=0).enqueue("b", at=1).receive("b", at=2)

    assert story.violations(left={"ready": ("a",), "leased": ("b",)}) == ["I-8"]


def test_what_is_left_may_have_been_leased_by_an_unknown_receive():
    story = Story().enqueue("a", at=0).enqueue("b", at=1).receive(outcome=UNKNOWN).receive("b", at=2)

    assert story.violations(left={"ready": ("a",), "leased": ("b",)}) == []


def test_what_came_in_the_millisecond_of_the_receive_may_have_come_after_it():
    story = Story().enqueue("a", at=0).enqueue("b", at=2, priority=1)

    assert story.receive("a", at=2).receive("b", at=3).violations() == []


def test_what_may_have_been_leased_by_an_unknown_receive_was_not_passed_over():
    story = Story().enqueue("a", at=0).enqueue("b", at=1).receive(outcome=UNKNOWN)
    story.receive("b", at=2)

    assert story.receive("a", at=32, receives=2, attempts=2).violations() == []


def test_one_receive_tells_its_messages_in_order():
    story = Story().enqueue("a", at=0).enqueue("b", at=1)

    assert story.receive("b", "a", at=2).violations() == ["I-8"]


def test_a_retried_message_stands_where_its_new_time_puts_it():
    story = Story().enqueue("a", at=0).receive("a", at=0).settle("retry", "a", at=1, delay_ms=9)
    story.enqueue("b", at=2)

    assert story.receive("b", at=10).receive("a", at=11).violations() == []


def test_a_released_message_with_a_lower_priority_waits_for_the_higher():
    story = Story().enqueue("a", at=0).receive("a", at=0).settle("release", "a", at=1)
    story.enqueue("b", at=2, priority=1)

    assert story.receive("a", at=3).receive("b", at=4).violations() == ["I-8"]
