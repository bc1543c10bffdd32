"""Stored events as columns say what the events say, of every kind there is."""

from hq.backends.codec import encode_events
from hq.backends.port import JournalRow
from hq.domain.events import Enqueued, MessageEvent
from hq.domain.ids import MessageId
from hq.tables.arrays import INSTANT
from hq.tables.events import SCHEMA, events_batch
from hq.tables.told import KINDS
from tests.backends.samples import EVENTS

INCARNATION, QUEUE = 0xFEDCBA98, 0x12345678


def test_an_event_of_every_kind_is_a_row():
    assert {type(event) for event in EVENTS} == set(KINDS)
    first, last = EVENTS[0].sequence, EVENTS[-1].sequence
    row = JournalRow(7, QUEUE, 1, first, last, encode_events(QUEUE, 1, EVENTS))

    # Instants of the samples are beyond what Python's own can say.
    columns = [field.name for field in SCHEMA if field.type != INSTANT]
    rows = events_batch([row], {QUEUE: "jobs"}, INCARNATION, columns).to_pylist()

    for event, found in zip(EVENTS, rows, strict=True):
        message = event.sequence if isinstance(event, Enqueued) else getattr(event, "message", None)
        wanted = None if message is None else str(MessageId(INCARNATION, QUEUE, message))
        assert (found["position"], found["queue"], found["message_id"]) == (7, "jobs", wanted)
        assert (found["event"], found["sequence"]) == (KINDS[type(event)], event.sequence)
        for name in ("attempts", "receives", "holder", "reason", "error", "payload", "origin_id"):
            assert found[name] == getattr(event, name, None), (event, name)
        assert (found["detail"] is None) == isinstance(event, Enqueued | MessageEvent)
