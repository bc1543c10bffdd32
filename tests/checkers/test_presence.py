"""I-1, I-2, I-5, I-14: what is there, what is not, and the counts; each shown to hold and to break."""

import pytest

from tests.checkers.history import Outcome
from tests.checkers.story import Story

UNKNOWN, REFUSED = Outcome.UNKNOWN, Outcome.REFUSED


# I-1


@pytest.mark.parametrize("state", ["ready", "delayed", "leased", "failed", "moving"])
def test_an_acknowledged_message_that_is_left_is_not_lost(state):
    story = Story().enqueue("a", at=0)

    assert story.violations(left={state: ("a",)}) == []


def test_an_acknowledged_message_that_is_nowhere_is_lost():
    story = Story().enqueue("a", at=0).enqueue("b", at=0)

    assert story.violations(left={"ready": ("b",)}) == ["I-1"]


def test_a_message_that_was_received_and_never_settled_is_lost_if_it_is_not_left():
    story = Story().enqueue("a", at=0).receive("a", at=1)

    assert story.violations(left={}) == ["I-1"]


def test_a_refused_complete_does_not_excuse_a_lost_message():
    story = Story().enqueue("a", at=0).receive("a", at=1).settle("complete", "a", outcome=REFUSED)

    assert story.violations(left={}) == ["I-1"]


def test_an_unknown_complete_may_have_happened():
    story = Story().enqueue("a", at=0).receive("a", at=1).settle("complete", "a", outcome=UNKNOWN)

    assert story.violations(left={}) == []


def test_an_unknown_enqueue_may_be_nowhere():
    assert Story().enqueue("a", outcome=UNKNOWN).violations(left={}) == []


def test_a_dead_letter_must_be_among_the_dead_letters():
    story = Story().enqueue("a", at=0).receive("a", at=1).settle("fail", "a", at=2)

    assert story.violations(left={"failed": ("a",)}) == []
    assert story.violations(left={"failed": ()}) == ["I-1"]


def test_a_deleted_message_is_not_lost():
    assert Story().enqueue("a", at=0).ask("delete", message="a").violations(left={}) == []


def test_a_purge_explains_what_was_enqueued_before_its_answer_only():
    before = Story().enqueue("a", at=0).ask("purge", at=1)
    after = Story().ask("purge", at=1).enqueue("a", at=2)

    assert before.violations(left={}) == []
    assert after.violations(left={}) == ["I-1"]


def test_an_unknown_purge_may_happen_after_its_caller_gave_up():
    assert Story().ask("purge", outcome=UNKNOWN).enqueue("a", at=2).violations(left={}) == []


def test_a_message_may_be_gone_when_it_has_expired_and_not_sooner():
    story = Story().enqueue("a", at=0, ttl_ms=100)

    assert story.violations(left={}, at=100) == []
    assert story.violations(left={}, at=99) == ["I-1"]


def test_a_duplicate_answer_is_as_good_a_promise_as_the_first():
    story = Story().enqueue("a", at=0, dedup_key="k", outcome=UNKNOWN)
    story.enqueue("a", dedup_key="k", duplicate=True)

    assert story.violations(left={"ready": ("a",)}) == []
    assert story.violations(left={}) == ["I-1"]


def test_a_duplicate_may_stand_for_an_unknown_enqueue_that_has_expired():
    story = Story().enqueue("a", dedup_key="k", ttl_ms=10, outcome=UNKNOWN)

    assert story.enqueue("a", at=5, dedup_key="k", duplicate=True).violations(left={}) == []


def test_a_moved_message_is_found_under_its_new_id():
    story = Story().enqueue("a", at=0).receive("a", at=1).settle("fail", "a", at=2)
    story.receive("b", at=3, origin_id="a", payload="a")

    assert story.violations(left={"failed": (), "leased": ("b",)}) == []


# I-2


def test_what_is_received_was_enqueued():
    assert Story().enqueue("a", at=0).receive("a", at=1).violations() == []


def test_a_message_nobody_enqueued_comes_from_nowhere():
    assert Story().receive("a", at=1).violations() == ["I-2"]


def test_a_refused_enqueue_must_not_be_received():
    assert Story().enqueue("a", outcome=REFUSED).receive("a", at=1).violations() == ["I-2"]


def test_an_unknown_enqueue_may_be_received_later():
    assert Story().enqueue("a", outcome=UNKNOWN).receive("a", at=1).violations() == []


def test_an_unknown_enqueue_brings_at_most_one_message():
    story = Story().enqueue("a", outcome=UNKNOWN).receive("a", at=1)
    story.receive("b", at=1, payload="a")

    assert story.violations() == ["I-2"]


def test_a_payload_comes_back_as_it_went_in():
    assert Story().enqueue("a", at=0).receive("a", at=1, payload="b").violations() == ["I-2"]


