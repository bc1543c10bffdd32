"""Schedules: what repeats, and what becomes of ticks that were missed."""

from __future__ import annotations

import enum
from dataclasses import dataclass, replace

from hq.domain.messages import MAX_NAME_CHARS, PLAIN, Options, short_text
from hq.domain.settings import MAX_SPAN_MS, in_range
from hq.errors import InvalidInput

MAX_CATCH_UP = 1_000
MAX_SCHEDULES = 1_000


class Missed(enum.Enum):
    """What happens with ticks nobody was there for."""

    SKIP = "skip"
    RUN_ONCE = "run_once"
    CATCH_UP = "catch_up"


@dataclass(frozen=True, slots=True)
class Schedule:
    """A named repetition. `spec` (cron text, zone, interval) is read above the domain only."""

    name: str
    spec: str
    payload: bytes = b""
    options: Options = PLAIN
    missed: Missed = Missed.RUN_ONCE
    catch_up: int = 1
    grace_ms: int = 60_000

    def __post_init__(self) -> None:
        short_text("schedule name", self.name, MAX_NAME_CHARS)
        if not self.name:
            raise InvalidInput("a schedule has a name")
        in_range("catch_up", self.catch_up, 1, MAX_CATCH_UP)
        in_range("grace_ms", self.grace_ms, 0, MAX_SPAN_MS)
        self.options_at(MAX_SPAN_MS)

    def options_at(self, tick_at: int) -> Options:
        """The options of the message a tick yields: its headers say which tick it was."""
        told = (("hq-schedule", self.name), ("hq-tick-at", str(tick_at)))
        return replace(self.options, headers=self.options.headers + told)

    def runs(self, due: tuple[int, ...], now: int) -> tuple[int, ...]:
        """Which of the due ticks, oldest first, yield a message."""
        late = tuple(tick for tick in due if now - tick > self.grace_ms)
        on_time = due[len(late) :]
        match self.missed:
            case Missed.SKIP:
                return on_time
            case Missed.RUN_ONCE:
                return on_time or late[-1:]
            case Missed.CATCH_UP:
                return (late + on_time)[-max(self.catch_up, len(on_time)) :]


@dataclass(slots=True)
class Planned:
    """A schedule and its next tick."""

    schedule: Schedule
    next_at: int
    last_at: int | None = None
