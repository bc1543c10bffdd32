"""Schedules: each tick yields its message once, and a missed one what the policy says."""

import pytest

from hq.domain.commands import Complete, ListSchedules, Pause, RemoveSchedule, SetSchedule, Tick
from hq.domain.messages import Options
from hq.domain.replies import Done
from hq.domain.schedules import MAX_CATCH_UP, MAX_SCHEDULES, Missed, Planned, Schedule
from hq.domain.settings import Rate
from hq.domain.timing import wake_at
from hq.errors import InvalidInput
from hq.testing import MemoryQueue

EVERY_MS = 1_000


def scheduled(queue, **how):
    """A schedule named `report`, every second from the next on; the instant of its first tick."""
    first = queue.clock.now + EVERY_MS
    options = Options(**how.pop("options", {}))
    schedule = Schedule("report", "every 1 s", b"work", options, **how)
    queue.ask(SetSchedule(schedule, first))
    return first


def tick(queue, *due):
    """What the calendar above asks when these are due; how many messages came of it."""
    return queue.ask(Tick("report", due, due[-1] + EVERY_MS)).count


def ticks_received(queue):
    """Which ticks the messages that are received came from."""
    return [int(dict(delivery.options.headers)["hq-tick-at"]) for delivery in queue.receive()]


def test_a_tick_yields_one_message(new_queue):
    queue = new_queue()
    first = scheduled(queue)
    queue.clock.now = first

    assert tick(queue, first) == 1
    assert queue.received() == "work"


def test_a_tick_that_comes_twice_yields_one_message(new_queue):
    queue = new_queue()
    first = scheduled(queue)
    queue.clock.now = first
    tick(queue, first)

    assert tick(queue, first) == 0
    assert queue.stats() == {"ready": 1, "enqueued": 1}


def test_a_tick_survives_a_crash_and_is_not_repeated_after_it(new_queue):
    queue = new_queue()
    first = scheduled(queue)
    queue.clock.now = first
    tick(queue, first)

    queue.crash()

    assert tick(queue, first) == 0
    assert ticks_received(queue) == [first]


def test_ticks_that_overlap_with_earlier_ones_yield_only_the_new(new_queue):
    queue = new_queue()
    first = scheduled(queue)
    queue.clock.now = first
    tick(queue, first)
    queue.clock.advance(EVERY_MS)

    assert tick(queue, first, first + EVERY_MS) == 1
    assert ticks_received(queue) == [first, first + EVERY_MS]


def test_a_tick_before_the_schedule_began_yields_nothing(new_queue):
    queue = new_queue()
    first = scheduled(queue)
    queue.clock.now = first

    assert tick(queue, first - EVERY_MS) == 0


def test_a_message_says_which_schedule_and_tick_it_came_from(new_queue):
    queue = new_queue()
    first = scheduled(queue, options={"headers": (("own", "header"),), "priority": 3})
    queue.clock.now = first + 7
    tick(queue, first)

    delivery = queue.take()

    assert dict(delivery.options.headers) == {
        "own": "header",
        "hq-schedule": "report",
        "hq-tick-at": str(first),
    }
    assert delivery.options.priority == 3


@pytest.mark.parametrize(
    ("policy", "yields"),
    [
        ({"missed": Missed.SKIP}, [4]),
        ({"missed": Missed.RUN_ONCE}, [4]),
        ({"missed": Missed.CATCH_UP, "catch_up": 2}, [3, 4]),
        ({"missed": Missed.CATCH_UP, "catch_up": 100}, [0, 1, 2, 3, 4]),
    ],
)
def test_when_some_ticks_were_missed_and_the_last_is_on_time(new_queue, policy, yields):
    queue = new_queue()
    first = scheduled(queue, **policy, grace_ms=EVERY_MS - 1)
    due = [first + n * EVERY_MS for n in range(5)]
    queue.clock.now = due[-1]

    assert tick(queue, *due) == len(yields)
    assert ticks_received(queue) == [due[n] for n in yields]


