"""The kinds of values: what is allowed, and how it is written.

A file has numbers, lists and texts, the environment texts alone; so every kind takes a text too.
"""

from __future__ import annotations

import ipaddress
import json
import re
from dataclasses import dataclass
from typing import NamedTuple, Protocol

KIB, MIB, GIB, TIB = (1 << power for power in (10, 20, 30, 40))

_UNITS = {"B": 1, "KiB": KIB, "MiB": MIB, "GiB": GIB, "TiB": TIB}
_READ_UNITS = {"kb": 10**3, "mb": 10**6, "gb": 10**9, "tb": 10**12} | {
    unit.lower(): size for unit, size in _UNITS.items()
}
MAX_PORT = 65_535
_SIZE = re.compile(r"([0-9]+) ?([A-Za-z]+)")
_HOST_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*")
_ORIGIN = re.compile(r"\*|https?://[A-Za-z0-9_.:\[\]-]+")
_NAME = re.compile(r"[a-z_][a-z0-9_]{0,62}")
_BIND = re.compile(r"(?:\[([0-9A-Fa-f:.]+)\]|([^:\[\]]+)):([0-9]{1,5})")
_NONE = "none"


class NotAllowed(ValueError):
    """The value is not of this kind."""


class Kind(Protocol):
    """What the values of a key may be; `allowed` completes "it must be"."""

    @property
    def allowed(self) -> str: ...

    def parse(self, value: object) -> object:
        """The value, or a ValueError."""


@dataclass(frozen=True, slots=True)
class Whole:
    """A whole number, of milliseconds for instance."""

    least: int
    most: int
    unit: str = ""

    @property
    def allowed(self) -> str:
        unit = f"of {self.unit} " if self.unit else ""
        return f"a whole number {unit}from {_number(self.least)} to {_number(self.most)}"

    def parse(self, value: object) -> int:
        number = int(value) if isinstance(value, str) else value
        if not isinstance(number, int) or isinstance(number, bool):
            raise NotAllowed
        if not self.least <= number <= self.most:
            raise NotAllowed
        return number


@dataclass(frozen=True, slots=True)
class Size:
    """A number of bytes."""

    least: int
    most: int

    @property
    def allowed(self) -> str:
        return f"a size from {_size(self.least)} to {_size(self.most)}, in bytes or with a unit as in '1 MiB'"

    def parse(self, value: object) -> int:
        if isinstance(value, str) and (written := _SIZE.fullmatch(value)):
            number, unit = written.groups()
            value = int(number) * _READ_UNITS.get(unit.lower(), 0)
        return Whole(self.least, self.most).parse(value)


@dataclass(frozen=True, slots=True)
class Seconds:
    """A span of time; a fraction counts."""

    least: float
    most: float

    @property
    def allowed(self) -> str:
        return f"a number of seconds from {_number(self.least)} to {_number(self.most)}"

    def parse(self, value: object) -> float:
        number = float(value) if isinstance(value, str) else value
        if not isinstance(number, int | float) or isinstance(number, bool):
            raise NotAllowed
        # Before it is made a float: NaN is in no range, and a huge number has no float.
        if not self.least <= number <= self.most:
            raise NotAllowed
        return float(number)


@dataclass(frozen=True, slots=True)
class Switch:
    """On or off."""

    allowed: str = "true or false"

    def parse(self, value: object) -> bool:
        if isinstance(value, str):
            value = {"true": True, "false": False}.get(value.lower())
        if not isinstance(value, bool):
            raise NotAllowed
        return value


@dataclass(frozen=True, slots=True)
class OneOf:
    """One of a few names."""

    names: tuple[str, ...]

    @property
    def allowed(self) -> str:
        return f"{', '.join(map(repr, self.names[:-1]))} or {self.names[-1]!r}"

    def parse(self, value: object) -> str:
        if not isinstance(value, str) or value.lower() not in self.names:
            raise NotAllowed
        return value.lower()


@dataclass(frozen=True, slots=True)
class Name:
    """A name that a database gives its parts."""

    allowed: str = "a name of small letters, digits and _, not beginning with a digit"

    def parse(self, value: object) -> str:
        if not isinstance(value, str) or not _NAME.fullmatch(value):
            raise NotAllowed
        return value


