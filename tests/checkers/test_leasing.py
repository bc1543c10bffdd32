"""I-3, I-4, I-6, I-13: leases, tokens, counts and limits; each shown to hold and to break."""

import pytest

from hq.domain.settings import Groups, Settings
from tests.checkers.history import Outcome
from tests.checkers.story import Story

UNKNOWN, REFUSED = Outcome.UNKNOWN, Outcome.REFUSED


def leased():
    """A message with a lease from 0 to 30."""
    return Story().enqueue("a", at=0).receive("a", at=0)


# I-3


def test_a_lease_that_is_over_may_be_followed_by_another():
    assert leased().receive("a", at=30).violations() == []


def test_two_leases_at_once():
    assert leased().receive("a", at=29).violations() == ["I-3"]


def test_the_same_message_twice_in_one_receive_is_two_leases_at_once():
    assert Story().enqueue("a", at=0).receive("a", "a", at=0).violations() == ["I-3"]


@pytest.mark.parametrize("verb", ["release", "retry"])
def test_a_lease_that_was_given_up_may_be_followed_by_another(verb):
    assert leased().settle(verb, "a", at=10).receive("a", at=10).violations() == []


@pytest.mark.parametrize("verb", ["release", "retry"])
def test_a_lease_ends_when_it_is_given_up_and_not_before(verb):
    story = leased().receive("a", at=9)
    story.settle(verb, "a", at=10, token=1)
    story.at_once(2)

    assert "I-3" in story.violations()


@pytest.mark.parametrize("verb", ["release", "retry"])
def test_an_unknown_release_may_have_ended_the_lease(verb):
    assert leased().settle(verb, "a", outcome=UNKNOWN).receive("a", at=10).violations() == []


def test_a_refused_release_ended_nothing():
    assert leased().settle("release", "a", outcome=REFUSED).receive("a", at=10).violations() == ["I-3"]


def test_a_release_that_was_asked_too_late_ended_nothing():
    story = leased().receive("a", at=10).settle("release", "a", token=1, outcome=UNKNOWN)

    assert story.violations() == ["I-3"]


def test_an_unknown_complete_did_not_happen_if_the_message_comes_again_so_its_lease_ran_on():
    story = leased().settle("complete", "a", outcome=UNKNOWN)

    assert story.receive("a", at=10).violations() == ["I-3"]


def test_an_extended_lease_is_over_at_its_new_end():
    assert leased().extend("a", at=20).receive("a", at=50).violations() == []
    assert leased().extend("a", at=20).receive("a", at=49).violations() == ["I-3"]


def test_an_extend_to_nothing_ends_the_lease():
    assert leased().extend("a", at=20, lease_ms=0).receive("a", at=20).violations() == []


def test_an_unknown_extend_may_have_made_the_lease_shorter():
    story = leased().extend("a", lease_ms=5, outcome=UNKNOWN)

    assert story.receive("a", at=10).violations() == []


def test_leases_without_stamps_are_not_judged_by_the_clock():
    assert Story().enqueue("a").receive("a").receive("a").violations() == []


# I-4


@pytest.mark.parametrize("verb", ["complete", "fail"])
def test_work_may_be_settled_after_its_lease_while_nobody_else_has_it(verb):
    assert leased().settle(verb, "a", at=99).violations() == []


@pytest.mark.parametrize("verb", ["complete", "fail"])
def test_in_a_fifo_queue_an_expired_token_is_stale(verb):
    fifo = Settings(groups=Groups.FIFO)

    assert leased().settle(verb, "a", at=29).violations(settings=fifo) == []
    assert leased().settle(verb, "a", at=30).violations(settings=fifo) == ["I-4"]


@pytest.mark.parametrize("verb", ["retry", "release"])
def test_a_lease_can_be_given_up_while_it_runs(verb):
    assert leased().settle(verb, "a", at=29).violations() == []
    assert leased().settle(verb, "a", at=30).violations() == ["I-4"]


