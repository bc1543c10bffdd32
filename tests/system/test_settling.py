"""Receiving, and telling what became of it: by message, by id, one or many."""

import anyio
import pytest

import hq


async def take(queue, payload=b"x", **options):
    await queue.enqueue(payload, **options)
    [message] = await queue.receive()
    return message


async def test_receive_gives_up_to_its_limit_in_order(queue):
    await queue.enqueue_many(["a", "b", "c"])
    assert [message.payload for message in await queue.receive(2)] == ["a", "b"]
    assert [message.payload for message in await queue.receive(2)] == ["c"]
    assert await queue.receive(2) == []


async def test_receive_waits_for_something_to_come(queue):
    async def enqueue():
        await queue.enqueue("here")

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(enqueue)
        with anyio.fail_after(60):
            [message] = await queue.receive(wait_ms=60_000)
    assert message.payload == "here"


async def test_the_lease_is_as_long_as_the_receiver_says_and_its_holder_is_seen(queue, clock):
    await queue.enqueue(b"x")
    [message] = await queue.receive(lease_ms=100, holder="worker-1")

    assert message.lease_expires_at == clock.now + 100
    assert (await queue.get(message)).holder == "worker-1"


async def test_a_completed_message_is_never_received_again(queue, clock):
    message = await take(queue)
    settled = await queue.complete(message)
    clock.advance(days=365)

    assert (settled.id, settled.state, message.state) == (message.id, "completed", "completed")
    assert await queue.receive() == []


async def test_a_retried_message_comes_back_with_its_error_in_its_history(queue, clock):
    message = await take(queue)
    settled = await queue.retry(message, delay_ms=1_000, error="no answer")
    assert (settled.state, settled.until, message.state) == ("delayed", clock.now + 1_000, "delayed")

    clock.advance(1_000)
    [again] = await queue.receive()
    assert (again.id, again.receives, again.attempts) == (message.id, 2, 2)
    assert [(attempt.outcome, attempt.error) for attempt in again.history] == [("retried", "no answer")]


async def test_a_failed_message_is_a_dead_letter_with_its_error(queue):
    message = await take(queue)
    assert (await queue.fail(message, error="no such address")).state == "failed"

    [letter] = await queue.dead_letters()
    assert (letter.id, letter.state, letter.error) == (message.id, "failed", "no such address")


async def test_a_released_message_comes_back_and_the_attempt_does_not_count(queue):
    message = await take(queue)
    assert (await queue.release(message)).state == "ready"

    [again] = await queue.receive()
    assert (again.receives, again.attempts) == (2, 1)


async def test_extending_moves_the_end_of_the_lease(queue, clock):
    message = await take(queue)
    clock.advance(10_000)
    settled = await queue.extend(message, 60_000)

    assert settled.until == message.lease_expires_at == clock.now + 60_000
    assert message.state == "leased"


@pytest.mark.parametrize(
    ("verb", "count"),
    [
        ("complete", "completed"),
        ("retry", "delayed"),
        ("fail", "failed"),
        ("release", "ready"),
        ("extend", "leased"),
    ],
)
async def test_a_message_settles_itself(queue, verb, count):
    message = await take(queue)
    await getattr(message, verb)()
    assert message.state == count
    assert getattr(await queue.stats(), count) == 1


@pytest.mark.parametrize("verb", ["complete", "retry", "fail", "release", "extend"])
async def test_an_id_is_enough_while_the_message_is_leased(queue, verb):
    message = await take(queue)
    assert (await getattr(queue, verb)(message.id)).id == message.id


@pytest.mark.parametrize("verb", ["complete", "retry", "fail", "release", "extend"])
async def test_an_id_is_not_enough_when_it_is_not_leased(queue, verb):
    accepted = await queue.enqueue(b"x")
    with pytest.raises(hq.LeaseNotHeld):
        await getattr(queue, verb)(accepted.id)


@pytest.mark.parametrize("verb", ["complete", "retry", "fail", "release", "extend"])
async def test_of_many_each_has_its_result_and_one_refusal_stops_no_other(queue, verb):
    await queue.enqueue_many(["a", "b", "c"])
    first, second, third = await queue.receive(3)
    await queue.complete(second)

    results = await getattr(queue, verb)([first, second, third.id, "no id"])

    assert [getattr(result, "id", None) for result in results] == [first.id, None, third.id, None]
    assert isinstance(results[1], hq.MessageNotFound)
    assert isinstance(results[3], hq.InvalidInput)