@dataclass(frozen=True, slots=True)
class File:
    """A path."""

    allowed: str = "a path"

    def parse(self, value: object) -> str:
        if not isinstance(value, str) or not value or not value.isprintable():
            raise NotAllowed
        return value


@dataclass(frozen=True, slots=True)
class Database:
    """A path, memory, or a URL; as it may hold a password, it is never told."""

    allowed: str = "a path, memory: or a URL"

    def parse(self, value: object) -> str:
        text = File().parse(value)
        return "memory:" if text == ":memory:" else text


@dataclass(frozen=True, slots=True)
class Secret:
    """What a header may hold and nobody is told, or none."""

    allowed: str = f"a text of printable ASCII without spaces at its ends, or {_NONE!r}"

    def parse(self, value: object) -> str | None:
        if value == _NONE:
            return None
        if not isinstance(value, str) or not value.isprintable() or not value.isascii():
            raise NotAllowed
        if not value or value != value.strip():
            raise NotAllowed
        return value


@dataclass(frozen=True, slots=True)
class Host:
    """Where to listen."""

    allowed: str = "an IP address without brackets, or a host name"

    def parse(self, value: object) -> str:
        if not isinstance(value, str):
            raise NotAllowed
        if not _HOST_NAME.fullmatch(value):
            ipaddress.ip_address(value)
        return value


class Listen(NamedTuple):
    """A port of its own for a dialect, which is at the root of it."""

    host: str
    port: int
    dialect: str


@dataclass(frozen=True, slots=True)
class Listens:
    """A list of tables; a text has them as ADDRESS=DIALECT with commas between."""

    dialects: tuple[str, ...]

    @property
    def allowed(self) -> str:
        names = OneOf(self.dialects).allowed
        return f"a list of `bind` (an address and a port) and `dialect` ({names}), or ADDRESS=DIALECT"

    def parse(self, value: object) -> tuple[Listen, ...]:
        if isinstance(value, str):
            value = [item for part in value.split(",") if (item := part.strip())]
        if not isinstance(value, list | tuple):
            raise NotAllowed
        return tuple(self._one(item) for item in value)

    def _one(self, item: object) -> Listen:
        if isinstance(item, str):
            bind, _, dialect = item.rpartition("=")
            item = {"bind": bind, "dialect": dialect}
        if not isinstance(item, dict) or item.keys() != {"bind", "dialect"}:
            raise NotAllowed
        bind = item["bind"]
        if not isinstance(bind, str) or not (found := _BIND.fullmatch(bind)):
            raise NotAllowed
        host, port = found[1] or found[2], found[3]
        return Listen(
            Host().parse(host), Whole(0, MAX_PORT).parse(port), OneOf(self.dialects).parse(item["dialect"])
        )


@dataclass(frozen=True, slots=True)
class Origins:
    """A list; a text has commas between its items."""

    allowed: str = "a list of origins such as 'https://app.example.com', or '*' for all"

    def parse(self, value: object) -> tuple[str, ...]:
        if isinstance(value, str):
            value = [item for part in value.split(",") if (item := part.strip())]
        if not isinstance(value, list | tuple):
            raise NotAllowed
        origins = tuple(item for item in value if isinstance(item, str) and _ORIGIN.fullmatch(item))
        if len(origins) != len(value):
            raise NotAllowed
        return origins


@dataclass(frozen=True, slots=True)
class Maybe:
    """A value, or none."""

    kind: Kind

    @property
    def allowed(self) -> str:
        return f"{self.kind.allowed}, or {_NONE!r}"

    def parse(self, value: object) -> object:
        return None if value == _NONE else self.kind.parse(value)


def shown(kind: Kind, value: object) -> str:
    """A value of this kind as a file has it."""
    if value is None:
        return json.dumps(_NONE)
    if isinstance(value, int | float) and not isinstance(value, bool):
        return json.dumps(_size(int(value))) if isinstance(kind, Size) else _number(value)
    return json.dumps(value)


def _number(number: float) -> str:
    whole = int(number)
    if whole != number:
        return str(number)
    return str(whole) if whole < 10_000 else f"{whole:_}"  # noqa: PLR2004 - 9999 is a port


def _size(size: int) -> str:
    unit = max((unit for unit in _UNITS if size % _UNITS[unit] == 0), key=_UNITS.__getitem__)
    return f"{size // _UNITS[unit]} {unit}"
