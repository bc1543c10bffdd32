"""Every key there is, read off the sections, so that nothing is listed twice."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, fields, is_dataclass
from functools import cache
from typing import Annotated, Any, get_args, get_origin, get_type_hints

from hq.actors.limits import Limits
from hq.config.kinds import KIB, TIB, Kind, Maybe, Size, Whole, shown
from hq.config.sections import DAY_S, Config

_SEED_VARIABLES = {
    "database": "DATABASE",
    "server.port": "PORT",
    "server.request_timeout": "REQUEST_TIMEOUT",
    "cl_sqs.api_key": "API_KEY",
}
_LIMITS = {
    "mailbox": "How many requests may wait for a queue before more are refused.",
    "waiters": "How many receives may wait for messages of a queue before more are refused.",
    "batch": "How many requests of a queue are stored together.",
    "batch_bytes": "How many bytes of messages of a queue are stored together.",
    "head": "How many messages of a queue are read ahead.",
    "checkpoint_events": "After how many events a queue writes a checkpoint.",
    "checkpoint_bytes": "After how many bytes of events a queue writes a checkpoint.",
    "checkpoint_ms": "After how long a queue that changed writes a checkpoint.",
    "chunk": "How many messages of a checkpoint are written at once.",
    "chunk_bytes": "How many bytes of a checkpoint are written at once.",
    "idle_ms": "After how long without requests a queue leaves memory.",
    "memory_bytes": "How much memory the messages of all queues may take; beyond it enqueues are refused.",
    "loads": "How often a queue that cannot be loaded is tried before its callers are told.",
    "journal_ms": "How long the journal is kept; what no checkpoint has yet is always kept.",
    "journal_bytes": "How large the journal may become; what no checkpoint has yet is always kept.",
    "unarchived_bytes": "How large the journal may be before what no lake has goes; none waits for no lake.",
    "prune_every_ms": "How often storage is cleaned of what is kept no longer.",
    "prune": "How many things one step of that cleaning removes at most.",
}
_NEW_LIMIT = "A bound of an actor, explained in hq/actors/limits.py."


@dataclass(frozen=True, slots=True)
class Key:
    """One thing to configure, and how it is spelled in each place."""

    name: str
    kind: Kind = field(repr=False)
    default: object
    sentence: str

    @property
    def allowed(self) -> str:
        """What a value must be."""
        return self.kind.allowed

    @property
    def shown_default(self) -> str:
        """The default as a file has it."""
        return shown(self.kind, self.default)

    @property
    def variable(self) -> str:
        """Two underscores after the section: HQ_SERVER_PORT is Kubernetes' word for a service hq-server."""
        return f"HQ_{self.name.upper().replace('.', '__')}"

    @property
    def seed_variable(self) -> str | None:
        """What ckampfe/hq calls it, or cl-sqs."""
        return _SEED_VARIABLES.get(self.name)

    @property
    def flag(self) -> str:
        """Its name with dashes; what is the server's goes without saying."""
        return "--" + self.name.removeprefix("server.").replace(".", "-").replace("_", "-")


@cache
def describe() -> tuple[Key, ...]:
    """Every key, in the order of the sections."""
    return tuple(_keys())


def _keys() -> Iterator[Key]:
    config = Config()
    yield from _annotated("", config)
    for section, part in parts(config).items():
        yield from _limits(part) if isinstance(part, Limits) else _annotated(f"{section}.", part)


def parts(config: Config) -> dict[str, Any]:
    """The sections by their names."""
    return {part.name: value for part in fields(config) if is_dataclass(value := getattr(config, part.name))}


def _annotated(prefix: str, part: object) -> Iterator[Key]:
    for name, hint in get_type_hints(type(part), include_extras=True).items():
        if get_origin(hint) is Annotated:
            _, kind, sentence = get_args(hint)
            yield Key(prefix + name, kind, getattr(part, name), sentence)


def _limits(limits: Limits) -> Iterator[Key]:
    """Whatever limits an actor has, by what their names say."""
    for limit in fields(limits):
        default = getattr(limits, limit.name)
        yield Key(
            f"limits.{limit.name}",
            _limit_kind(limit.name, default),
            default,
            _LIMITS.get(limit.name, _NEW_LIMIT),
        )


def _limit_kind(name: str, default: object) -> Kind:
    if default is None:
        return Maybe(_limit_kind(name, 0))
    if name.endswith("_bytes"):
        return Size(KIB, TIB)
    if name.endswith("_ms"):
        return Whole(1, 10 * 366 * DAY_S * 1_000, "milliseconds")
    return Whole(1, 1_000_000_000)
