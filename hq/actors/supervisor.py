"""Keeps an actor alive: begins each life, waits between attempts, and gives up loudly."""

from __future__ import annotations

import logging

from tenacity import AsyncRetrying, RetryError, retry_if_not_exception_type, stop_after_attempt
from tenacity.wait import wait_random_exponential

from hq.actors.queue import LifeLost, QueueActor
from hq.errors import Closed, HQError, NotOwner, QueueNotFound, QueueUnavailable

log = logging.getLogger("hq.supervisor")
FIRST_WAIT_S = 0.02
LONGEST_WAIT_S = 0.5


async def keep(actor: QueueActor) -> None:
    """Run an actor, life after life, until it is stopped, asleep, or cannot be kept alive."""
    error: HQError = Closed()
    try:
        await _live(actor)
    except RetryError as failure:
        error = QueueUnavailable()
        error.__cause__ = failure.last_attempt.exception()
        log.exception("a queue cannot be loaded", extra={"queue": actor.number})
    except (QueueNotFound, NotOwner) as gone:
        error = gone
    except Exception as failure:
        error = QueueUnavailable()
        error.__cause__ = failure
        log.exception("a queue breaks down again and again", extra={"queue": actor.number})
    finally:
        _answer_all(actor, error)


async def _live(actor: QueueActor) -> None:
    """Life after life; one that got nothing done counts towards giving up."""
    vain = 0
    while True:
        await _begin(actor)
        begun = actor.durable
        try:
            await actor.serve()
        except (QueueNotFound, NotOwner):
            raise  # it was deleted, or is another node's
        except Exception as failure:
            vain = 0 if actor.durable > begun else vain + 1
            if vain == actor.services.limits.loads:
                raise
            expected = isinstance(failure, LifeLost)
            log.warning(
                "a queue is loaded again",
                extra={"queue": actor.number},
                exc_info=None if expected else failure,
            )
        else:
            return


async def _begin(actor: QueueActor) -> None:
    services = actor.services

    async def wait(seconds: float) -> None:
        await services.clock.until(services.clock.now + max(1, int(seconds * 1_000)))

    attempts = AsyncRetrying(
        wait=wait_random_exponential(multiplier=FIRST_WAIT_S, max=LONGEST_WAIT_S),
        stop=stop_after_attempt(services.limits.loads),
        retry=retry_if_not_exception_type((QueueNotFound, NotOwner)),
        sleep=wait,
    )
    async for attempt in attempts:
        with attempt:
            await actor.begin()


def _answer_all(actor: QueueActor, error: Exception) -> None:
    """No caller ever hangs."""
    actor.mailbox.answer_all(error)
    while actor.waiters:
        actor.waiters.popitem(last=False)[0].answer(error)
    actor.services.budget.forget(actor.number)
