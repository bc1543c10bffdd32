"""The schema hq has to itself in a Postgres database: its name in every statement, and its locks."""

from __future__ import annotations

import re
from zlib import crc32

from hq.errors import InvalidInput

# The migration this code is written for; the newest in hq/backends/postgres/migrations.
REVISION = "0003"
NAME = re.compile(r"[a-z_][a-z0-9_]{0,62}")
_OURS = re.compile(r"\bhq\.")
# Of advisory locks, the first number is hq's and the second the schema's, the door's one above the journal's.
_SPACE = 0x68_71
_HALF = 1 << 30


class Schema:
    """A schema by its name, which is no user's input."""

    def __init__(self, name: str) -> None:
        if not NAME.fullmatch(name):
            raise InvalidInput(f"a schema is named by small letters, digits and _, not {name!r}")
        self.name = name
        self.quoted = f'"{name}"'
        number = crc32(name.encode()) % _HALF
        self.locks = {"space": _SPACE, "journal": number, "door": _HALF + number}

    def place(self, statement: str) -> str:
        """A statement that was written for a schema called hq."""
        return _OURS.sub(f"{self.quoted}.", statement)