async def test_nothing_to_settle_is_settled(queue):
    assert await queue.complete([]) == []


async def test_a_message_of_another_queue_is_not_found_here(system, queue):
    other = await system.create_queue("other")
    message = await take(other)
    await take(queue)
    with pytest.raises(hq.MessageNotFound):
        await queue.complete(message)


@pytest.mark.parametrize("target", [None, 7, b"x"])
async def test_what_names_no_message_is_refused(queue, target):
    with pytest.raises(hq.InvalidInput):
        await queue.complete(target)


async def test_a_lease_that_ended_is_told_and_the_message_is_lost(queue, clock):
    message = await take(queue)
    clock.advance(30_000)
    with pytest.raises(hq.LeaseExpired):
        await message.extend()
    assert message.lost


async def test_only_the_latest_holder_settles_a_message(queue, clock):
    first = await take(queue)
    clock.advance(30_000)
    [second] = await queue.receive()
    with pytest.raises(hq.LeaseNotHeld):
        await first.complete()
    assert (first.lost, second.lost) == (True, False)
    await second.complete()


async def test_a_dead_letter_is_requeued_with_all_its_attempts(queue):
    message = await take(queue)
    await message.fail()
    [letter] = await queue.dead_letters()
    assert (await queue.requeue(letter)).state == "ready"

    [again] = await queue.receive()
    assert (again.id, again.attempts) == (message.id, 1)


async def test_only_a_dead_letter_is_requeued(queue):
    accepted = await queue.enqueue(b"x")
    with pytest.raises(hq.MessageNotFailed):
        await queue.requeue(accepted.id)


async def test_deleting_takes_a_message_out_in_any_state(queue):
    accepted = await queue.enqueue("waiting")
    message = await take(queue, "leased", priority=1)

    results = await queue.delete([accepted.id, message])

    assert [result.state for result in results] == ["deleted", "deleted"]
    assert (await queue.stats()).deleted == 2
    with pytest.raises(hq.MessageNotFound):
        await message.complete()


async def test_a_waiting_message_is_deleted_by_its_key(queue):
    accepted = await queue.enqueue("a", dedup_key="k")
    assert (await queue.delete_by_key("k")).id == accepted.id
    assert await queue.receive() == []


async def test_a_waiting_message_is_given_a_new_payload_by_its_key(queue):
    accepted = await queue.enqueue({"version": 1}, dedup_key="k")
    assert (await queue.replace("k", {"version": 2})).id == accepted.id

    [message] = await queue.receive()
    assert message.payload == {"version": 2}
    with pytest.raises(hq.MessageNotWaiting):
        await queue.replace("k", {"version": 3})


async def test_a_receive_that_is_cancelled_at_any_moment_leaves_nothing_leased(queue, until):
    async def nothing_is_leased():
        return (await queue.stats()).leased == 0

    for steps in range(12):
        await queue.enqueue(b"x")
        taken = []
        async with anyio.create_task_group() as tasks:

            async def receive(taken=taken):
                taken += await queue.receive(wait_ms=60_000)

            tasks.start_soon(receive)
            for _ in range(steps):
                await anyio.lowlevel.checkpoint()
            tasks.cancel_scope.cancel()
        await queue.complete(taken)
        await until(nothing_is_leased)
        await queue.purge()


async def test_who_has_the_id_and_the_token_holds_the_message(queue, clock):
    await queue.enqueue(b"x")
    [message] = await queue.receive()
    clock.advance(30_000)
    [again] = await queue.receive()

    with pytest.raises(hq.LeaseNotHeld):
        await queue.complete(hq.Held(message.id, message.token.hex()))
    [settled] = await queue.complete([hq.Held(again.id, again.token.hex())])
    assert settled.state == "completed"


async def test_a_token_that_is_no_hexadecimal_is_refused(queue):
    accepted = await queue.enqueue(b"x")
    with pytest.raises(hq.InvalidInput):
        await queue.complete(hq.Held(accepted.id, "token"))
