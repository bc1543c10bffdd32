"""Receipts: a lease in a UUID, which says what a token must be told with, the message.

The 122 free bits of a UUIDv8 hold, high to low, a token of 8 bytes and the sequence (58), as message ids do.
"""

from __future__ import annotations

import re
import uuid

from hq.domain.ids import MAX_SEQUENCE, SEQUENCE_BITS
from hq.domain.tokens import FEWEST_TOKEN_BYTES as TOKEN_BYTES

_UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}").fullmatch
_LOW_BITS = 62
_MIDDLE_BITS = 12
_VERSION = 0x8
_VARIANT = 0b10


def receipt_of(sequence: int, token: bytes) -> str:
    """The receipt of a lease."""
    bits = int.from_bytes(token) << SEQUENCE_BITS | sequence
    low, high = bits & (1 << _LOW_BITS) - 1, bits >> _LOW_BITS
    middle, first = high & (1 << _MIDDLE_BITS) - 1, high >> _MIDDLE_BITS
    return str(uuid.UUID(int=((first << 4 | _VERSION) << _MIDDLE_BITS | middle) << 64 | _VARIANT << 62 | low))


def is_receipt(text: str) -> bool:
    """Whether this is how a receipt is written, in small letters."""
    return _UUID(text) is not None


def lease_of(receipt: str) -> tuple[int, bytes] | None:
    """The sequence and the token of a receipt; None if it was none of hq's."""
    bits = uuid.UUID(receipt).int
    if bits >> 76 & 0xF != _VERSION or bits >> 62 & 0b11 != _VARIANT:
        return None
    middle, first = bits >> 64 & (1 << _MIDDLE_BITS) - 1, bits >> 80
    whole = (first << _MIDDLE_BITS | middle) << _LOW_BITS | bits & (1 << _LOW_BITS) - 1
    return whole & MAX_SEQUENCE, (whole >> SEQUENCE_BITS).to_bytes(TOKEN_BYTES)
