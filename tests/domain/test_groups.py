"""Groups: an order within each, and nothing between them; or a mere label; or strict first in, first out."""

import pytest

from hq.domain.commands import (
    Complete,
    Configure,
    Delete,
    Fail,
    PauseGroup,
    Release,
    Requeue,
    Resume,
    ResumeGroup,
    Retry,
)
from hq.domain.settings import Groups, Settings

ORDERED_KINDS = [Groups.ORDERED, Groups.FIFO]


def enqueue_each(queue, names, **options):
    """One message per letter: an upper case letter is the group, the lower case one that follows its name."""
    for group, name in zip(names[::2], names[1::2], strict=True):
        queue.enqueue(name.encode(), group=group, **options)


def complete(queue, delivery):
    queue.ask(Complete(delivery.message, delivery.token))


@pytest.mark.parametrize("groups", ORDERED_KINDS)
def test_a_leased_message_blocks_its_group_and_no_other(new_queue, groups):
    queue = new_queue(groups=groups)
    enqueue_each(queue, "AaAbBc")

    assert queue.received(1) == "a"
    assert queue.received() == "c"


@pytest.mark.parametrize("groups", ORDERED_KINDS)
def test_a_group_goes_on_when_its_lease_is_settled(new_queue, groups):
    queue = new_queue(groups=groups)
    enqueue_each(queue, "AaAbAc")
    complete(queue, queue.take())

    assert queue.received(1) == "b"


@pytest.mark.parametrize("groups", ORDERED_KINDS)
def test_one_receive_may_take_several_of_a_group_in_order(new_queue, groups):
    queue = new_queue(groups=groups)
    enqueue_each(queue, "AaBbAcAdBe")

    assert queue.received(4) == "abcd"
    assert queue.received() == ""


@pytest.mark.parametrize("groups", ORDERED_KINDS)
def test_a_group_of_which_several_are_leased_waits_for_all_of_them(new_queue, groups):
    queue = new_queue(groups=groups)
    enqueue_each(queue, "AaAbAc")
    first, second = queue.receive(2)
    complete(queue, first)
    assert queue.received() == ""

    complete(queue, second)

    assert queue.received() == "c"


@pytest.mark.parametrize("groups", ORDERED_KINDS)
def test_a_released_message_comes_again_before_those_behind_it(new_queue, groups):
    queue = new_queue(groups=groups)
    enqueue_each(queue, "AaAb")
    delivery = queue.take()
    queue.ask(Release(delivery.message, delivery.token))

    assert queue.received() == "ab"


@pytest.mark.parametrize("groups", ORDERED_KINDS)
def test_a_message_whose_lease_ended_comes_again_before_those_behind_it(new_queue, groups):
    queue = new_queue(groups=groups, lease_ms=100)
    enqueue_each(queue, "AaAb")
    queue.take()
    queue.clock.advance(100)

    assert queue.received() == "ab"


@pytest.mark.parametrize("groups", ORDERED_KINDS)
def test_a_message_that_waits_for_a_retry_keeps_its_place_and_blocks_those_behind_it(new_queue, groups):
    queue = new_queue(groups=groups)
    enqueue_each(queue, "AaAbBc")
    delivery = queue.take()
    queue.ask(Retry(delivery.message, delivery.token, delay_ms=10))

    assert queue.received() == "c"
    queue.clock.advance(9)
    assert queue.received() == ""
    queue.clock.advance(1)
    assert queue.received() == "ab"


def test_a_retried_message_in_the_middle_blocks_only_those_behind_it(new_queue):
    queue = new_queue()
    enqueue_each(queue, "AaAbAc")
    first, second = queue.receive(2)
    queue.ask(Retry(second.message, second.token, delay_ms=10))
    queue.ask(Release(first.message, first.token))

    assert queue.received() == "a"


def test_a_new_delayed_message_blocks_only_itself(new_queue):
    queue = new_queue()
    enqueue_each(queue, "Aa", delay_ms=10)
    enqueue_each(queue, "AbAc")

    assert queue.received() == "bc"