@pytest.mark.parametrize(
    ("policy", "yields"),
    [
        ({"missed": Missed.SKIP}, []),
        ({"missed": Missed.RUN_ONCE}, [4]),
        ({"missed": Missed.CATCH_UP, "catch_up": 3}, [2, 3, 4]),
    ],
)
def test_when_all_ticks_were_missed(new_queue, policy, yields):
    queue = new_queue()
    first = scheduled(queue, **policy, grace_ms=0)
    due = [first + n * EVERY_MS for n in range(5)]
    queue.clock.now = due[-1] + 1

    assert tick(queue, *due) == len(yields)
    assert ticks_received(queue) == [due[n] for n in yields]


def test_a_skipped_tick_is_dealt_with_and_does_not_come_again(new_queue):
    queue = new_queue()
    first = scheduled(queue, missed=Missed.SKIP, grace_ms=0)
    queue.clock.now = first + 1
    tick(queue, first)

    assert tick(queue, first) == 0


def test_a_tick_within_its_grace_is_on_time(new_queue):
    queue = new_queue()
    first = scheduled(queue, missed=Missed.SKIP, grace_ms=50)
    queue.clock.now = first + 50

    assert tick(queue, first) == 1


def test_a_dedup_key_keeps_a_job_from_piling_up_behind_itself(new_queue):
    queue = new_queue()
    first = scheduled(queue, options={"dedup_key": "report"})
    queue.clock.now = first
    tick(queue, first)
    queue.clock.advance(EVERY_MS)

    assert tick(queue, first + EVERY_MS) == 0
    queue.ask(Complete(queue.take().message))
    queue.clock.advance(EVERY_MS)
    assert tick(queue, first + 2 * EVERY_MS) == 1


def test_with_a_dedup_key_several_ticks_at_once_yield_one_message(new_queue):
    queue = new_queue()
    first = scheduled(queue, missed=Missed.CATCH_UP, catch_up=5, options={"dedup_key": "report"})
    queue.clock.now = first + EVERY_MS

    assert tick(queue, first, first + EVERY_MS) == 1


def test_a_tick_ignores_capacity_rate_and_pause(new_queue):
    queue = new_queue(capacity=1, enqueue_rate=Rate(1))
    queue.enqueue()
    queue.ask(Pause())
    first = scheduled(queue)
    queue.clock.now = first

    assert tick(queue, first) == 1
    assert queue.stats() == {"ready": 2, "enqueued": 2}


def test_a_message_of_a_tick_is_a_message_like_any_other(new_queue):
    queue = new_queue(ttl_ms=100, delay_ms=10)
    first = scheduled(queue)
    queue.clock.now = first
    tick(queue, first)

    assert queue.received() == ""
    queue.clock.advance(10)
    assert queue.received() == "work"


def test_a_removed_schedule_ticks_no_more(new_queue):
    queue = new_queue()
    first = scheduled(queue)
    queue.ask(RemoveSchedule("report"))
    queue.clock.now = first

    assert queue.refusal(Tick("report", (first,), first + EVERY_MS)) == "schedule_not_found"
    assert queue.stats() == {}


def test_a_schedule_of_the_same_name_replaces_the_first(new_queue):
    queue = new_queue()
    scheduled(queue)
    later = queue.clock.now + 5 * EVERY_MS
    queue.ask(SetSchedule(Schedule("report", "later", b"other"), later))
    queue.clock.now = later

    assert tick(queue, later - EVERY_MS, later) == 1
    assert queue.received() == "other"


def test_a_schedule_that_is_set_again_as_it_is_keeps_its_next_tick(new_queue):
    queue = new_queue()
    first = scheduled(queue)
    queue.clock.advance(EVERY_MS - 1)

    scheduled(queue)

    assert [planned.next_at for planned in queue.ask(ListSchedules())] == [first]


