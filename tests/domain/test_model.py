"""Any story, told to the real queue and to a naive one, ends the same.

The head is of two messages, checkpoints are cut anywhere, memory is shed and lost at any point.
"""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hq.domain import commands as c
from hq.domain.messages import Options
from hq.domain.settings import Backoff, DedupScope, Groups, Rate, RetryPolicy, Settings
from hq.domain.tasks import Scope
from tests.domain.twin import BY_ID, FOREIGN, Twin

small = st.integers(0, 30)
often_none = st.one_of(st.none(), st.none(), small)
names = st.sampled_from(["a", "b"])
maybe_name = st.one_of(st.none(), names)
rates = st.one_of(
    st.none(),
    st.none(),
    st.builds(Rate, limit=st.integers(1, 3), per_ms=st.integers(1, 20), burst=st.integers(1, 3)),
)
policies = st.builds(
    RetryPolicy,
    backoff=st.sampled_from(Backoff),
    base_ms=st.integers(0, 10),
    factor=st.integers(1, 3),
    cap_ms=st.integers(0, 30),
    jitter_percent=st.sampled_from([0, 0, 50]),
)
fields = {
    "max_attempts": st.one_of(st.none(), st.integers(1, 3)),
    "lease_ms": st.integers(0, 20),
    "retry": policies,
    "delay_ms": st.sampled_from([0, 0, 0, 5]),
    "ttl_ms": st.one_of(st.none(), st.none(), st.integers(1, 40)),
    "dedup_ms": st.sampled_from([0, 0, 25]),
    "concurrency": st.one_of(st.none(), st.integers(1, 3)),
    "concurrency_per_key": st.one_of(st.none(), st.integers(1, 2)),
    "capacity": st.one_of(st.none(), st.none(), st.integers(1, 6)),
    "enqueue_rate": rates,
    "receive_rate": rates,
    "max_payload_bytes": st.just(4),
    "failed_ms": st.sampled_from([0, 15, 1_000]),
}
queues = st.builds(
    Settings, **fields, groups=st.sampled_from(Groups), dedup_scope=st.sampled_from(DedupScope)
)
changes = st.fixed_dictionaries({}, optional=fields)


@st.composite
def options(draw):
    in_lane = draw(st.sampled_from(["none", "group", "key"]))
    return Options(
        priority=draw(st.sampled_from([None, None, 0, 7])),
        group=draw(names) if in_lane == "group" else None,
        concurrency_key=draw(names) if in_lane == "key" else None,
        dedup_key=draw(st.sampled_from([None, None, "k", "l"])),
        dedup_ms=draw(often_none),
        delay_ms=draw(often_none),
        ttl_ms=draw(st.one_of(st.none(), st.none(), st.integers(1, 30))),
        max_attempts=draw(st.one_of(st.none(), st.none(), st.integers(1, 2))),
        lease_ms=draw(often_none),
        retry=draw(st.one_of(st.none(), st.none(), policies)),
        result_ms=draw(st.one_of(st.none(), st.integers(1, 30))),
    )


payloads = st.sampled_from([b"", b"p", b"qq", b"too long"])
messages = st.integers(1, 8)
tokens = st.one_of(st.just(BY_ID), st.just(FOREIGN), st.integers(1, 4), st.integers(1, 2))
steps = st.one_of(
    st.builds(c.Enqueue, payload=payloads, options=options()),
    st.builds(c.Enqueue, payload=st.just(b"p"), options=options()),
    st.builds(c.Enqueue, payload=st.just(b"q"), options=options()),
    st.builds(c.Receive, limit=st.integers(1, 4), lease_ms=often_none),
    st.builds(c.Receive, limit=st.integers(1, 4)),
    st.builds(c.Complete, message=messages, token=tokens),
    st.builds(c.Complete, message=messages, token=tokens, result=st.sampled_from([None, b"1", b"[2]"])),
    st.builds(c.Progress, message=messages, token=tokens, progress=st.sampled_from([b"1", b"2"])),
    st.builds(c.Outcome, message=messages),
    st.builds(c.Retry, message=messages, token=tokens, delay_ms=often_none),
    st.builds(c.Fail, message=messages, token=tokens),
    st.builds(c.Release, message=messages, token=tokens),
    st.builds(c.Extend, message=messages, token=tokens, lease_ms=often_none),
    st.builds(c.Delete, message=messages),
    st.builds(c.DeleteByKey, dedup_key=st.sampled_from(["k", "l"]), group=maybe_name),
    st.builds(c.Replace, dedup_key=st.sampled_from(["k", "l"]), payload=payloads, group=maybe_name),
    st.builds(c.Requeue, message=messages),
    st.builds(c.Purge, scope=st.sampled_from(Scope)),
    st.sampled_from([c.Pause(), c.Resume(), c.Resume()]),
    st.builds(c.PauseGroup, group=names),
    st.builds(c.ResumeGroup, group=names),
    st.builds(c.Peek, limit=st.integers(1, 4)),
    st.just(c.Count()),
    st.tuples(st.just("configure"), changes),
    st.tuples(st.just("advance"), st.integers(0, 25)),
    st.tuples(st.just("advance"), st.integers(0, 25)),
    st.tuples(st.just("checkpoint_step"), st.integers(1, 3)),
    st.tuples(st.just("checkpoint"), st.integers(1, 3)),
    st.just(("shed", None)),
    st.just(("crash", None)),
)
stories = st.lists(steps, max_size=60)


def tell(twin: Twin, story) -> None:
    for step in story:
        match step:
            case ("advance", ms):
                twin.advance(ms)
            case ("configure", change):
                current = twin.reference.settings
                merged = {name: getattr(current, name) for name in current.__slots__} | change
                twin.ask(c.Configure(Settings(**merged)))
            case ("checkpoint_step" | "checkpoint" as verb, chunk):
                getattr(twin.queue, verb)(chunk)
            case ("shed" | "crash" as verb, _):
                getattr(twin.queue, verb)()
            case command:
                twin.ask(command)
    twin.ask(c.Count())
    twin.ask(c.Peek(10))
    for message in range(1, 9):
        twin.ask(c.Outcome(message))


@given(queues, stories)
@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_a_story_ends_as_the_reference_says(queue, story):
    tell(Twin(queue), story)


@pytest.mark.slow
@given(queues, stories)
@settings(max_examples=4_000, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_many_stories_end_as_the_reference_says(queue, story):
    tell(Twin(queue), story)
