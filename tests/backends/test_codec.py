"""Bytes and back: equal or told, never something else."""

from dataclasses import fields, replace
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hq.backends import codec
from hq.domain.events import Enqueued, Event, Received
from hq.domain.messages import NO_PRIORITY, PLAIN, Attempt, Options, State
from hq.domain.schedules import Schedule
from hq.domain.settings import Rate, RetryPolicy, Settings
from hq.domain.tasks import Scope, Task
from hq.errors import JournalDamaged, RowDamaged, SchemaTooNew, SnapshotDamaged
from tests.backends.samples import EVENTS, FULL_ROW, HISTORY, SETTINGS, SNAPSHOT, columns, row

NUMBERS = st.integers(min_value=-(1 << 63), max_value=(1 << 63) - 1)
NATURAL = st.integers(min_value=1, max_value=1 << 57)
TEXTS = st.text(max_size=20)
SPANS = st.integers(min_value=1, max_value=86_400_000)

st.register_type_strategy(int, NUMBERS)
st.register_type_strategy(str, TEXTS)
POLICIES = st.builds(
    RetryPolicy, base_ms=SPANS, factor=st.integers(1, 100), cap_ms=SPANS, jitter_percent=st.integers(0, 100)
)
RATES = st.builds(Rate, limit=st.integers(1, 1_000_000), per_ms=SPANS, burst=st.integers(1, 1_000_000))
OPTIONS = st.builds(
    Options,
    content_type=TEXTS,
    headers=st.lists(st.tuples(TEXTS, TEXTS), max_size=3).map(tuple),
    priority=st.none() | st.integers(-(1 << 15), (1 << 15) - 1),
    group=st.none() | TEXTS,
    concurrency_key=st.none(),
    dedup_key=st.none() | TEXTS,
    dedup_ms=st.none() | SPANS,
    delay_ms=st.none() | SPANS,
    ttl_ms=st.none() | SPANS,
    max_attempts=st.none() | st.integers(1, 1_000_000),
    lease_ms=st.none() | SPANS,
    retry=st.none() | POLICIES,
)
SETTINGS_OF_ALL_KINDS = st.builds(
    Settings,
    max_attempts=st.none() | st.integers(1, 1_000_000),
    lease_ms=SPANS,
    retry=POLICIES,
    delay_ms=SPANS,
    ttl_ms=st.none() | SPANS,
    dedup_ms=SPANS,
    concurrency=st.none() | st.integers(1, 1_000_000),
    concurrency_per_key=st.none(),
    capacity=st.none() | st.integers(1, 1 << 50),
    enqueue_rate=st.none() | RATES,
    receive_rate=st.none() | RATES,
    max_payload_bytes=st.integers(1, 1 << 20),
    failed_ms=SPANS,
)
SCHEDULES = st.builds(
    Schedule,
    name=st.text(min_size=1, max_size=9),
    options=st.just(PLAIN),
    catch_up=st.integers(1, 9),
    grace_ms=SPANS,
)
TASKS = st.builds(Task, rate=st.none() | RATES)
SPECIAL = {
    Options: OPTIONS,
    Settings: SETTINGS_OF_ALL_KINDS,
    Schedule: SCHEDULES,
    Task: TASKS,
    tuple[Attempt, ...]: st.lists(st.builds(Attempt), max_size=2).map(tuple),
}
for hint, strategy in SPECIAL.items():
    if isinstance(hint, type):
        st.register_type_strategy(hint, strategy)


def any_event(cls):
    """Any event of this kind, with the sequence it is given."""
    special = {"sequence": NATURAL}
    if "history" in {field.name for field in fields(cls)}:
        special["history"] = SPECIAL[tuple[Attempt, ...]]
    return st.builds(cls, **special)


def reread(queue, epoch, events):
    blob = codec.encode_events(queue, epoch, events)
    return codec.decode_events(queue, epoch, events[0].sequence, events[-1].sequence, blob)


@pytest.mark.parametrize("cls", get_args(Event), ids=lambda cls: cls.__name__)
def test_any_event_comes_back_equal(cls):
    @given(event=any_event(cls), queue=NATURAL, epoch=NATURAL)
    def comes_back(event, queue, epoch):
        assert reread(queue, epoch, [event]) == [event]

    comes_back()


def test_a_batch_of_every_kind_comes_back_equal():
    assert reread(3, 1, EVENTS) == EVENTS


