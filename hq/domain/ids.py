"""Message ids: a UUIDv8 that says which store, queue and sequence, so no lookup finds a message's queue.

The 122 free bits of a UUIDv8 hold, high to low, incarnation (32), queue number (32) and sequence (58).
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from functools import lru_cache
from typing import NamedTuple

from hq.errors import InvalidInput, MessageNotFound

SEQUENCE_BITS = 58
MAX_SEQUENCE = (1 << SEQUENCE_BITS) - 1
NO_ID = "a message id is a UUID"
_VERSION = 0x8
_VARIANT = 0b10
_USUAL = 36


class MessageId(NamedTuple):
    """Where a message was enqueued: the store's incarnation, the queue's number, the sequence."""

    incarnation: int
    queue: int
    sequence: int

    def __str__(self) -> str:
        return id_text(self.incarnation, self.queue, self.sequence)

    @classmethod
    def parse(cls, text: str) -> MessageId:
        """The id in this text, else InvalidInput."""
        try:
            if len(text) == _USUAL and text[8::5][:4] == "----":
                incarnation, queue = _place_of(text[:18])
                low = int.from_bytes(bytes.fromhex(text[19:23] + text[24:]))
                if low >> 62 == _VARIANT:
                    return cls(incarnation, queue | low >> SEQUENCE_BITS & 0xF, low & MAX_SEQUENCE)
                raise MessageNotFound
            return cls.parse(str(uuid.UUID(text)))
        except (ValueError, AttributeError, TypeError):
            raise InvalidInput(NO_ID) from None


# All ids of a queue begin alike, so that their beginning is made and read once.


def id_text(incarnation: int, queue: int, sequence: int) -> str:
    """An id as text, for those who need no more of it."""
    head, bits = _head_of(incarnation, queue)
    tail = f"{bits | sequence:016x}"
    return f"{head}-{tail[:4]}-{tail[4:]}"


@lru_cache(maxsize=4_096)
def _head_of(incarnation: int, queue: int) -> tuple[str, int]:
    """The first 18 signs of a queue's ids, and the bits before their sequence."""
    text = f"{incarnation << 16 | queue >> 16:012x}"
    return f"{text[:8]}-{text[8:]}-8{queue >> 4 & 0xFFF:03x}", _VARIANT << 62 | (queue & 0xF) << SEQUENCE_BITS


@lru_cache(maxsize=4_096)
def _place_of(head: str) -> tuple[int, int]:
    """The incarnation and the queue in the first 18 signs of an id; four bits of the queue are not there."""
    octets = uuid.UUID(f"{head}-8000-000000000000").bytes
    if octets[6] >> 4 != _VERSION:
        raise MessageNotFound
    queue = int.from_bytes(octets[4:6]) << 16 | (int.from_bytes(octets[6:8]) & 0xFFF) << 4
    return int.from_bytes(octets[:4]), queue


def sequence_of(message_id: MessageId, queue: int, incarnation: int, older: Mapping[int, int]) -> int:
    """The sequence an id names in this queue.

    `older` holds the last sequence that was restored under each former incarnation: later ones of that
    incarnation were lost with it and are not found.
    """
    known = message_id.queue == queue and (
        message_id.incarnation == incarnation or message_id.sequence <= older.get(message_id.incarnation, 0)
    )
    if not known:
        raise MessageNotFound
    return message_id.sequence


def sequence_in(text: str, queue: int, incarnation: int, older: Mapping[int, int]) -> int:
    """The same of an id as text; one of this queue and incarnation is not parsed further than it must be."""
    head, bits = _head_of(incarnation, queue)
    if len(text) == _USUAL and text[:18] == head and text[18] == text[23] == "-":
        try:
            low = int.from_bytes(bytes.fromhex(text[19:23] + text[24:]))
        except ValueError:
            raise InvalidInput(NO_ID) from None
        if low ^ bits <= MAX_SEQUENCE:
            return low & MAX_SEQUENCE
    return sequence_of(MessageId.parse(text), queue, incarnation, older)