def test_a_delayed_message_takes_its_place_by_when_it_is_first_available(new_queue):
    queue = new_queue()
    enqueue_each(queue, "Aa", delay_ms=10)
    enqueue_each(queue, "Ab")
    queue.clock.advance(11)
    enqueue_each(queue, "Ac")

    assert queue.received() == "bac"


def test_in_a_fifo_queue_nothing_overtakes_not_even_a_delayed_message(new_queue):
    queue = new_queue(groups=Groups.FIFO)
    enqueue_each(queue, "Aa", delay_ms=10)
    enqueue_each(queue, "AbBc")

    assert queue.received() == "c"
    queue.clock.advance(10)
    assert queue.received() == "ab"


def test_in_a_fifo_queue_a_message_without_a_group_is_in_the_empty_one(new_queue):
    queue = new_queue(groups=Groups.FIFO)
    queue.enqueue(b"a")
    queue.enqueue(b"b", group="")

    assert queue.received(1) == "a"
    assert queue.received() == ""


@pytest.mark.parametrize("groups", ORDERED_KINDS)
def test_within_a_group_priority_does_not_overtake(new_queue, groups):
    queue = new_queue(groups=groups)
    enqueue_each(queue, "Aa")
    enqueue_each(queue, "Ab", priority=9)

    assert queue.received() == "ab"


@pytest.mark.parametrize("groups", ORDERED_KINDS)
def test_priority_ranks_groups_by_their_first_message(new_queue, groups):
    queue = new_queue(groups=groups)
    enqueue_each(queue, "Aa", priority=1)
    enqueue_each(queue, "Ab", priority=9)
    enqueue_each(queue, "Bc", priority=5)
    enqueue_each(queue, "Cd", priority=3)

    assert queue.received() == "cdab"


def test_a_message_without_a_group_is_ordered_with_none(new_queue):
    queue = new_queue()
    queue.enqueue(b"a")
    queue.enqueue(b"b")

    assert queue.received(1) == "a"
    assert queue.received() == "b"


@pytest.mark.parametrize("groups", ORDERED_KINDS)
def test_a_failed_message_leaves_its_group(new_queue, groups):
    queue = new_queue(groups=groups)
    enqueue_each(queue, "AaAb")
    delivery = queue.take()
    queue.ask(Fail(delivery.message, delivery.token))

    assert queue.received() == "b"


@pytest.mark.parametrize("groups", ORDERED_KINDS)
def test_a_group_goes_on_when_its_last_attempt_is_over(new_queue, groups):
    queue = new_queue(groups=groups, max_attempts=1, lease_ms=100)
    enqueue_each(queue, "AaAb")
    queue.take()
    queue.clock.advance(100)

    assert queue.received() == "b"


@pytest.mark.parametrize("groups", ORDERED_KINDS)
@pytest.mark.parametrize("received_first", [True, False])
def test_a_deleted_message_no_longer_blocks_its_group(new_queue, groups, received_first):
    queue = new_queue(groups=groups)
    first = queue.enqueue(b"a", group="A", delay_ms=0 if received_first else 10)
    enqueue_each(queue, "Ab")
    if received_first:
        queue.take()

    queue.ask(Delete(first))

    assert queue.received() == "b"


def test_an_expired_message_no_longer_blocks_its_fifo_group(new_queue):
    queue = new_queue(groups=Groups.FIFO)
    enqueue_each(queue, "Aa", delay_ms=1_000, ttl_ms=10)
    enqueue_each(queue, "Ab")
    assert queue.received() == ""

    queue.clock.advance(10)

    assert queue.received() == "b"


def test_a_requeued_message_goes_behind_those_of_its_group_that_were_available_before(new_queue):
    queue = new_queue()
    enqueue_each(queue, "AaAb")
    delivery = queue.take()
    queue.ask(Fail(delivery.message, delivery.token))
    queue.clock.advance(1)
    queue.ask(Requeue(delivery.message))

    assert queue.received() == "ba"


