"""Functions that are jobs: typed on both sides, with options, results, replacing and cancelling."""

from dataclasses import dataclass
from datetime import UTC, datetime

import anyio
import pytest

import hq


@dataclass
class Address:
    name: str
    city: str | None = None


async def test_a_task_is_called_with_its_arguments_of_their_types(system, worker):
    called = []

    @worker.task("mail", result_ms=60_000)
    async def send(to: Address, at: datetime, copies: int = 1) -> list[Address]:
        called.append((to, at, copies))
        return [to] * copies

    noon = datetime(2030, 1, 1, 12, tzinfo=UTC)
    async with worker.running(system):
        job = await send.enqueue(Address("Ada"), at=noon, copies=2)
        assert await job.result(wait_ms=60_000) == [Address("Ada"), Address("Ada")]

    assert called == [(Address("Ada"), noon, 2)]
    assert await send(Address("Bob"), noon) == [Address("Bob")]


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ({"to": 5}, "Expected `str`, got `int` - at `$.to`"),
        ({"to": "a", "copies": "many"}, "Expected `int`, got `str`"),
        ({}, "missing a required argument: 'to'"),
        ({"to": "a", "cc": "b"}, "unexpected keyword argument 'cc'"),
    ],
)
async def test_arguments_that_do_not_fit_are_refused_where_they_are_given(system, worker, arguments, told):
    @worker.task("mail")
    async def send(to: str, copies: int = 1): ...

    await worker.prepare(system)
    with pytest.raises(hq.InvalidInput) as refused:
        await send.enqueue(**arguments)

    assert str(refused.value).startswith("send: ")
    assert told in str(refused.value)
    assert (await system.queue("mail").stats()).enqueued == 0


async def test_a_job_from_elsewhere_is_checked_by_the_worker(system, worker):
    """Any producer may send the arguments as JSON; if there is one task, it needs no name."""
    called = []

    @worker.task("mail")
    async def send(to: str, copies: int = 1):
        called.append((to, copies))

    async with worker.running(system):
        mail = system.queue("mail")
        good = await mail.enqueue({"to": "ada"}, result_ms=60_000)
        bad = await mail.enqueue({"to": 5})
        assert (await mail.outcome(good, wait_ms=60_000)).state == "completed"
        outcome = await mail.outcome(bad, wait_ms=60_000)

    assert called == [("ada", 1)]
    assert (outcome.state, outcome.attempts) == ("failed", 1)
    assert "Expected `str`, got `int`" in outcome.error


async def test_tasks_of_one_queue_are_told_apart_by_name(system, worker, counts):
    called = []

    @worker.task("mail")
    async def send(to: str):
        called.append(("send", to))

    @worker.task("mail", name="mail.check")
    async def check(address: str):
        called.append(("check", address))

    async with worker.running(system):
        await send.enqueue("a")
        await check.enqueue("b")
        mail = system.queue("mail")
        await counts(mail, completed=2)
        stray = await mail.enqueue({"to": "c"}, headers={"hq-task": "unknown"})
        await counts(mail, delayed=1)
        [attempt] = (await mail.get(stray.id)).history

    assert called == [("send", "a"), ("check", "b")]
    assert "no task named 'unknown'" in attempt.error


async def test_a_task_has_the_options_of_a_message(system, worker):
    @worker.task("mail", priority=3)
    async def send(to: str): ...

    await worker.prepare(system)
    first = await send.options(dedup_key="welcome-1", delay_ms=1_000).enqueue("ada")
    again = await send.options(dedup_key="welcome-1").enqueue("ada")

    assert (first.duplicate, again.duplicate, again.id) == (False, True, first.id)
    seen = await system.queue("mail").get(first.id)
    assert (seen.priority, seen.state, seen.dedup_key) == (3, "delayed", "welcome-1")


