"""What an actor does unasked: sweep, tick, advance tasks, send moves, write checkpoints, forget, sleep."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hq.actors.limits import MESSAGE_BYTES
from hq.actors.ticks import due_ticks
from hq.domain.checkpoint import Checkpoint, Chunk, shed
from hq.domain.commands import AdvanceTask, Tick, Wake
from hq.domain.messages import Message
from hq.domain.timing import due_at, ready_at, sweep_at, wake_at

if TYPE_CHECKING:
    from hq.actors.queue import QueueActor


class Upkeep:
    """The unasked work of one life of an actor."""

    def __init__(self, actor: QueueActor, mark: int) -> None:
        self._actor = actor
        self._mark = mark
        """Up to which sequence the last checkpoint goes."""
        self._begun_at: int | None = None
        """When something was first left for the next checkpoint."""
        self._checkpoint: Checkpoint | None = None
        self._cut: tuple[Chunk, int] | None = None
        self._pressed = False
        self._active_at = actor.services.clock.now
        self._due_at = self._active_at
        """When something is next due, as far as `set_timer` knew; what is due sooner is found by it again."""

    def press(self) -> None:
        """Memory is short: write a checkpoint now and forget what is written."""
        self._pressed = True
        self._actor.notify()

    async def run(self) -> None:
        """Do what is due; one chunk of each, so that nobody waits long."""
        actor, state = self._actor, self._actor.state
        now = actor.services.clock.now
        if actor.busy or actor.waiters or actor.listeners or not actor.intake.is_idle:
            self._active_at = now
        if self._due_at <= now:
            await self._do_due(now)
        if state.moves:
            actor.services.send_moves(actor.number)
        if self._begun_at is None and self._dirty:
            self._begun_at = now
        if self._cut is not None or self._checkpoint is not None or self._pressed or self._is_due(now):
            await self._write(now)

    async def _do_due(self, now: int) -> None:
        state = self._actor.state
        swept_at = sweep_at(state)
        if swept_at is not None and swept_at <= now:
            await self._actor.do(Wake())
            self._again_if(sweep_at(state), now)
        if state.schedules:
            await self._tick(now)
        if state.tasks:
            await self._advance_tasks(now)

    async def _tick(self, now: int) -> None:
        for name, planned in list(self._actor.state.schedules.items()):
            if planned.next_at <= now:
                due, next_at = due_ticks(planned.schedule.spec, planned.next_at, now)
                await self._actor.do(Tick(name, due, next_at))

    async def _advance_tasks(self, now: int) -> None:
        tasks = self._actor.state.tasks
        for number, task in list(tasks.items()):
            if task.next_at <= now:
                await self._actor.do(AdvanceTask(number))
                running = tasks.get(number)
                self._again_if(running.next_at if running else None, now)

    def may_end(self) -> bool:
        """Whether this life may end once everything is written: stopped, or asleep for want of work."""
        actor = self._actor
        if actor.busy or actor.waiters or actor.listeners:
            return False
        now = actor.services.clock.now
        asleep = now - self._active_at >= actor.services.limits.idle_ms and not actor.state.moves
        return actor.stopping or asleep

    async def ended(self) -> bool:
        """Whether everything is written and nothing has come meanwhile."""
        if self._dirty or self._checkpoint is not None:
            await self._write_all()
        return not self._actor.busy

    def set_timer(self) -> None:
        """Ask to be woken when something is next due."""
        actor, state = self._actor, self._actor.state
        limits = actor.services.limits
        instant = self._active_at + limits.idle_ms
        due = due_at(state)
        self._due_at = instant if due is None else due
        instant = min(instant, self._due_at)
        if self._begun_at is not None:
            instant = min(instant, self._begun_at + limits.checkpoint_ms)
        if actor.waiters or actor.listeners:
            instants = [waiter.wait_until for waiter in actor.waiters]
            instants.append(ready_at(state, actor.services.clock.now))
            instant = min([instant, *(known for known in instants if known is not None)])
        actor.services.timers.set(actor.number, instant)

    @property
    def waits_for_durable(self) -> bool:
        """Whether a chunk is cut and not written."""
        return self._cut is not None

    @property
    def _dirty(self) -> bool:
        return self._actor.state.sequence > self._mark

    async def _write(self, now: int) -> None:
        """Take the checkpoint a step further, if one is due or under way."""
        actor = self._actor
        if self._cut is not None:
            chunk, covered = self._cut
            if actor.durable < covered:
                return
            await self._store(chunk)
        if self._checkpoint is None:
            if self._is_due(now):
                self._checkpoint = Checkpoint(actor.state)
            elif self._pressed:
                self._weigh()
        if self._checkpoint is not None:
            self._cut_next(self._checkpoint)

    async def _write_all(self) -> None:
        """Write a whole checkpoint; everything applied must be durable."""
        self._checkpoint = self._checkpoint or Checkpoint(self._actor.state)
        while self._checkpoint is not None:
            if self._cut is not None:
                await self._store(self._cut[0])
            if self._checkpoint is not None:
                self._cut_next(self._checkpoint)

    def _cut_next(self, checkpoint: Checkpoint) -> None:
        limits = self._actor.services.limits
        chunk = checkpoint.cut(limits.chunk, limits.chunk_bytes)
        if chunk is None:
            self._checkpoint = None
        else:
            self._cut = (chunk, self._actor.state.sequence)
            self._actor.notify()

    async def _store(self, chunk: Chunk) -> None:
        actor = self._actor
        await actor.services.backend.checkpoint(actor.number, chunk, wake_at(actor.state))
        assert self._checkpoint is not None
        self._checkpoint.confirm(chunk)
        self._cut = None
        if chunk.snapshot is not None:
            self._checkpoint = None
            self._mark = chunk.snapshot.sequence
            self._begun_at = None
            self._weigh()

    def _is_due(self, now: int) -> bool:
        """By time, by what gathered, or because memory is short."""
        if self._begun_at is None:
            return False
        services = self._actor.services
        limits = services.limits
        return (
            self._pressed
            or now - self._begun_at >= limits.checkpoint_ms
            or self._actor.state.sequence - self._mark >= limits.checkpoint_events
            or services.budget.gained(self._actor.number) >= limits.checkpoint_bytes
        )

    def _weigh(self) -> None:
        """Tell the budget what is held, and forget what storage has if that is too much."""
        actor = self._actor
        budget = actor.services.budget
        held = sum(map(_size, actor.state.messages.values()))
        budget.weigh(actor.number, held)
        if self._pressed or budget.total > budget.limit // 2 or held > budget.limit // 8:
            shed(actor.state)
            budget.weigh(actor.number, sum(map(_size, actor.state.messages.values())))
        self._pressed = False

    def _again_if(self, instant: int | None, now: int) -> None:
        if instant is not None and instant <= now:
            self._actor.notify()


def _size(message: Message) -> int:
    return MESSAGE_BYTES + (0 if message.payload is None else len(message.payload))