def test_a_snapshot_and_settings_come_back_equal():
    assert codec.decode_snapshot(3, SNAPSHOT.sequence, codec.encode_snapshot(3, SNAPSHOT)) == SNAPSHOT
    assert codec.decode_settings(3, codec.encode_settings(3, SETTINGS)) == SETTINGS


def row_columns(message, queue=1):
    return [
        message.sequence, message.state.value, message.rank, message.available_at, message.place,
        message.as_of, message.payload, codec.payload_check(queue, message.sequence, message.payload),
        codec.encode_row(queue, message),
    ]  # fmt: skip


@pytest.mark.parametrize("message", [FULL_ROW, row(1), row(2, history=HISTORY, state=State.MOVING)])
def test_a_row_comes_back_equal(message):
    assert columns(codec.decode_row(1, row_columns(message))) == columns(message)


def test_a_batch_whose_sequences_do_not_follow_each_other_is_not_written():
    with pytest.raises(AssertionError):
        codec.encode_events(1, 1, [EVENTS[0], EVENTS[2]])


# Size: what a message costs in the journal.


def test_plain_options_cost_one_byte():
    plain = Enqueued(1, 1, b"", PLAIN, NO_PRIORITY, 1, None, None, 1)

    said = replace(plain, options=Options(priority=0))

    assert len(codec.encode_events(1, 1, [said])) - len(codec.encode_events(1, 1, [plain])) == 2


def test_a_receive_costs_less_than_eighty_bytes():
    at = 1_753_000_000_000
    received = Received(1_000_000, at, 999_999, 1, 1, bytes(32), None, at + 30_000)

    assert len(codec.encode_events(1, 1, [received])) < 80


# Damage.

BLOB = codec.encode_events(3, 1, EVENTS)
LAST = EVENTS[-1].sequence


def test_any_flipped_bit_of_a_batch_is_told():
    events = EVENTS[:5]
    blob = codec.encode_events(3, 1, events)
    for place in range(len(blob) * 8):
        damaged = bytearray(blob)
        damaged[place // 8] ^= 1 << place % 8
        with pytest.raises(JournalDamaged):
            codec.decode_events(3, 1, 1, 5, bytes(damaged))


@pytest.mark.parametrize("length", [0, 1, 4, 5, 6, len(BLOB) // 2, len(BLOB) - 1])
def test_a_batch_that_is_cut_short_is_told(length):
    with pytest.raises(JournalDamaged):
        codec.decode_events(3, 1, 1, LAST, BLOB[:length])


@pytest.mark.parametrize("place", [(4, 1, 1, LAST), (3, 2, 1, LAST), (3, 1, 2, LAST), (3, 1, 1, LAST + 1)])
def test_a_batch_in_the_place_of_another_is_told(place):
    with pytest.raises(JournalDamaged):
        codec.decode_events(*place, BLOB)


@given(st.binary(max_size=100))
def test_noise_is_no_batch(noise):
    with pytest.raises(JournalDamaged):
        codec.decode_events(3, 1, 1, LAST, noise)


def test_a_damaged_snapshot_is_told():
    blob = bytearray(codec.encode_snapshot(3, SNAPSHOT))
    blob[-1] ^= 1

    with pytest.raises(SnapshotDamaged):
        codec.decode_snapshot(3, SNAPSHOT.sequence, bytes(blob))


@pytest.mark.parametrize("column", range(9))
def test_a_row_with_any_damaged_column_is_told(column):
    damaged = row_columns(FULL_ROW)
    value = damaged[column]
    damaged[column] = (
        "waiting" if isinstance(value, str) else value[:-1] if isinstance(value, bytes) else value + 1
    )

    with pytest.raises(RowDamaged):
        codec.decode_row(1, damaged)


def test_what_a_newer_version_wrote_is_not_guessed_at(monkeypatch):
    monkeypatch.setattr(codec, "VERSION", 2)
    newer = codec.encode_events(3, 1, EVENTS)
    monkeypatch.undo()

    with pytest.raises(SchemaTooNew):
        codec.decode_events(3, 1, 1, LAST, newer)


def test_every_kind_has_a_sample_with_nothing_left_to_its_default():
    assert {type(event) for event in EVENTS} == set(get_args(Event))
    assert set(SNAPSHOT.purged) == set(Scope)
