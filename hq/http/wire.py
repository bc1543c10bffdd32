"""JSON in: strict for hq's own fields, bounded in depth, and payloads kept as the bytes they came in.

Whoever looks at the shape of a text here, for its depth or its names, looks at what is left of it without
its words: that costs little, however large it is, and whatever it was made to do.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable
from functools import cache
from itertools import accumulate
from operator import attrgetter
from types import NoneType
from typing import Any, TypeVar, cast, get_args

import msgspec
from msgspec import UNSET, Raw, UnsetType

from hq.errors import InvalidInput
from hq.system.each import MAX_ITEMS

Kind = TypeVar("Kind")

MAX_LINES = 10 * MAX_ITEMS
"""Of NDJSON, with those that are empty."""

_WRONG = (msgspec.DecodeError, RecursionError, UnicodeError)
_NO_BRACKETS = bytes(sign for sign in range(256) if sign not in b'"[]{}')
_NO_COLONS = bytes(sign for sign in range(256) if sign not in b'":')
_STEPS = bytes.maketrans(b"[{]}", b"\x01\x01\xff\xff")
_NAMES = re.compile(rb'"([a-z0-9_]+)"\s*:').findall
_FLAT = {str, int, Raw, UnsetType, NoneType}
_decoders: dict[Any, Callable[[bytes], Any]] = {}
_raw_fields = msgspec.json.Decoder(dict[str, Raw]).decode
_raw_items = msgspec.json.Decoder(list[Raw]).decode
# A list would be read to its end before its length is known; this gives up at the first item too many.
_some_items = msgspec.json.Decoder(
    msgspec.defstruct(
        "Items",
        [(f"item_{place}", Raw | UnsetType, UNSET) for place in range(MAX_ITEMS)],
        array_like=True,
        forbid_unknown_fields=True,
    )
).decode


def decode(body: bytes, kind: type[Kind], depth: int) -> Kind:
    """One JSON object of hq's own; InvalidInput says what is wrong with it."""
    check_depth(body, depth)
    try:
        if not body.isascii():
            body.decode()
        decoded: Kind = _decoder(kind)(body)
    except msgspec.ValidationError as error:
        raise InvalidInput(f"the JSON does not fit: {error}") from None
    except _WRONG as error:
        raise InvalidInput(f"the body is no JSON: {error}") from None
    check_twice(body)
    return decoded


def decode_all(body: bytes, kind: type[Kind], depth: int) -> list[Kind] | None:
    """All objects of a JSON array at once, if nothing is wrong with any; None says nothing: look at each.

    An object that says one thing twice shows in how often names occur in the text. Where a payload says one
    too, or something of hq's own is nested, this cannot tell.
    """
    if b"\\" in body or body.count(b",") >= MAX_ITEMS:
        return None
    check_depth(body, depth)
    try:
        if not body.isascii():
            body.decode()
        decoded: list[Kind] = _decoder(list[kind])(body)  # type: ignore[valid-type]  # a type only when it runs
    except _WRONG:
        return None
    names, defaults = _fields(cast("Hashable", kind))
    found = names(body)
    said = 0
    for name in set(found):
        if name not in defaults:
            return None
        value, default = defaults[name]
        said += len(decoded) - [*map(value, decoded)].count(default)
    return decoded if said == len(found) else None


@cache
def _fields(kind: Any) -> tuple[Callable[[bytes], list[bytes]], dict[bytes, tuple[attrgetter[Any], Any]]]:
    """What finds the names of a kind's fields; value and default of those that hold no object of hq's own."""
    fields = msgspec.structs.fields(kind)
    names = b"|".join(field.name.encode() for field in fields)
    flat = [field for field in fields if {*(get_args(field.type) or (field.type,))} <= _FLAT]
    defaults = {field.name.encode(): (attrgetter(field.name), field.default) for field in flat}
    return re.compile(rb'"(' + names + rb')"\s*:').findall, defaults


