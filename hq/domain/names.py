"""The grammar of queue names: dot-separated segments, none of them empty."""

from __future__ import annotations

import re

from hq.errors import InvalidInput

_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}", re.ASCII)


def queue_name(text: object) -> str:
    """The name itself if it is a good one, else InvalidInput."""
    if not isinstance(text, str) or _NAME.fullmatch(text) is None or "" in text.split("."):
        raise InvalidInput(
            "a queue name has 1 to 128 of A-Z a-z 0-9 _ . -, starts with a letter, digit or _, "
            "and has no empty segment between dots"
        )
    return text


def is_under(name: str, prefix: str) -> bool:
    """Whether a queue is at or below a prefix, at a dot boundary; the empty prefix holds all."""
    return not prefix or name == prefix or name.startswith(prefix + ".")
