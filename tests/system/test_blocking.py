"""hq.blocking: the same verbs for scripts and threads."""

import inspect
import logging
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

import hq
from hq import blocking
from tests.system.places import EMBEDDED

INTERRUPTED = """
import signal, hq

def interrupt(*_):
    raise KeyboardInterrupt

signal.signal(signal.SIGALRM, interrupt)
with hq.blocking.open("memory:") as system:
    queue = system.create_queue("emails")
    signal.setitimer(signal.ITIMER_REAL, 0.2)
    try:
        queue.receive(wait_ms=60_000)
    except KeyboardInterrupt:
        pass
    queue.enqueue("x")
    [message] = queue.receive()
    assert message.receives == 1
"""


@pytest.fixture
def system(url):
    with blocking.open(url) as opened:
        yield opened


@pytest.fixture
def queue(system):
    return system.create_queue("emails", retry=hq.RetryPolicy(backoff=hq.Backoff.NONE))


def public(kind):
    return {name for name in vars(kind) if not name.startswith("_")}


@pytest.mark.parametrize(
    ("kind", "twin", "inner"),
    [
        (hq.System, blocking.System, set()),
        (hq.Queue, blocking.Queue, set()),
        (hq.Message, blocking.Message, {"consumed", "lease"}),
    ],
)
def test_every_verb_is_there_with_the_same_arguments(kind, twin, inner):
    assert public(kind) - public(twin) - inner == set()
    for name in public(kind) & public(twin):
        if inspect.isfunction(vars(kind)[name]):
            mine, theirs = inspect.signature(vars(twin)[name]), inspect.signature(vars(kind)[name])
            assert list(mine.parameters) == list(theirs.parameters)


def test_a_system_is_opened_with_the_same_arguments():
    assert list(inspect.signature(blocking.open).parameters) == list(inspect.signature(hq.open).parameters)


def test_a_message_goes_through(system, queue):
    accepted = queue.enqueue({"to": "a@example.com"}, priority=3, headers={"h": "v"})
    [message] = queue.receive(holder="script")

    assert (message.id, message.payload, message.priority) == (accepted.id, {"to": "a@example.com"}, 3)
    assert (message.headers, message.attempts, message.receives) == ({"h": "v"}, 1, 1)
    assert message.complete().state == message.state == "completed"
    assert queue.receive() == []


@pytest.mark.parametrize("verb", ["complete", "retry", "fail", "release", "extend", "delete"])
def test_messages_are_settled_by_message_by_id_and_by_list(queue, verb):
    queue.enqueue_many(["a", "b", "c", "d"])
    first, second, third, fourth = queue.receive(4)

    assert getattr(queue, verb)(first).id == first.id
    assert getattr(queue, verb)(second.id).id == second.id
    results = getattr(queue, verb)([third, fourth, "no id"])
    assert [result.id for result in results[:2]] == [third.id, fourth.id]
    assert isinstance(results[2], hq.InvalidInput)


@pytest.mark.parametrize("verb", ["complete", "retry", "fail", "release", "extend"])
def test_a_message_settles_itself(queue, verb):
    queue.enqueue(b"x")
    [message] = queue.receive()
    assert getattr(message, verb)().state == message.state


def test_the_verbs_of_an_operator(system, queue):
    accepted = queue.enqueue("a", dedup_key="k")
    assert [seen.id for seen in queue.peek()] == [accepted.id]
    assert queue.get(accepted.id).payload == "a"
    assert queue.explain(accepted.id).blockers == ()
    assert queue.replace("k", "b").id == accepted.id
    queue.pause("why not")
    assert queue.stats().paused == "why not"
    queue.resume()
    queue.pause_group("g")
    queue.resume_group("g")
    assert queue.configure(lease_ms=1_000).lease_ms == queue.settings().lease_ms == 1_000
    [message] = queue.receive()
    message.fail()
    [letter] = queue.dead_letters()
    assert queue.requeue(letter).state == "ready"
    assert [seen.payload for seen in queue.browse(after=None)] == ["b"]
    assert queue.browse(after=message) == []
    assert queue.delete_by_key("k").id == accepted.id
    assert (queue.purge(), queue.purge_dead_letters()) == (0, 0)
    assert [one.name for one in system.queues()] == [system.queue("emails").name]
    system.delete_queue("emails")
    assert system.queues() == []


