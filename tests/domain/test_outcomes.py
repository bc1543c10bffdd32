"""Progress, and results that outlive their message for as long as its producer asked for."""

import pytest

from hq.domain.commands import Complete, Enqueue, Fail, Outcome, Progress, Purge, Requeue, Wake
from hq.domain.messages import MAX_PROGRESS_BYTES, MAX_RESULT_BYTES, Options
from hq.domain.settings import Groups
from hq.errors import InvalidInput


def completed(queue, result=b"42", **options):
    """A message that was worked on, with a result kept for a second."""
    message = queue.enqueue(b"work", result_ms=1_000, **options)
    queue.ask(Complete(message, queue.take().token, result))
    return message


def told(queue, message):
    outcome = queue.ask(Outcome(message))
    return outcome.state, outcome.result


def test_a_result_is_kept_as_long_as_its_producer_asked(new_queue):
    queue = new_queue()
    message = completed(queue)

    assert told(queue, message) == ("completed", b"42")
    queue.clock.advance(999)
    assert told(queue, message) == ("completed", b"42")
    queue.clock.advance(1)
    assert queue.refusal(Outcome(message)) == "message_not_found"


def test_who_asked_for_a_result_learns_that_there_is_none(new_queue):
    queue = new_queue()
    assert told(queue, completed(queue, result=None)) == ("completed", b"null")


def test_without_being_asked_for_nothing_is_kept(new_queue):
    queue = new_queue()
    message = queue.enqueue(b"work")
    queue.ask(Complete(message, queue.take().token, b"42"))

    assert queue.refusal(Outcome(message)) == "message_not_found"


def test_a_result_is_no_message(new_queue):
    queue = new_queue(capacity=1)
    message = completed(queue, dedup_key="key", group="group")

    assert queue.stats() == {"enqueued": 1, "completed": 1}
    assert queue.state_of(message) == "message_not_found"
    assert queue.receive() == []
    # Neither its key, its group nor its place is taken.
    assert queue.enqueue(b"next", dedup_key="key", group="group") != message
    assert queue.received() == "next"


def test_a_result_survives_a_purge_and_counts_once(new_queue):
    queue = new_queue()
    message = completed(queue)
    queue.ask(Purge())

    assert told(queue, message) == ("completed", b"42")
    queue.clock.advance(1_000)
    queue.ask(Wake())
    assert queue.stats() == {"enqueued": 1, "completed": 1}


def test_a_queue_wakes_to_forget_a_result(new_queue):
    queue = new_queue()
    completed(queue)
    queue.checkpoint()
    queue.clock.advance(1_000)
    queue.ask(Wake())
    queue.checkpoint()  # what is left of one, and all that came after
    queue.checkpoint()

    assert queue.backend._tables[queue.number].rows == {}  # noqa: SLF001 - what is stored is the promise


def test_a_result_is_kept_when_the_lease_had_ended(new_queue):
    queue = new_queue(lease_ms=10)
    message = queue.enqueue(b"work", result_ms=1_000)
    token = queue.take().token
    queue.clock.advance(10)

    queue.ask(Complete(message, token, b"late"))

    assert told(queue, message) == ("completed", b"late")
    assert queue.receive() == []


@pytest.mark.parametrize("groups", [Groups.ORDERED, Groups.FIFO])
def test_a_message_that_failed_before_keeps_its_result_by_its_own_time(new_queue, groups):
    queue = new_queue(groups=groups, failed_ms=100_000)
    message = queue.enqueue(b"work", result_ms=1_000)
    queue.ask(Fail(message, queue.take().token, error="no"))
    assert queue.ask(Outcome(message)).error == "no"
    queue.ask(Requeue(message))
    queue.ask(Complete(message, queue.take().token, b"1"))

    assert told(queue, message) == ("completed", b"1")
    queue.clock.advance(1_000)
    assert queue.refusal(Outcome(message)) == "message_not_found"


def test_a_requeued_message_without_a_result_leaves_nothing(new_queue):
    queue = new_queue()
    message = queue.enqueue(b"work")
    queue.ask(Fail(message, queue.take().token))
    queue.ask(Requeue(message))
    queue.ask(Complete(message, queue.take().token, b"1"))

    assert queue.refusal(Outcome(message)) == "message_not_found"


def test_a_dead_letter_that_moves_is_failed(new_queue):
    queue = new_queue(dead_letter_queue="dead")
    message = queue.enqueue(b"work")
    queue.ask(Fail(message, queue.take().token, error="no"))

    outcome = queue.ask(Outcome(message))

    assert (outcome.state, outcome.error) == ("failed", "no")


def test_progress_is_seen_while_the_work_goes_on_and_by_the_next_attempt(new_queue):
    queue = new_queue(lease_ms=10)
    message = queue.enqueue(b"work")
    token = queue.take().token
    queue.ask(Progress(message, token, b"[1,2]"))
    assert queue.ask(Outcome(message)).progress == b"[1,2]"
    queue.clock.advance(10)

    assert queue.take().progress == b"[1,2]"


def test_progress_is_for_the_holder_to_tell(new_queue):
    queue = new_queue(lease_ms=10)
    message = queue.enqueue(b"work")
    token = queue.take().token
    assert queue.refusal(Progress(message, b"foreign", b"1")) == "lease_not_held"
    queue.clock.advance(10)
    assert queue.refusal(Progress(message, token, b"1")) == "lease_expired"


def test_what_is_too_large_is_refused_and_the_work_goes_on(new_queue):
    queue = new_queue()
    message = queue.enqueue(b"work", result_ms=1_000)
    token = queue.take().token

    assert queue.refusal(Complete(message, token, b"x" * (MAX_RESULT_BYTES + 1))) == "payload_too_large"
    assert queue.refusal(Progress(message, token, b"x" * (MAX_PROGRESS_BYTES + 1))) == "payload_too_large"
    queue.ask(Progress(message, token, b"x" * MAX_PROGRESS_BYTES))
    queue.ask(Complete(message, token, b"x" * MAX_RESULT_BYTES))
    assert told(queue, message) == ("completed", b"x" * MAX_RESULT_BYTES)


@pytest.mark.parametrize("wrong", [0, -1, 1.5, "soon"])
def test_a_result_is_kept_for_a_time(wrong):
    with pytest.raises(InvalidInput, match="result_ms"):
        Enqueue(b"", Options(result_ms=wrong))
