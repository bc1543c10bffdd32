"""I-9, I-10, I-11, I-12: keys, delays, ends of life and ticks; each shown to hold and to break."""

import pytest

from hq.domain.settings import DedupScope, Settings
from tests.checkers.final import Tick
from tests.checkers.history import Outcome
from tests.checkers.story import Story

UNKNOWN = Outcome.UNKNOWN
WINDOW = Settings(dedup_ms=100)


# I-9


def test_every_caller_of_a_key_is_told_the_same_id():
    story = Story().enqueue("a", at=0, dedup_key="k").enqueue("a", at=5, dedup_key="k", duplicate=True)

    assert story.violations(settings=WINDOW) == []


def test_two_messages_of_a_key_within_its_window():
    story = Story().enqueue("a", at=0, dedup_key="k").enqueue("b", at=99, dedup_key="k")

    assert story.violations(settings=WINDOW) == ["I-9"]


def test_a_message_may_have_a_window_of_its_own():
    story = Story().enqueue("a", at=0, dedup_key="k", dedup_ms=50).enqueue("b", at=50, dedup_key="k")

    assert story.violations(settings=WINDOW) == []


def test_a_key_is_free_when_its_window_is_over_and_its_message_done():
    story = Story().enqueue("a", at=0, dedup_key="k").receive("a", at=1).settle("complete", "a", at=2)

    assert story.enqueue("b", at=100, dedup_key="k").violations(settings=WINDOW) == []


def test_a_key_is_held_while_its_message_lives():
    story = Story().enqueue("a", at=0, dedup_key="k").enqueue("b", at=500, dedup_key="k")

    assert story.receive("a", "b", at=501).violations() == ["I-9"]
    assert story.receive().violations(left={"leased": ("a", "b")}) == ["I-9"]


def test_a_message_that_is_left_holds_its_key_without_any_stamp():
    story = Story().enqueue("a", dedup_key="k").enqueue("b", dedup_key="k")

    assert story.violations(left={"ready": ("a", "b")}) == ["I-9"]


def test_an_unknown_enqueue_may_be_the_one_that_took_the_key():
    story = Story().enqueue("a", at=0, dedup_key="k", outcome=UNKNOWN)
    story.enqueue("a", at=5, dedup_key="k", duplicate=True)

    assert story.receive("a", at=6).violations(settings=WINDOW) == []


def test_an_unknown_enqueue_that_is_received_beside_another_of_its_key():
    story = Story().enqueue("a", at=0, dedup_key="k", outcome=UNKNOWN).enqueue("b", at=5, dedup_key="k")

    assert story.receive("a", "b", at=6).violations(settings=WINDOW) == ["I-9"]


def test_a_purge_frees_every_key():
    story = Story().enqueue("a", at=0, dedup_key="k").ask("purge", at=1).enqueue("b", at=2, dedup_key="k")

    assert story.violations(settings=WINDOW) == []


def test_keys_of_two_groups_are_two_keys_where_the_queue_says_so():
    story = Story().enqueue("a", at=0, dedup_key="k", group="g").enqueue("b", at=1, dedup_key="k", group="h")

    assert story.violations(settings=Settings(dedup_ms=100, dedup_scope=DedupScope.GROUP)) == []
    assert story.violations(settings=WINDOW) == ["I-9"]


def test_a_duplicate_of_a_key_that_nobody_used():
    assert Story().enqueue("a", at=5, dedup_key="k", duplicate=True).violations() == ["I-9"]


def test_a_duplicate_that_names_a_message_of_another_key():
    story = Story().enqueue("a", at=0, dedup_key="k").enqueue("b", at=0, dedup_key="other")

    assert story.enqueue("b", at=5, dedup_key="k", duplicate=True).violations() == ["I-9"]


# I-10


def test_a_delayed_message_in_its_time():
    assert Story().enqueue("a", at=0, delay_ms=50).receive("a", at=50).violations() == []


def test_a_delayed_message_before_its_time():
    assert Story().enqueue("a", at=0, delay_ms=50).receive("a", at=49).violations() == ["I-10"]


def test_the_queues_own_delay_counts_too():
    assert Story().enqueue("a", at=0).receive("a", at=49).violations(settings=Settings(delay_ms=50)) == [
        "I-10"
    ]


def test_an_unknown_enqueue_has_its_delay_all_the_same():
    story = Story().enqueue("a", at=0, delay_ms=50, outcome=UNKNOWN)

    assert story.receive("a", at=49).violations() == ["I-10"]


@pytest.mark.parametrize(("at", "expected"), [(15, []), (14, ["I-10"])])
def test_a_retried_message_comes_again_in_its_time(at, expected):
    story = Story().enqueue("a", at=0).receive("a", at=0).settle("retry", "a", at=5, delay_ms=10)

    assert story.receive("a", at=at).violations() == expected


def test_an_unknown_retry_may_not_have_delayed_it():
    story = Story().enqueue("a", at=0).receive("a", at=0).settle("retry", "a", delay_ms=99, outcome=UNKNOWN)

    assert story.receive("a", at=30).violations() == []


# I-11


def test_a_message_before_its_end():
    assert Story().enqueue("a", at=0, ttl_ms=50).receive("a", at=49).violations() == []


def test_a_message_at_its_end():
    assert Story().enqueue("a", at=0, ttl_ms=50).receive("a", at=50).violations() == ["I-11"]


def test_an_end_that_only_the_delivery_told():
    assert Story().enqueue("a", outcome=UNKNOWN).receive("a", at=50, expires_at=50).violations() == ["I-11"]


def test_a_requeued_message_has_a_new_end():
    story = Story().enqueue("a", at=0, ttl_ms=50).receive("a", at=1).settle("fail", "a", at=2)

    assert story.ask("requeue", at=90, message="a").receive("a", at=91).violations() == []


# I-12


def schedule():
    return Story().ask("set_schedule", schedule="nightly", payload="report")


def tick(story, id_, tick_at):
    return story.receive(id_, at=tick_at, schedule="nightly", tick_at=tick_at, payload="report")


def test_each_tick_yields_one_message():
    story = tick(tick(schedule(), "a", 100), "b", 200)

    assert story.violations(expected_ticks={"nightly": (100, 200)}) == []


def test_a_tick_that_is_still_in_the_queue_is_known_from_the_journal():
    story = tick(schedule(), "a", 100)
    ticks = (Tick("nightly", 100, "a"), Tick("nightly", 200, "b"))

    assert story.violations(ticks=ticks, expected_ticks={"nightly": (100, 200)}) == []


def test_a_message_of_a_tick_that_is_received_again_is_the_same():
    story = tick(schedule(), "a", 100).settle("release", "a", at=101)
    story.receive("a", at=102, schedule="nightly", tick_at=100, payload="report")

    assert story.violations(expected_ticks={"nightly": (100,)}) == []


def test_a_tick_that_yields_two_messages():
    assert tick(tick(schedule(), "a", 100), "b", 100).violations() == ["I-12"]


def test_a_tick_that_yields_nothing():
    assert schedule().violations(expected_ticks={"nightly": (100,)}) == ["I-12"]


def test_a_tick_that_nobody_expects():
    assert tick(schedule(), "a", 150).violations(expected_ticks={"nightly": ()}) == ["I-12"]