def test_schedules_and_tasks(system, queue):
    system.create_queue("other")
    schedule = queue.set_schedule("report", "x", every_ms=3_600_000, priority=1)
    assert [one.name for one in queue.schedules()] == [schedule.name] == ["report"]
    queue.remove_schedule("report")
    slow = hq.Rate(1, per_ms=3_600_000)
    for start in (
        lambda: queue.requeue_dead_letters(group="g", reason="failed", rate=slow),
        lambda: queue.move_waiting("other", group="g", rate=slow),
        lambda: queue.move_dead_letters("other", group="g", reason="failed", rate=slow),
        lambda: queue.delete_waiting(group="g", rate=slow),
        lambda: queue.delete_dead_letters(group="g", reason="failed", rate=slow),
    ):
        assert start() > 0
    queue.enqueue_many(["a", "b"])
    number = queue.delete_waiting(rate=slow)
    assert number in [task.number for task in queue.tasks()]
    assert queue.cancel_task(number) < 2


def test_a_message_received_under_a_prefix_knows_its_queue(system, queue):
    queue.enqueue("x")
    [message] = system.receive_under("", 5, wait_ms=1_000, lease_ms=5_000, holder="script")
    assert message.queue.name == "emails"
    assert message.queue.complete(message).state == "completed"
    assert system.receive_under("") == []


def test_a_system_has_the_limits_it_is_opened_with(place, url):
    if place not in EMBEDDED:
        pytest.skip("limits are of the process that holds the store, and are given there")
    with blocking.open(url, limits=hq.Limits(waiters=0)) as system:
        queue = system.create_queue("emails")
        with pytest.raises(hq.Overloaded):
            queue.receive(wait_ms=60_000)


def test_an_error_comes_over_as_itself(system):
    with pytest.raises(hq.QueueNotFound):
        system.queue("nobody").stats()
    with pytest.raises(hq.InvalidInput, match="did you mean 'lease_ms'"):
        system.create_queue("other", lease=1)


def test_a_block_completes_its_message_or_retries_it_and_tells(queue):
    queue.enqueue("a")
    [message] = queue.receive()
    with pytest.raises(ZeroDivisionError), message:
        raise ZeroDivisionError
    [message] = queue.receive()
    with message:
        pass
    assert (message.state, message.attempts) == ("completed", 2)


def test_a_loop_consumes_and_goes_on_after_an_error(queue, caplog):
    queue.enqueue_many(["a", "bad", "c"])
    done = []
    for message in queue.consume(concurrency=1, wait_ms=0):
        with message:
            if message.payload == "bad" and message.attempts == 1:
                raise ValueError("not yet")
            done.append(message.payload)

    assert sorted(done) == ["a", "bad", "c"]
    assert [record.levelno for record in caplog.records] == [logging.WARNING]


def test_leaving_the_loop_gives_back_what_was_not_handed_out(queue):
    queue.enqueue_many(["a", "b", "c"])
    for message in queue.consume():
        with message:
            break
    stats = queue.stats()
    assert (stats.completed, stats.ready, stats.leased) == (1, 2, 0)


def test_bad_terms_are_refused_before_the_loop(queue):
    with pytest.raises(hq.InvalidInput):
        queue.consume(concurrency=0)


def test_threads_share_a_system(queue):
    queue.enqueue_many(list(range(100)))

    def work(_):
        found = []
        for message in queue.consume(concurrency=3, wait_ms=0):
            with message:
                found.append(message.payload)
        return found

    with ThreadPoolExecutor(4) as threads:
        found = [payload for part in threads.map(work, range(4)) for payload in part]
    assert sorted(found) == list(range(100))
    assert queue.stats().completed == 100


def test_a_thread_that_waits_gets_nothing_when_the_system_is_closed(url):
    outcomes = []

    def wait():
        try:
            outcomes.append(queue.receive(wait_ms=60_000))
        except hq.Closed:
            outcomes.append([])

    with blocking.open(url) as system:
        queue = system.create_queue("emails")
        threads = [threading.Thread(target=wait) for _ in range(5)]
        for thread in threads:
            thread.start()
    for thread in threads:
        thread.join(timeout=10)
    assert outcomes == [[]] * 5


def test_whoever_is_interrupted_while_it_waits_takes_nothing():
    run = subprocess.run(
        [sys.executable, "-c", INTERRUPTED], capture_output=True, text=True, timeout=60, check=False
    )
    assert (run.returncode, run.stderr) == (0, "")


def test_after_it_is_closed_every_verb_says_so(url):
    with blocking.open(url) as system:
        queue = system.create_queue("emails")
        system.close()
        with pytest.raises(hq.Closed):
            queue.stats()
    with pytest.raises(hq.Closed):
        queue.stats()


def test_an_error_of_the_block_comes_out_as_itself(url):
    with pytest.raises(ZeroDivisionError), blocking.open(url):
        raise ZeroDivisionError


def test_an_unsupported_url_is_told():
    with pytest.raises(hq.UnsupportedUrl), blocking.open("redis://"):
        pass


def test_a_message_shows_neither_token_nor_payload(queue):
    queue.enqueue("secret")
    [message] = queue.receive()
    assert "secret" not in repr(message)
    assert message.token.hex() not in repr(message)