async def test_a_waiting_job_is_replaced_or_cancelled_by_its_key(system, worker, counts, clock):
    called = []

    @worker.task("mail")
    async def send(to: str):
        called.append(to)

    await worker.prepare(system)
    delayed = send.options(delay_ms=1_000)
    await delayed.options(dedup_key="a").enqueue("old")
    await delayed.options(dedup_key="b").enqueue("unwanted")
    await send.replace("a", "new")
    await send.cancel("b")
    with pytest.raises(hq.InvalidInput):
        await send.replace("a", 5)

    clock.advance(1_000)
    async with worker.running(system):
        await counts(system.queue("mail"), completed=1)
    assert called == ["new"]


async def test_a_job_tells_how_far_it_is_and_how_it_failed(system, worker):
    reported = anyio.Event()

    @worker.task("mail", max_attempts=1, result_ms=60_000)
    async def send(to: str):
        await hq.current_message().report({"sent": 1})
        reported.set()
        raise ConnectionError("gone")

    async with worker.running(system):
        job = await send.enqueue("ada")
        with pytest.raises(hq.NotFinished):
            await job.result()
        await reported.wait()
        with pytest.raises(hq.JobFailed, match="ConnectionError: gone"):
            await job.result(wait_ms=60_000)
        assert (await job.outcome()).progress == {"sent": 1}


async def test_plain_functions_are_tasks_too(system, worker):
    @worker.task("sums", result_ms=60_000)
    def add(a: int, b: int = 2) -> int:
        return a + b

    async with worker.running(system):
        job = await add.enqueue(1)
        assert await job.result(wait_ms=60_000) == 3


async def test_a_worker_makes_the_queues_that_are_missing_and_leaves_the_others(system, worker):
    there = await system.create_queue("there", max_attempts=9)

    @worker.task("there")
    async def one(): ...

    @worker.task("missing")
    async def two(): ...

    worker.queue("there", max_attempts=1)
    worker.queue("missing", max_attempts=2)
    await worker.prepare(system)
    await worker.prepare(system)

    assert (await there.settings()).max_attempts == 9
    assert (await system.queue("missing").settings()).max_attempts == 2


async def test_a_worker_sets_its_schedules_when_it_starts(system, worker, clock, counts):
    called = []

    @worker.task("reports")
    async def report(kind: str):
        called.append(kind)

    worker.schedule("minutely", report, {"every_ms": 60_000}, kind="short")
    with pytest.raises(hq.InvalidInput):
        worker.schedule("wrong", report, {"every_ms": 60_000}, kind=5)
    for ticks in (1, 2):
        async with worker.running(system):
            [schedule] = await system.queue("reports").schedules()
            clock.advance(60_000)
            await counts(system.queue("reports"), completed=ticks)

    assert schedule.name == "minutely"
    assert called == ["short", "short"]


def test_tasks_are_enqueued_from_threads(worker):
    @worker.task("mail")
    async def send(to: str): ...

    with hq.blocking.open("memory:") as system:
        worker.attach(system)
        mail = system.create_queue("mail")
        accepted = send.enqueue_blocking("ada")
        assert mail.get(accepted.id).payload == {"to": "ada"}


async def test_a_task_needs_a_system(worker):
    @worker.task("mail")
    async def send(to: str): ...

    with pytest.raises(hq.NotAttached):
        await send.enqueue("ada")
    with pytest.raises(hq.NotAttached):
        send.enqueue_blocking("ada")


async def test_what_is_no_task_is_refused(worker):
    with pytest.raises(hq.InvalidInput, match="named parameters"):

        @worker.task("mail")
        async def send(*everything): ...

    @worker.task("mail")
    async def one(): ...

    with pytest.raises(hq.InvalidInput, match="two tasks named 'one'"):
        worker.task("mail", name="one")(one.call)
    with pytest.raises(hq.InvalidInput, match="first task"):
        worker.task("mail", concurrency=2)

    @worker.task("mail")
    def other(): ...

    with pytest.raises(hq.InvalidInput, match="all `async def` or all `def`"):
        worker.handlers()
