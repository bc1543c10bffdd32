"""Tokens: proof of a lease. A queue keeps only their hashes, so that no copy of it holds a lease.

A token is 16 random bytes: too many to try, so a fast hash is enough. blake2s is the fastest of the strong
ones for so few bytes, because it needs no OpenSSL context. A receiver may ask for as few as 8, if it must say
more than a token in the room of one: a lease runs for a day at most, in which nobody tries those either.
"""

from __future__ import annotations

from hashlib import blake2s
from hmac import compare_digest

TOKEN_BYTES = 16
FEWEST_TOKEN_BYTES = 8


def token_hash(token: bytes) -> bytes:
    """What is kept of a token."""
    return blake2s(token).digest()


def is_token(token: bytes, kept: bytes) -> bool:
    """Whether this is the token of which the hash was kept, in constant time."""
    return compare_digest(blake2s(token).digest(), kept)