def test_in_a_fifo_queue_a_requeued_message_comes_by_its_sequence(new_queue):
    queue = new_queue(groups=Groups.FIFO)
    enqueue_each(queue, "AaAb")
    delivery = queue.take()
    queue.ask(Fail(delivery.message, delivery.token))
    queue.clock.advance(1)
    queue.ask(Requeue(delivery.message))

    assert queue.received() == "ab"


def test_a_label_orders_nothing(new_queue):
    queue = new_queue(groups=Groups.LABEL)
    enqueue_each(queue, "AaAb")
    queue.enqueue(b"c", group="A", priority=1)

    assert [queue.received(1) for _ in range(3)] == ["c", "a", "b"]


def test_a_label_is_kept(new_queue):
    queue = new_queue(groups=Groups.LABEL)
    enqueue_each(queue, "Aa")

    assert queue.take().options.group == "A"


@pytest.mark.parametrize("groups", ORDERED_KINDS)
def test_a_paused_group_accepts_and_hands_nothing_out(new_queue, groups):
    queue = new_queue(groups=groups)
    enqueue_each(queue, "AaBb")
    queue.ask(PauseGroup("A", "why"))
    enqueue_each(queue, "Ac")

    assert queue.received() == "b"
    queue.ask(ResumeGroup("A"))
    assert queue.received() == "ac"


def test_a_paused_group_stays_paused_through_a_crash(new_queue):
    queue = new_queue()
    enqueue_each(queue, "Aa")
    queue.ask(PauseGroup("A"))

    queue.crash()

    assert queue.received() == ""


def test_a_lease_of_a_paused_group_can_be_settled(new_queue):
    queue = new_queue()
    enqueue_each(queue, "AaAb")
    delivery = queue.take()
    queue.ask(PauseGroup("A"))

    assert queue.ask(Complete(delivery.message, delivery.token)).state == "completed"
    assert queue.received() == ""


def test_resuming_the_queue_does_not_resume_its_groups(new_queue):
    queue = new_queue()
    enqueue_each(queue, "Aa")
    queue.ask(PauseGroup("A"))
    queue.ask(Resume())

    assert queue.received() == ""


def test_a_label_cannot_be_paused(new_queue):
    queue = new_queue(groups=Groups.LABEL)

    assert queue.refusal(PauseGroup("A")) == "invalid_input"


def test_resuming_what_is_not_paused_does_nothing(new_queue):
    queue = new_queue()

    assert queue.refusal(ResumeGroup("A")) is None


def test_messages_enqueued_before_groups_became_a_label_keep_their_order(new_queue):
    queue = new_queue()
    enqueue_each(queue, "AaAb")
    queue.ask(Configure(Settings(groups=Groups.LABEL)))
    enqueue_each(queue, "Ac")

    assert [queue.received(1) for _ in range(3)] == ["a", "c", ""]


@pytest.mark.parametrize("groups", ORDERED_KINDS)
def test_a_long_backlog_of_many_groups_is_received_in_each_groups_order(new_queue, groups):
    queue = new_queue(groups=groups)
    expected = {group: [] for group in "ABCD"}
    for number in range(32):
        group = "ABCD"[number * 7 % 4]
        expected[group].append(queue.enqueue(group=group))

    came = {group: [] for group in "ABCD"}
    while deliveries := queue.receive(3):
        for delivery in deliveries:
            came[delivery.options.group].append(delivery.message)
            complete(queue, delivery)

    assert came == expected


def test_a_group_is_ranked_by_its_new_head_when_a_stored_message_in_the_way_is_deleted(new_queue):
    queue = new_queue()
    queue.enqueue(b"a", group="A")
    second = queue.enqueue(b"b", group="A")
    queue.enqueue(b"c", group="A", priority=7)
    queue.checkpoint()
    queue.shed()
    complete(queue, queue.take())
    queue.ask(Delete(second))
    queue.enqueue(b"d", priority=3)

    assert queue.received(1) == "c"
