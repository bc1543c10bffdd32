"""Records as positional arrays, read from their own type hints: the field's place is its name.

Fields may be added at the end of a record with a default; one that is moved or removed is a new version of
the codec. Enums go by value. Options are the exception: mostly empty, so only what differs is written.
"""

from __future__ import annotations

import enum
import types
from collections.abc import Callable, Hashable
from dataclasses import fields, is_dataclass
from functools import cache
from operator import attrgetter
from typing import Any, NamedTuple, TypeVar, Union, get_args, get_origin, get_type_hints

from hq.domain.messages import PLAIN, PLAIN_JSON, Options

Convert = Callable[[Any], Any]
Record = TypeVar("Record")


class Shape(NamedTuple):
    """How values of one type go to plain values and back; None where they are plain already."""

    pack: Convert | None
    unpack: Convert | None


PLAINLY = Shape(None, None)
# Message notes its lane in memory; the type is imported for type checkers alone, and no row has one.
_MEMORY_ONLY = {"Lane": object}


def packer(cls: type[Record], names: tuple[str, ...], *first: int) -> Callable[[Record], Any]:
    """A function from a record to an array of these fields, behind the given first values."""
    read = attrgetter(*names)
    shapes = _shapes(cls, names)
    packs = [(index, shape.pack) for index, shape in enumerate(shapes, len(first)) if shape.pack]
    if not packs:
        return lambda record: (*first, *read(record))

    def pack(record: Record) -> list[object]:
        values = [*first, *read(record)]
        for index, convert in packs:
            values[index] = convert(values[index])
        return values

    return pack


def unpacker(cls: type[Record], names: tuple[str, ...]) -> Callable[[list[Any]], list[Any]]:
    """A function that makes an array's values the fields' values again, in place."""
    unpacks = [
        (index, shape.unpack) for index, shape in enumerate(_shapes(cls, names)) if shape.unpack is not None
    ]

    def unpack(values: list[Any]) -> list[Any]:
        present = len(values)
        for index, convert in unpacks:
            if index < present:
                values[index] = convert(values[index])
        return values

    return unpack


def names_of(cls: type[object]) -> tuple[str, ...]:
    """The fields of a record, in their order."""
    assert is_dataclass(cls)
    return tuple(field.name for field in fields(cls))


def _shapes(cls: type[object], names: tuple[str, ...]) -> list[Shape]:
    hints = get_type_hints(cls, localns=_MEMORY_ONLY)
    return [shape_of(hints[name]) for name in names]


@cache
def shape_of(hint: Hashable) -> Shape:
    """The shape of a type, as far as records use types."""
    origin, inner = get_origin(hint), get_args(hint)
    if origin in {Union, types.UnionType}:
        [kept] = [part for part in inner if part is not type(None)]
        shape = shape_of(kept)
        return Shape(_unless_none(shape.pack), _unless_none(shape.unpack))
    if origin is dict:
        return _dict_shape(shape_of(inner[0]), shape_of(inner[1]))
    if origin is tuple:
        return _tuple_shape(shape_of(inner[0]))
    if hint is Options:
        return Shape(_pack_options, _unpack_options)
    if isinstance(hint, type) and is_dataclass(hint):
        return _record_shape(hint)
    if isinstance(hint, type) and issubclass(hint, enum.Enum):
        return Shape(None, {member.value: member for member in hint}.__getitem__)
    if isinstance(hint, type) and issubclass(hint, tuple):
        return Shape(None, lambda values: hint(*values))
    assert hint in {int, str, bytes, bool}, f"{hint} has no shape"
    return PLAINLY


def _unless_none(convert: Convert | None) -> Convert | None:
    if convert is None:
        return None
    return lambda value: None if value is None else convert(value)


def _dict_shape(key: Shape, value: Shape) -> Shape:
    def each(key_convert: Convert | None, value_convert: Convert | None) -> Convert:
        to_key, to_value = key_convert or _same, value_convert or _same
        return lambda pairs: {to_key(name): to_value(held) for name, held in pairs.items()}

    return Shape(each(key.pack, value.pack), each(key.unpack, value.unpack))


def _tuple_shape(item: Shape) -> Shape:
    unpack = item.unpack or _same
    pack = item.pack
    return Shape(
        None if pack is None else lambda values: [pack(value) for value in values],
        lambda values: tuple([unpack(value) for value in values]),
    )


def _record_shape(cls: type[Any]) -> Shape:
    names = names_of(cls)
    unpack = unpacker(cls, names)
    return Shape(packer(cls, names), lambda values: cls(*unpack(values)))


def _same(value: object) -> object:
    return value


_OPTION_NAMES = names_of(Options)
_OPTION_SHAPES = _shapes(Options, _OPTION_NAMES)
_read_options = attrgetter(*_OPTION_NAMES)
_OPTION_DEFAULTS = _read_options(PLAIN)
_PLAIN_JSON: dict[int, object] = {0: PLAIN_JSON.content_type}


def _pack_options(options: Options) -> dict[int, object] | None:
    """What differs from plain options by its place; None if nothing does."""
    if options is PLAIN:
        return None
    if options is PLAIN_JSON:
        return _PLAIN_JSON
    said: dict[int, object] = {}
    for index, value in enumerate(_read_options(options)):
        if value != _OPTION_DEFAULTS[index]:
            pack = _OPTION_SHAPES[index].pack
            said[index] = value if pack is None else pack(value)
    return said or None


def _unpack_options(said: dict[int, object] | None) -> Options:
    if said is None:
        return PLAIN
    if said == _PLAIN_JSON:
        return PLAIN_JSON
    values = list(_OPTION_DEFAULTS)
    for index, value in said.items():
        unpack = _OPTION_SHAPES[index].unpack
        values[index] = value if unpack is None else unpack(value)
    return Options(*values)