def test_a_schedule_that_changes_only_what_it_enqueues_keeps_its_next_tick(new_queue):
    queue = new_queue()
    first = scheduled(queue)
    queue.clock.advance(EVERY_MS - 1)

    scheduled(queue, options={"priority": 3})

    [planned] = queue.ask(ListSchedules())
    assert (planned.next_at, planned.schedule.options.priority) == (first, 3)


def test_a_schedule_that_is_set_is_told_as_it_then_is(new_queue):
    queue = new_queue()
    first = scheduled(queue)
    queue.clock.now = first
    tick(queue, first)

    schedules = [Schedule("report", spec, b"work") for spec in ("every 1 s", "every 2 s")]
    told = [queue.ask(SetSchedule(schedule, first + 99)) for schedule in schedules]

    assert told == [
        Planned(schedules[0], first + EVERY_MS, first),
        Planned(schedules[1], first + 99, first),
    ]
    assert queue.ask(ListSchedules()) == told[1:]


def test_schedules_are_listed_by_name_with_their_last_and_next_tick(new_queue):
    queue = new_queue()
    first = scheduled(queue)
    queue.ask(SetSchedule(Schedule("a", "every 5 s"), 77))
    queue.clock.now = first
    tick(queue, first)

    listed = queue.ask(ListSchedules())

    report = Schedule("report", "every 1 s", b"work")
    assert listed == [Planned(Schedule("a", "every 5 s"), 77), Planned(report, first + EVERY_MS, first)]


def test_a_list_of_schedules_is_a_copy(new_queue):
    queue = new_queue()
    scheduled(queue)
    listed = queue.ask(ListSchedules())

    listed[0].next_at = 0

    assert queue.ask(ListSchedules()) != listed


def test_a_schedule_belongs_to_its_name(new_queue):
    queue = new_queue()

    assert queue.refusal(RemoveSchedule("nobody")) == "schedule_not_found"
    assert queue.refusal(Tick("nobody", (1,), 2)) == "schedule_not_found"
    assert queue.refusal(RemoveSchedule(["no", "name"])) == "invalid_input"


def test_a_queue_wakes_for_its_next_tick(new_queue):
    queue = new_queue()
    first = scheduled(queue)
    queue.ask(Tick("report", (), first))

    assert wake_at(queue.state) <= first


def test_no_tick_is_due_is_nothing_to_do(new_queue):
    queue = new_queue()
    first = scheduled(queue)

    assert queue.ask(Tick("report", (), first)) == Done()


def test_a_payload_that_is_too_large_for_the_queue_cannot_be_scheduled(new_queue):
    queue = new_queue(max_payload_bytes=3)

    assert queue.refusal(SetSchedule(Schedule("report", "x", b"long"), 0)) == "payload_too_large"
    assert queue.refusal(RemoveSchedule("report")) == "schedule_not_found"


def test_too_many_ticks_at_once_are_refused(new_queue):
    queue = new_queue()
    first = scheduled(queue)
    due = tuple(range(first, first + MAX_CATCH_UP + 1))

    assert queue.refusal(Tick("report", due, due[-1])) == "invalid_input"
    assert queue.stats() == {}


def test_a_queue_has_only_so_many_schedules():
    queue = MemoryQueue()
    for number in range(MAX_SCHEDULES):
        queue.ask(SetSchedule(Schedule(str(number), "x"), 0))

    with pytest.raises(InvalidInput):
        queue.ask(SetSchedule(Schedule("one more", "x"), 0))
    queue.ask(SetSchedule(Schedule("0", "changed"), 0))


@pytest.mark.parametrize(
    "wrong",
    [
        {"name": ""},
        {"name": "x" * 129},
        {"catch_up": 0},
        {"catch_up": MAX_CATCH_UP + 1},
        {"grace_ms": -1},
        {"options": Options(headers=tuple((str(n), "") for n in range(63)))},
    ],
)
def test_a_malformed_schedule_cannot_be_made(wrong):
    with pytest.raises(InvalidInput):
        Schedule(**{"name": "report", "spec": "x", **wrong})
