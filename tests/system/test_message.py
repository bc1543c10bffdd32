"""`async with message:` and what a message shows of itself."""

import anyio
import pytest

import hq


@pytest.fixture
async def message(queue):
    await queue.enqueue("secret payload", dedup_key="secret key", headers={"secret": "header"})
    [received] = await queue.receive()
    return received


async def test_a_block_that_ends_well_completes_its_message(queue, message):
    async with message as same:
        assert same is message
    assert message.state == "completed"
    assert (await queue.stats()).completed == 1


async def test_a_block_that_fails_retries_its_message_and_the_error_goes_on(queue, message):
    with pytest.raises(ZeroDivisionError):
        async with message:
            raise ZeroDivisionError("no answer")

    assert message.state == "delayed"
    [seen] = await queue.browse()
    assert [attempt.error for attempt in seen.history] == ["ZeroDivisionError: no answer"]


async def test_an_error_text_of_any_length_is_kept_as_far_as_it_fits(queue, message):
    with pytest.raises(ValueError, match="x"):
        async with message:
            raise ValueError("x" * 10_000)
    [seen] = await queue.browse()
    assert len(seen.history[0].error) == 4_096


async def test_the_last_attempt_that_fails_makes_a_dead_letter(system):
    queue = await system.create_queue("once", max_attempts=1)
    await queue.enqueue(b"x")
    [message] = await queue.receive()
    with pytest.raises(ZeroDivisionError):
        async with message:
            raise ZeroDivisionError
    [letter] = await queue.dead_letters()
    assert (letter.reason, letter.error) == ("attempts", "ZeroDivisionError: ")


async def test_a_block_that_is_cancelled_releases_its_message(queue, message):
    with anyio.CancelScope() as scope:
        async with message:
            scope.cancel()
            await anyio.lowlevel.checkpoint()

    [again] = await queue.receive()
    assert (again.id, again.receives, again.attempts) == (message.id, 2, 1)


async def test_a_block_that_ends_while_it_is_cancelled_still_completes(queue, message):
    with anyio.CancelScope() as scope:
        async with message:
            scope.cancel()
    assert (await queue.stats()).completed == 1


@pytest.mark.parametrize("verb", ["complete", "retry", "fail", "release"])
async def test_a_block_that_settles_its_message_is_left_at_that(queue, message, verb):
    async with message:
        settled = await getattr(message, verb)()
    assert message.state == settled.state


async def test_a_block_that_settles_its_message_and_then_fails_tells_its_error(queue, message):
    async def complete_and_break():
        async with message:
            await message.complete()
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await complete_and_break()
    assert message.state == "completed"


async def test_a_block_whose_lease_was_taken_over_is_told(queue, message, clock):
    async def work_for_too_long():
        async with message:
            clock.advance(30_000)
            await queue.receive()

    with pytest.raises(hq.LeaseNotHeld):
        await work_for_too_long()


async def test_an_error_is_not_hidden_by_a_lease_that_ended(queue, message, clock):
    async def break_too_late():
        async with message:
            clock.advance(30_000)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError) as told:
        await break_too_late()
    assert "could not retry" in told.value.__notes__[0]


async def test_neither_token_nor_payload_nor_keys_are_shown(queue, message):
    [seen] = await queue.browse()
    for text in (repr(message), str(message), repr(seen), f"{message}"):
        assert "secret" not in text
        assert repr(message.token) not in text
        assert message.token.hex() not in text


async def test_a_message_that_was_moved_knows_its_first_id(system, until):
    letters = await system.create_queue("letters")
    queue = await system.create_queue("work", dead_letter_queue="letters")
    accepted = await queue.enqueue(b"x")
    [message] = await queue.receive()
    await message.fail(error="broken")

    with anyio.fail_after(60):
        [moved] = await letters.receive(wait_ms=60_000)
    assert moved.origin_id == accepted.id
    assert moved.history[-1].error == "broken"
