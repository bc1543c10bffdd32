"""An event as a plain record, for people and programs that know none of hq's types."""

from __future__ import annotations

from base64 import b64encode
from dataclasses import fields, is_dataclass
from enum import Enum
from re import sub
from typing import Any, get_args

from hq.domain.events import Event

# A token's hash is of no use to a reader, and nobody's business.
HIDDEN = {"token_hash"}


KINDS: dict[type[Event], str] = {
    event: sub(r"(?<!^)([A-Z])", r"_\1", event.__name__).lower() for event in get_args(Event)
}
"""What events are called."""


def told(event: Event) -> dict[str, Any]:
    """Its kind, and all it says."""
    return {"kind": KINDS[type(event)], **_record(event)}


def _record(value: Any) -> dict[str, Any]:
    return {
        field.name: _plain(getattr(value, field.name)) for field in fields(value) if field.name not in HIDDEN
    }


def _plain(value: Any) -> Any:
    if isinstance(value, bytes):
        return {"base64": b64encode(value).decode()}
    if isinstance(value, Enum):
        return value.value
    if is_dataclass(value):
        return _record(value)
    if isinstance(value, dict):
        return {str(_plain(key)): _plain(held) for key, held in value.items()}
    if hasattr(value, "_asdict"):
        return {name: _plain(held) for name, held in value._asdict().items()}
    if isinstance(value, list | tuple):
        return [_plain(one) for one in value]
    return value