def test_a_payload_may_be_one_it_was_replaced_with():
    story = (
        Story().enqueue("a", at=0, dedup_key="k").ask("replace", dedup_key="k", payload="b", outcome=UNKNOWN)
    )

    assert story.receive("a", at=1, payload="b").violations() == []


def test_nothing_is_received_before_it_was_enqueued():
    story = Story().receive("a", at=5, sequence=1, enqueued_at=5).enqueue("a", at=5)

    assert story.violations() == ["I-2"]


def test_a_receive_that_overlaps_the_enqueue_may_have_its_message():
    story = Story().receive("a", at=5, sequence=1, enqueued_at=5).enqueue("a", at=5)
    story.at_once(2)

    assert story.violations() == []


def test_a_tick_has_the_payload_of_its_schedule():
    def told(payload):
        story = Story().ask("set_schedule", schedule="nightly", payload="report")
        return story.receive("a", at=1, schedule="nightly", tick_at=1, payload=payload)

    assert told("report").violations() == []
    assert told("other").violations() == ["I-2"]


# I-5


def test_a_completed_message_is_received_no_more():
    story = Story().enqueue("a", at=0).receive("a", at=1).settle("complete", "a", at=2)

    assert story.receive(at=100).violations(left={}) == []


def test_a_completed_message_must_not_be_received_again():
    story = Story().enqueue("a", at=0).receive("a", at=1).settle("complete", "a", at=2)

    assert story.receive("a", at=100).violations() == ["I-5"]


def test_a_complete_without_a_stamp_still_counts_once_it_was_answered():
    story = Story().enqueue("a", at=0).receive("a", at=1).settle("complete", "a")

    assert story.receive("a", at=100).violations() == ["I-5"]


def test_a_completed_message_must_not_be_left():
    story = Story().enqueue("a", at=0).receive("a", at=1).settle("complete", "a", at=2)

    assert story.violations(left={"ready": ("a",)}) == ["I-5"]


def test_an_unknown_complete_may_be_followed_by_another_receive():
    story = Story().enqueue("a", at=0).receive("a", at=1).settle("complete", "a", outcome=UNKNOWN)

    assert story.receive("a", at=100).violations() == []


def test_a_receive_that_was_asked_before_the_complete_was_answered_may_have_come_first():
    story = Story().enqueue("a", at=0).receive("a", at=1, lease_ms=0)
    story.receive("a", at=1, lease_ms=0).settle("complete", "a")
    story.at_once(2)

    assert story.violations() == []


def test_a_deleted_message_must_not_be_received():
    assert Story().enqueue("a", at=0).ask("delete", message="a").receive("a", at=9).violations() == ["I-5"]


def test_a_purged_message_must_not_be_received():
    assert Story().enqueue("a", at=0).ask("purge", at=1).receive("a", at=9).violations() == ["I-5"]


def test_a_message_enqueued_while_the_purge_ran_may_have_come_after_it():
    story = Story().enqueue("a", at=0).ask("purge", at=1)
    story.at_once(2)

    assert story.receive("a", at=9).violations() == []


# I-14


def test_counts_that_add_up_and_agree_with_everyone():
    story = Story().enqueue("a", at=0).enqueue("b", at=0).receive("a", at=1).settle("complete", "a", at=2)

    assert story.violations(left={"ready": ("b",)}, stats={"enqueued": 2, "ready": 1, "completed": 1}) == []


@pytest.mark.parametrize(
    "stats",
    [
        pytest.param({"enqueued": 2, "ready": 0, "completed": 1}, id="one has vanished"),
        pytest.param({"enqueued": 3, "ready": 1, "completed": 1, "deleted": 1}, id="one too many came in"),
        pytest.param({"enqueued": 1, "ready": 1, "completed": 0}, id="one too few came in"),
    ],
)
def test_counts_that_do_not_add_up(stats):
    story = Story().enqueue("a", at=0).enqueue("b", at=0).receive("a", at=1).settle("complete", "a", at=2)

    assert set(story.violations(stats=stats)) == {"I-14"}


def test_counts_that_do_not_agree_with_what_is_left():
    story = Story().enqueue("a", at=0).enqueue("b", at=0)

    assert story.violations(left={"ready": ("a", "b")}, stats={"enqueued": 2, "expired": 2}) == ["I-14"]


@pytest.mark.parametrize("stats", [{"enqueued": 1, "ready": 1}, {"enqueued": 2, "ready": 2}])
def test_an_unknown_enqueue_may_or_may_not_be_counted(stats):
    assert Story().enqueue("a", at=0).enqueue("b", outcome=UNKNOWN).violations(stats=stats) == []


@pytest.mark.parametrize("stats", [{"enqueued": 1, "leased": 1}, {"enqueued": 1, "completed": 1}])
def test_an_unknown_complete_may_or_may_not_be_counted(stats):
    story = Story().enqueue("a", at=0).receive("a", at=1).settle("complete", "a", outcome=UNKNOWN)

    assert story.violations(stats=stats) == []
