"""The keywords of `create_queue`, `configure` and `enqueue`; an unknown one is told with the closest."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from dataclasses import fields, replace
from enum import Enum
from functools import cache
from typing import Any, TypedDict, TypeVar, Unpack

from hq.domain.commands import Enqueue
from hq.domain.messages import PLAIN, PLAIN_JSON, Options
from hq.domain.names import queue_name
from hq.domain.settings import DedupScope, Groups, Rate, RetryPolicy, Settings
from hq.errors import InvalidInput
from hq.system.payloads import Payload, encode

Choice = TypeVar("Choice", bound=Enum)


class SettingsKeywords(TypedDict, total=False):
    """What a queue may be created with; hq.Settings has the defaults."""

    max_attempts: int | None
    lease_ms: int
    retry: RetryPolicy
    delay_ms: int
    ttl_ms: int | None
    dedup_ms: int
    dedup_scope: DedupScope | str
    groups: Groups | str
    concurrency: int | None
    concurrency_per_key: int | None
    capacity: int | None
    enqueue_rate: Rate | None
    receive_rate: Rate | None
    max_payload_bytes: int
    dead_letter_queue: str | None
    failed_ms: int


class EnqueueKeywords(TypedDict, total=False):
    """What a producer may say of a message; what is left out is the queue's to say."""

    content_type: str | None
    headers: Mapping[str, str] | None
    priority: int | None
    group: str | None
    concurrency_key: str | None
    dedup_key: str | None
    dedup_ms: int | None
    delay_ms: int | None
    ttl_ms: int | None
    max_attempts: int | None
    lease_ms: int | None
    retry: RetryPolicy | None
    result_ms: int | None


class Outgoing:
    """A payload with its options, checked at once; `enqueue_many` takes them beside plain payloads."""

    __slots__ = ("command",)

    def __init__(self, payload: Payload, **options: Unpack[EnqueueKeywords]) -> None:
        check_known(options, EnqueueKeywords.__annotations__)
        given: dict[str, Any] = {**options}
        check_kind("content_type", given.get("content_type"), str)
        check_kind("headers", given.get("headers"), Mapping)
        body, given["content_type"] = encode(payload, given.pop("content_type", None))
        given["headers"] = _headers(given.pop("headers", None))
        check_kind("retry", given.get("retry"), RetryPolicy)
        self.command = Enqueue(body, Options(**given))

    def __repr__(self) -> str:
        return f"<Outgoing {self.command.options.content_type}, {len(self.command.payload)} bytes>"


def enqueue_command(payload: Payload, options: EnqueueKeywords) -> Enqueue:
    """The command for a payload with its options, if there are any."""
    if options:
        return Outgoing(payload, **options).command
    body, content_type = encode(payload, None)
    return Enqueue(body, _plain_options(content_type))


@cache
def _plain_options(content_type: str) -> Options:
    for plain in (PLAIN, PLAIN_JSON):
        if plain.content_type == content_type:
            return plain
    return Options(content_type=content_type)


def changed(settings: Settings, changes: Mapping[str, Any]) -> Settings:
    """These settings with some of them changed."""
    check_known(changes, (field.name for field in fields(Settings)))
    parsed = dict(changes)
    if "groups" in parsed:
        parsed["groups"] = member(Groups, "groups", parsed["groups"])
    if "dedup_scope" in parsed:
        parsed["dedup_scope"] = member(DedupScope, "dedup_scope", parsed["dedup_scope"])
    if "retry" in parsed and not isinstance(parsed["retry"], RetryPolicy):
        raise InvalidInput("retry must be a RetryPolicy")
    check_kind("enqueue_rate", parsed.get("enqueue_rate"), Rate)
    check_kind("receive_rate", parsed.get("receive_rate"), Rate)
    if parsed.get("dead_letter_queue") is not None:
        queue_name(parsed["dead_letter_queue"])
    return replace(settings, **parsed)


def check_known(given: Iterable[str], known: Iterable[str]) -> None:
    """Refuse a keyword that there is not."""
    names = list(known)
    for name in given:
        if name not in names:
            near = difflib.get_close_matches(name, names, n=1, cutoff=0)
            raise InvalidInput(f"there is no {name!r}; did you mean {near[0]!r}?")


def check_kind(name: str, value: object, kind: type) -> None:
    """Refuse a value of another kind; None is no value."""
    if value is not None and not isinstance(value, kind):
        raise InvalidInput(f"{name} must be a {kind.__name__}")


def member(kind: type[Choice], name: str, value: object) -> Choice:
    """The member that a value names, or is."""
    try:
        return kind(value)
    except ValueError:
        known = ", ".join(repr(member.value) for member in kind)
        raise InvalidInput(f"{name} must be one of {known}, not {value!r}") from None


def _headers(headers: Mapping[object, object] | None) -> tuple[tuple[str, str], ...]:
    pairs = (headers or {}).items()
    texts = tuple((name, value) for name, value in pairs if isinstance(name, str) and isinstance(value, str))
    if len(texts) != len(pairs):
        raise InvalidInput("a header's name and value are texts")
    return texts
