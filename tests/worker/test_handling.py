"""A handler decides what becomes of its message: by returning, by raising, by taking too long."""

import threading

import anyio
import pytest

import hq
from hq.domain.messages import MAX_ERROR_CHARS


async def test_a_message_whose_handler_returns_is_completed(system, queue, worker, counts):
    handled = []

    @worker.handle("emails")
    async def send(message):
        handled.append((message.payload, message.attempts))

    async with worker.running(system):
        await queue.enqueue_many(["a", {"b": 1}])
        await counts(queue, completed=2, leased=0)

    assert handled == [("a", 1), ({"b": 1}, 1)]


async def test_an_error_retries_the_message_with_its_text_and_traceback(system, queue, worker, counts, clock):
    @worker.handle("emails")
    async def send(message):
        raise ZeroDivisionError(f"no address in {message.payload}")

    async with worker.running(system):
        accepted = await queue.enqueue("letter")
        await counts(queue, delayed=1)
        [attempt] = (await queue.get(accepted.id)).history
        assert attempt.outcome == "retried"
        assert attempt.holder == "tester"
        assert attempt.error.startswith("ZeroDivisionError: no address in letter\n\n")
        assert "test_handling.py" in attempt.error
        for _ in range(2):
            clock.advance(minutes=5)
            await counts(queue, leased=0)
            await counts(queue, ready=0)
        await counts(queue, failed=1)

    [letter] = await queue.dead_letters()
    assert (letter.reason, letter.attempts) == ("attempts", 3)


async def test_what_is_kept_of_an_error_is_bounded(system, queue, worker, counts):
    @worker.handle("emails")
    async def send(message):
        raise ValueError("x" * 100_000)

    async with worker.running(system):
        accepted = await queue.enqueue("letter")
        await counts(queue, delayed=1)

    [attempt] = (await queue.get(accepted.id)).history
    assert len(attempt.error) == MAX_ERROR_CHARS
    assert attempt.error.startswith("ValueError: xxx")


async def test_fail_makes_a_dead_letter_at_once(system, queue, worker, counts):
    @worker.handle("emails")
    async def send(message):
        raise hq.Fail("no such address")

    async with worker.running(system):
        await queue.enqueue("letter")
        await counts(queue, failed=1)

    [letter] = await queue.dead_letters()
    assert (letter.error, letter.attempts) == ("no such address", 1)


async def test_release_gives_the_message_back_and_the_attempt_does_not_count(system, queue, worker, until):
    seen = []

    @worker.handle("emails")
    async def send(message):
        seen.append((message.receives, message.attempts))
        if len(seen) < 3:
            raise hq.Release

    async with worker.running(system):
        await queue.enqueue("letter")

        async def done():
            return (await queue.stats()).completed == 1

        await until(done)

    assert seen == [(1, 1), (2, 1), (3, 1)]


async def test_a_handler_says_when_to_try_again(system, queue, worker, counts, clock):
    @worker.handle("emails")
    async def send(message):
        if message.attempts == 1:
            raise hq.Retry("busy", delay_ms=60_000)

    async with worker.running(system):
        accepted = await queue.enqueue("letter")
        await counts(queue, delayed=1)
        seen = await queue.get(accepted.id)
        assert seen.available_at == clock.now + 60_000
        assert seen.history[0].error == "busy"
        clock.advance(60_000)
        await counts(queue, completed=1)


async def test_a_handler_that_takes_too_long_is_cancelled_and_retried(system, queue, worker, counts):
    ended = []

    @worker.handle("emails", timeout_ms=1)
    async def send(message):
        try:
            await anyio.sleep_forever()
        finally:
            ended.append(message.id)

    async with worker.running(system):
        accepted = await queue.enqueue("letter")
        await counts(queue, delayed=1)

    assert ended == [accepted.id]
    [attempt] = (await queue.get(accepted.id)).history
    assert attempt.error == "TimeoutError: the handler took longer than 1 ms"