def _decoder(kind: Any) -> Callable[[bytes], Any]:
    decoder = _decoders.get(kind)
    if decoder is None:
        decoder = _decoders[kind] = msgspec.json.Decoder(kind).decode
    return decoder


def items(body: bytes, depth: int, *, lines: bool) -> list[bytes]:
    """The items of a JSON array, or of NDJSON, each still as it came."""
    if lines:
        found = body.split(b"\n", MAX_LINES)
        if len(found) > MAX_LINES:
            raise InvalidInput(f"the body has more than {MAX_LINES} lines")
        return [line for line in found if line.strip()]
    check_depth(body, depth)
    try:
        if body.count(b",") < MAX_ITEMS:
            return [bytes(item) for item in _raw_items(body)]
        some = msgspec.structs.astuple(_some_items(body))
        return [bytes(item) for item in some if item is not UNSET]
    except msgspec.ValidationError as error:
        raise InvalidInput(f"the JSON does not fit: {error}") from None
    except _WRONG as error:
        raise InvalidInput(f"the body is no JSON array: {error}") from None


def check_json(body: bytes, depth: int) -> None:
    """Refuse a payload that is declared as JSON and is none."""
    check_depth(body, depth)
    try:
        msgspec.json.decode(body, type=Raw)
        if not body.isascii():
            body.decode()
    except _WRONG as error:
        raise InvalidInput(f"the payload is declared as JSON and is none: {error}") from None


def is_json(body: bytes, depth: int) -> bool:
    """Whether these bytes are JSON."""
    try:
        check_json(body, depth)
    except InvalidInput:
        return False
    return bool(body.strip())


def declares_json(content_type: str) -> bool:
    """Whether a content type says JSON, whatever its parameters."""
    kind = content_type.partition(";")[0].strip().lower()
    return kind == "application/json" or kind.endswith("+json")


def check_depth(body: bytes, most: int) -> None:
    """Refuse what is nested too deeply, before anything parses it. Of what is no JSON, the parser says so."""
    if body.count(b"[") + body.count(b"{") <= most:
        return
    brackets = _outside_strings(body, _NO_BRACKETS)
    steps = memoryview(brackets.translate(_STEPS)).cast("b")
    # What is too deep mostly is so from the start.
    for part in (steps[:1_000], steps):
        if max(accumulate(part), default=0) > most:
            raise InvalidInput(f"the JSON is nested more than {most} deep")


def check_twice(body: bytes) -> None:
    """Refuse an object of hq's own, or one inside it, that says one thing twice: readers would differ.

    `body` is JSON. What a payload says inside is its producer's business. Names that occur once in the whole
    text are said once, which is the cheap way to see that nearly always; headers may have any name.
    """
    if b"\\" not in body and b'"headers"' not in body:
        names = _NAMES(body)
        if len(set(names)) == len(names):
            return
    _check_fields(body)


def _check_fields(body: bytes) -> None:
    fields = _raw_fields(body)
    colons = _outside_strings(body, _NO_COLONS).count(b":")
    for name, value in fields.items():
        inner = bytes(value)
        colons -= _outside_strings(inner, _NO_COLONS).count(b":")
        if name != "payload" and inner[:1] == b"{":
            _check_fields(inner)
    # Each name has one colon; of one that is said twice, only the last value was found.
    if colons != len(fields):
        raise InvalidInput("the JSON says one thing twice")


def _outside_strings(body: bytes, words: bytes) -> bytes:
    """What is in none of the strings of a JSON text, without `words`, which keep the quotes."""
    if b"\\" in body:
        body = body.replace(b"\\\\", b"").replace(b'\\"', b"")
    # Two quotes that meet are a string without such signs, or two strings without any between them.
    signs = body.translate(None, words).replace(b'""', b"")
    return b"".join(signs.split(b'"')[::2]) if b'"' in signs else signs
