"""Making, finding, changing and deleting queues."""

from dataclasses import fields

import anyio
import pytest

import hq
from hq.domain.messages import Options
from hq.system.keywords import EnqueueKeywords, SettingsKeywords


async def test_a_queue_is_made_with_the_settings_given(system):
    retry = hq.RetryPolicy(backoff=hq.Backoff.FIXED, base_ms=500)
    queue = await system.create_queue("emails", max_attempts=3, lease_ms=1_000, retry=retry, groups="fifo")

    assert await queue.settings() == hq.Settings(
        max_attempts=3, lease_ms=1_000, retry=retry, groups=hq.Groups.FIFO
    )


async def test_making_a_queue_again_finds_it(system):
    await system.create_queue("emails", max_attempts=3)
    queue = await system.create_queue("emails", max_attempts=3)
    assert queue.name == "emails"
    assert len(await system.queues()) == 1


async def test_making_a_queue_again_with_other_settings_is_refused(system):
    await system.create_queue("emails", max_attempts=3)
    with pytest.raises(hq.QueueExists):
        await system.create_queue("emails", max_attempts=4)


@pytest.mark.parametrize(
    ("keyword", "closest"), [("max_attempt", "max_attempts"), ("leasems", "lease_ms"), ("group", "groups")]
)
async def test_an_unknown_setting_is_told_with_the_closest_known_one(system, queue, keyword, closest):
    with pytest.raises(hq.InvalidInput, match=rf"'{keyword}'; did you mean '{closest}'"):
        await system.create_queue("other", **{keyword: 1})
    with pytest.raises(hq.InvalidInput, match=rf"'{keyword}'; did you mean '{closest}'"):
        await queue.configure(**{keyword: 1})


@pytest.mark.parametrize(
    "wrong",
    [
        {"lease_ms": -1},
        {"groups": "sorted"},
        {"dedup_scope": None},
        {"retry": None},
        {"retry": "fixed"},
        {"enqueue_rate": 5},
        {"receive_rate": "5/s"},
        {"dead_letter_queue": "a..b"},
    ],
)
async def test_a_setting_of_the_wrong_kind_is_refused(system, wrong):
    with pytest.raises(hq.InvalidInput):
        await system.create_queue("emails", **wrong)
    assert await system.queues() == []


async def test_a_bad_name_is_refused_at_once(system):
    with pytest.raises(hq.InvalidInput):
        system.queue("a b")


async def test_a_handle_to_a_queue_that_is_not_there_costs_nothing_until_it_is_used(system):
    queue = system.queue("nobody")
    with pytest.raises(hq.QueueNotFound):
        await queue.enqueue(b"")
    with pytest.raises(hq.QueueNotFound):
        await queue.settings()


async def test_queues_are_listed_oldest_first(system):
    for name in ("b", "a", "c"):
        await system.create_queue(name)
    assert [queue.name for queue in await system.queues()] == ["b", "a", "c"]


async def test_a_deleted_queue_is_gone_and_its_name_is_free(system, queue):
    accepted = await queue.enqueue(b"old")
    await system.delete_queue("emails")
    with pytest.raises(hq.QueueNotFound):
        await queue.stats()

    await system.create_queue("emails")
    await queue.enqueue(b"new")
    with pytest.raises(hq.MessageNotFound):
        await queue.get(accepted.id)
    assert (await queue.stats()).ready == 1


async def test_configure_changes_what_it_names_and_leaves_the_rest(queue):
    await queue.configure(lease_ms=1_000)
    settings = await queue.configure(max_attempts=2, dedup_ms=5)

    assert settings == hq.Settings(lease_ms=1_000, max_attempts=2, dedup_ms=5)
    assert await queue.settings() == settings


async def test_changes_made_at_the_same_time_all_stay(queue):
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(lambda: queue.configure(lease_ms=1_000))
        tasks.start_soon(lambda: queue.configure(max_attempts=2))

    assert await queue.settings() == hq.Settings(lease_ms=1_000, max_attempts=2)


async def test_a_setting_that_is_fixed_is_refused(queue):
    with pytest.raises(hq.SettingFixed):
        await queue.configure(groups="fifo")


def test_the_keywords_are_those_of_the_domain():
    assert set(SettingsKeywords.__annotations__) == {field.name for field in fields(hq.Settings)}
    assert set(EnqueueKeywords.__annotations__) == {field.name for field in fields(Options)}