async def test_a_plain_function_runs_in_a_thread_with_the_blocking_face(system, queue, worker, counts):
    threads = []

    @worker.handle("emails")
    def send(message):
        threads.append(threading.current_thread())
        assert isinstance(message, hq.blocking.Message)
        assert hq.current_message() is message
        message.report({"percent": 50})

    async with worker.running(system):
        accepted = await queue.enqueue("letter", result_ms=60_000)
        outcome = await queue.outcome(accepted, wait_ms=60_000)

    assert outcome.progress == {"percent": 50}
    assert threads[0] is not threading.current_thread()


async def test_threads_are_bounded(system, queue, counts, until):
    worker = hq.Worker(threads=2, concurrency=8)
    lock, go = threading.Lock(), threading.Event()
    running, most = 0, 0

    @worker.handle("emails")
    def send(message):
        nonlocal running, most
        with lock:
            running += 1
            most = max(most, running)
        go.wait(5)
        with lock:
            running -= 1

    async with worker.running(system):
        await queue.enqueue_many(list(range(8)))
        await counts(queue, leased=8)

        async def all_threads_run():
            return running == 2

        await until(all_threads_run)
        go.set()
        await counts(queue, completed=8)

    assert most == 2


async def test_what_a_handler_returns_is_kept_if_it_was_asked_for(system, queue, worker):
    @worker.handle("emails")
    async def send(message):
        return {"sent": (1, 2)}

    async with worker.running(system):
        accepted = await queue.enqueue("letter", result_ms=60_000)
        outcome = await queue.outcome(accepted, wait_ms=60_000)

    assert outcome.result == {"sent": [1, 2]}


@pytest.mark.parametrize(("value", "told"), [(object(), "no JSON"), ("x" * 70_000, "larger than")])
async def test_a_result_that_cannot_be_kept_is_a_dead_letter(system, queue, worker, value, told):
    @worker.handle("emails")
    async def send(message):
        return value

    async with worker.running(system):
        accepted = await queue.enqueue("letter", result_ms=60_000)
        outcome = await queue.outcome(accepted, wait_ms=60_000)

    assert outcome.state == "failed"
    assert told in outcome.error


async def test_a_message_that_killed_its_holders_is_set_aside(system, queue, worker, counts, clock):
    """Attempts that ended by themselves are counted apart from those that went wrong."""
    handled = []

    @worker.handle("emails", max_crashes=2)
    async def send(message):
        handled.append(message)

    await queue.enqueue("poison")
    for _ in range(2):
        assert len(await queue.receive()) == 1
        clock.advance(30_000)
    async with worker.running(system):
        await counts(queue, failed=1)

    [letter] = await queue.dead_letters()
    assert [attempt.outcome for attempt in letter.history] == ["lapsed", "lapsed", "failed"]
    assert letter.error.startswith("2 attempts ended by themselves")
    assert handled == []


async def test_a_prefix_holds_all_queues_below_it_even_later_ones(system, worker, until):
    handled = []

    @worker.handle_under("mail")
    async def send(message):
        handled.append((message.queue.name, message.payload))

    async with worker.running(system):
        for name in ("mail.eu", "mails", "mail"):
            queue = await system.create_queue(name)
            await queue.enqueue(name)

        async def both():
            return len(handled) == 2

        with anyio.fail_after(60):
            while not await both():
                system.clock.advance(1_000)
                await anyio.wait_all_tasks_blocked()

    assert sorted(handled) == [("mail", "mail"), ("mail.eu", "mail.eu")]
    assert (await system.queue("mails").stats()).ready == 1


async def test_two_handlers_for_one_queue_are_refused(worker):
    @worker.handle("emails")
    async def send(message): ...

    with pytest.raises(hq.InvalidInput, match="two handlers"):
        worker.handle("emails")(send)
    with pytest.raises(hq.InvalidInput, match="did you mean 'concurrency'"):
        worker.handle("other", concurency=3)