def test_a_lease_can_be_extended_while_it_runs():
    assert leased().extend("a", at=29).extend("a", at=58).violations() == []
    assert leased().extend("a", at=29).extend("a", at=59).violations() == ["I-4"]


def test_a_lease_that_was_made_shorter_is_over_sooner():
    assert leased().extend("a", at=5, lease_ms=5).settle("release", "a", at=11).violations() == ["I-4"]


def test_an_unknown_extend_may_have_made_the_lease_longer():
    assert leased().extend("a", outcome=UNKNOWN).settle("release", "a", at=40).violations() == []


@pytest.mark.parametrize("verb", ["complete", "fail", "retry", "release"])
def test_a_token_is_stale_once_another_has_the_message(verb):
    story = leased().receive("a", at=30, attempts=None).settle(verb, "a", at=31, token=1)

    assert story.violations() == ["I-4"]


def test_a_token_is_stale_without_stamps_too():
    story = Story().enqueue("a").receive("a").receive("a").settle("complete", "a", token=1)

    assert story.violations() == ["I-4"]


def test_who_was_first_may_be_open_while_two_calls_overlap():
    story = Story().enqueue("a").receive("a").receive("a").settle("complete", "a", token=1)
    story.at_once(2)

    assert story.violations() == []


def test_a_stale_token_may_be_used_as_long_as_it_is_refused():
    story = leased().receive("a", at=30).settle("complete", "a", token=1, outcome=REFUSED)

    assert story.settle("complete", "a", at=31).violations() == []


def test_a_token_settles_once():
    story = leased().settle("complete", "a", at=1).settle("complete", "a", at=2)

    assert story.violations() == ["I-4"]


def test_a_complete_that_was_unknown_may_be_repeated():
    story = leased().settle("complete", "a", outcome=UNKNOWN).settle("complete", "a", at=2)

    assert story.violations() == []


def test_work_given_up_by_mistake_may_still_be_completed():
    assert leased().settle("retry", "a", at=1).settle("complete", "a", at=2).violations() == []


def test_a_token_that_nobody_was_given():
    assert leased().settle("complete", "a", at=1, token=7).violations() == ["I-4"]


# I-6


def test_receives_and_attempts_count_up():
    assert leased().receive("a", at=30).receive("a", at=60).violations() == []


def test_a_missing_receive():
    assert leased().receive("a", at=30, receives=3).violations() == ["I-6"]


def test_a_receive_number_that_comes_twice():
    assert leased().receive("a", at=30, receives=1, attempts=1).violations() == ["I-6"]


def test_receives_that_go_back():
    story = Story().enqueue("a", at=0).receive("a", at=0, receives=2).receive("a", at=30, receives=1)

    assert "I-6" in story.violations()


def test_an_unknown_receive_may_hide_a_lease():
    story = leased().receive(outcome=UNKNOWN)

    assert story.receive("a", at=60, receives=3, attempts=3).violations() == []


def test_an_unknown_receive_hides_one_lease_of_a_message_and_not_two():
    story = leased().receive(outcome=UNKNOWN, limit=10)

    assert story.receive("a", at=90, receives=4, attempts=4).violations() == ["I-6"]


def test_an_unknown_receive_hides_no_more_than_it_asked_for():
    story = Story().enqueue("a", at=0).enqueue("b", at=0).receive(outcome=UNKNOWN, limit=1)
    story.receive("a", "b", at=30, receives=2)

    assert story.violations() == ["I-6"]


def test_an_unknown_receive_that_was_asked_too_late_hides_nothing():
    story = Story().enqueue("a", at=0).receive("a", at=60, receives=2).receive(outcome=UNKNOWN)

    assert story.violations() == ["I-6"]


@pytest.mark.parametrize("attempts", [1, 2])
def test_a_lease_nobody_saw_may_have_been_given_back_by_hq(attempts):
    story = Story().enqueue("a", at=0).receive(outcome=UNKNOWN)

    assert story.receive("a", at=30, receives=2, attempts=attempts).violations() == []


