"""A recorded history: what clients asked of hq and what they were told.

An operation has one of three outcomes. `ok`: it happened and is durable. `refused`: it certainly did not.
`unknown`: it may or may not have, now or later; so is every operation that was invoked and never returned.

A batch is written down as one operation per message, all invoked and returned together; only a receive tells
of many. `invoked_at` and `returned_at` come from one monotonic clock that all clients share (on Linux that is
true of every process of the machine); `at` is the server's own stamp, where it is known. Payloads and tokens
are kept as fingerprints.
"""

import enum
import json
import os
import time
import uuid
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass, replace
from hashlib import blake2s
from itertools import count
from pathlib import Path


class Outcome(enum.StrEnum):
    OK = "ok"
    REFUSED = "refused"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Asked:
    """What the caller said. `message` is an id, `schedule` and `scope` are names."""

    message: str | None = None
    token: str | None = None
    payload: str | None = None
    limit: int = 1
    lease_ms: int | None = None
    delay_ms: int | None = None
    ttl_ms: int | None = None
    group: str | None = None
    concurrency_key: str | None = None
    priority: int | None = None
    dedup_key: str | None = None
    dedup_ms: int | None = None
    max_attempts: int | None = None
    schedule: str | None = None
    scope: str | None = None


@dataclass(frozen=True, slots=True)
class Told:
    """One message as an answer told it.

    `available_at` is when it could be received this time; `until` is when a settled one comes again.
    """

    id: str
    sequence: int | None = None
    duplicate: bool = False
    token: str | None = None
    receives: int | None = None
    attempts: int | None = None
    lease_expires_at: int | None = None
    payload: str | None = None
    group: str | None = None
    concurrency_key: str | None = None
    priority: int | None = None
    dedup_key: str | None = None
    enqueued_at: int | None = None
    available_at: int | None = None
    expires_at: int | None = None
    until: int | None = None
    origin_id: str | None = None
    schedule: str | None = None
    tick_at: int | None = None


@dataclass(frozen=True, slots=True)
class Operation:
    """One call of one client."""

    client: str
    verb: str
    queue: str
    invoked_at: int
    asked: Asked = Asked()
    returned_at: int | None = None
    outcome: Outcome = Outcome.UNKNOWN
    code: str | None = None
    at: int | None = None
    told: tuple[Told, ...] = ()

    @property
    def ok(self) -> bool:
        return self.outcome is Outcome.OK

    @property
    def unknown(self) -> bool:
        return self.outcome is Outcome.UNKNOWN

    @property
    def may_have_happened(self) -> bool:
        return self.outcome is not Outcome.REFUSED

    def returned_before(self, other: "Operation") -> bool:
        """Whether every clock agrees that this one was answered before the other was asked.

        An unknown one may still happen after its caller gave up, so it is before nothing.
        """
        return not self.unknown and self.returned_at is not None and self.returned_at < other.invoked_at


@dataclass(frozen=True, eq=False)
class History:
    """Operations in the order they were invoked. Compared by identity, so that views of it can be kept."""

    operations: tuple[Operation, ...]

    def __iter__(self) -> Iterator[Operation]:
        return iter(self.operations)

    def __len__(self) -> int:
        return len(self.operations)

    def of(self, *verbs: str) -> Iterator[Operation]:
        """The operations of these verbs that happened or may have."""
        return (one for one in self.operations if one.verb in verbs and one.may_have_happened)


def history_of(operations: Iterable[Operation]) -> History:
    """A history of these operations."""
    return History(tuple(sorted(operations, key=lambda one: one.invoked_at)))


def fingerprint(secret: bytes) -> str:
    """What a history keeps of a payload or a token."""
    return blake2s(secret, digest_size=8).hexdigest()


class Recorder:
    """Writes operations to a file: a line when one is invoked and a line when it returned.

    Each line is one write to the file, so what was recorded survives the death of this process. Many clients
    may share a recorder, and many recorders a file.
    """

    def __init__(self, path: Path, clock: Callable[[], int] = time.monotonic_ns) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        self._clock = clock
        self._name = uuid.uuid4().hex[:12]
        self._numbers = count(1)

    def invoke(self, client: str, verb: str, queue: str, asked: Asked | None = None) -> str:
        """Write down that a call is about to be made; gives the key of its return."""
        key = f"{self._name}-{next(self._numbers)}"
        self._write(
            invoke=key,
            client=client,
            verb=verb,
            queue=queue,
            invoked_at=self._clock(),
            asked=_filled(asked or Asked()),
        )
        return key

    def ok(self, key: str, told: Iterable[Told] = (), at: int | None = None) -> None:
        told = [_filled(one) for one in told]
        self._write(returned=key, returned_at=self._clock(), outcome=Outcome.OK, at=at, told=told)

    def refused(self, key: str, code: str) -> None:
        self._write(returned=key, returned_at=self._clock(), outcome=Outcome.REFUSED, code=code)

    def unknown(self, key: str, code: str | None = None) -> None:
        self._write(returned=key, returned_at=self._clock(), outcome=Outcome.UNKNOWN, code=code)

    def close(self) -> None:
        os.close(self._file)

    def _write(self, **line) -> None:
        os.write(self._file, json.dumps(line, separators=(",", ":")).encode() + b"\n")


def load(*paths: Path) -> History:
    """The history in these files. The last line of a file may be torn by the death of its writer."""
    operations: dict[str, Operation] = {}
    for path in paths:
        for line in _whole_lines(path):
            if "invoke" in line:
                key, asked = line.pop("invoke"), Asked(**line.pop("asked"))
                operations[key] = Operation(asked=asked, **line)
            else:
                key = line.pop("returned")
                told = tuple(Told(**one) for one in line.pop("told", ()))
                outcome = Outcome(line.pop("outcome"))
                operations[key] = replace(operations[key], outcome=outcome, told=told, **line)
    return history_of(operations.values())


def _whole_lines(path: Path) -> Iterator[dict]:
    # What follows the last newline is empty, or torn.
    *lines, _ = path.read_bytes().split(b"\n")
    return (json.loads(line) for line in lines)


def _filled(record: Asked | Told) -> dict:
    """A record without the fields that say nothing."""
    return {name: value for name, value in asdict(record).items() if value is not None and value is not False}