def test_a_release_gives_the_attempt_back():
    assert leased().settle("release", "a", at=1).receive("a", at=1).violations() == []
    assert leased().settle("release", "a", at=1).receive("a", at=1, attempts=2).violations() == ["I-6"]


@pytest.mark.parametrize("attempts", [1, 2])
def test_an_unknown_release_may_or_may_not_give_the_attempt_back(attempts):
    story = leased().settle("release", "a", outcome=UNKNOWN)

    assert story.receive("a", at=30, attempts=attempts).violations() == []


def test_attempts_that_start_again_by_themselves():
    assert leased().receive("a", at=30, attempts=1).violations() == ["I-6"]


def test_a_requeue_starts_a_new_round():
    story = leased().settle("fail", "a", at=1).ask("requeue", at=2, message="a")

    assert story.receive("a", at=3).violations() == []


def test_attempts_stay_within_the_queues_bound():
    settings = Settings(max_attempts=2)

    assert leased().receive("a", at=30).violations(settings=settings) == []
    assert leased().receive("a", at=30).receive("a", at=60).violations(settings=settings) == ["I-6"]


def test_a_message_may_have_a_bound_of_its_own():
    story = Story().enqueue("a", at=0, max_attempts=1).receive("a", at=0)

    assert story.violations() == []
    assert story.receive("a", at=30).violations() == ["I-6"]


# I-13


def two_leases(**options):
    return Story().enqueue("a", at=0, **options).enqueue("b", at=0, **options).receive("a", at=0)


def test_leases_within_the_concurrency():
    assert two_leases().receive("b", at=1).violations(settings=Settings(concurrency=2)) == []
    assert two_leases().receive("b", at=30).violations(settings=Settings(concurrency=1)) == []


def test_more_leases_than_the_concurrency():
    assert two_leases().receive("b", at=29).violations(settings=Settings(concurrency=1)) == ["I-13"]


@pytest.mark.parametrize("verb", ["complete", "fail", "retry", "release"])
@pytest.mark.parametrize("outcome", [Outcome.OK, UNKNOWN])
def test_a_slot_may_be_free_as_soon_as_its_lease_is_settled(verb, outcome):
    story = two_leases().settle(verb, "a", at=1, outcome=outcome).receive("b", at=1)

    assert story.violations(settings=Settings(concurrency=1)) == []


def test_more_leases_of_a_key_than_its_concurrency():
    settings = Settings(concurrency_per_key=1)

    assert two_leases(concurrency_key="k").receive("b", at=30).violations(settings=settings) == []
    assert two_leases(concurrency_key="k").receive("b", at=29).violations(settings=settings) == ["I-13"]


def test_an_enqueue_within_the_capacity():
    story = Story().enqueue("a", at=0).receive("a", at=1).settle("complete", "a", at=2).enqueue("b", at=3)

    assert story.violations(settings=Settings(capacity=1)) == []


def test_an_enqueue_beyond_the_capacity():
    story = Story().enqueue("a", at=0).enqueue("b", at=1)

    assert story.violations(settings=Settings(capacity=1)) == ["I-13"]


def test_an_unknown_complete_may_have_made_room():
    story = Story().enqueue("a", at=0).receive("a", at=1).settle("complete", "a", outcome=UNKNOWN)

    assert story.enqueue("b", at=3).violations(settings=Settings(capacity=1)) == []


def test_an_expired_message_makes_room():
    story = Story().enqueue("a", at=0, ttl_ms=10).enqueue("b", at=10)

    assert story.violations(settings=Settings(capacity=1)) == []


def test_a_message_out_of_attempts_makes_room_when_its_lease_ends():
    settings = Settings(capacity=1, max_attempts=1)

    assert leased().enqueue("b", at=30).violations(settings=settings) == []
    assert leased().enqueue("b", at=29).violations(settings=settings) == ["I-13"]
