"""Every state a message can be in, against every command that can touch it: one table, no empty cell.

A cell is what the message is answered to be, what became of it, or, after an exclamation mark, the refusal:
!held is lease_not_held, !expired lease_expired, !found message_not_found, !failed message_not_failed and
!waiting message_not_waiting. `latest` and `stale` are the tokens of the last lease and of one before it;
a message that was never received meets foreign tokens instead. By id means without a token.
"""

from dataclasses import replace
from pathlib import Path
from typing import NamedTuple, get_args

import pytest

from hq.domain import commands as c
from hq.domain.decide import RULES
from hq.domain.messages import Options
from hq.domain.replies import Accepted, Explanation
from hq.domain.settings import Groups
from hq.domain.tasks import Scope
from hq.errors import CallerError

TABLE = """
                 ready     delayed   leased    lapsed    released  retried   failed    requeued  moving
complete latest  !held     !held     completed completed completed completed !expired  !held     !expired
complete stale   !held     !held     !held     !held     !held     !held     !held     !held     !held
complete by-id   !held     !held     completed !held     !held     !held     !held     !held     !held
fail latest      !held     !held     failed    failed    failed    failed    !expired  !held     !expired
fail stale       !held     !held     !held     !held     !held     !held     !held     !held     !held
fail by-id       !held     !held     failed    !held     !held     !held     !held     !held     !held
retry latest     !held     !held     delayed   !expired  !expired  !expired  !expired  !held     !expired
retry stale      !held     !held     !held     !held     !held     !held     !held     !held     !held
retry by-id      !held     !held     delayed   !held     !held     !held     !held     !held     !held
release latest   !held     !held     ready     !expired  !expired  !expired  !expired  !held     !expired
release stale    !held     !held     !held     !held     !held     !held     !held     !held     !held
release by-id    !held     !held     ready     !held     !held     !held     !held     !held     !held
extend latest    !held     !held     leased    !expired  !expired  !expired  !expired  !held     !expired
extend stale     !held     !held     !held     !held     !held     !held     !held     !held     !held
extend by-id     !held     !held     leased    !held     !held     !held     !held     !held     !held
delete           deleted   deleted   deleted   deleted   deleted   deleted   deleted   deleted   deleted
delete-by-key    deleted   deleted   deleted   deleted   deleted   deleted   !found    deleted   !found
replace          ready     delayed   !waiting  ready     ready     delayed   !found    ready     !found
requeue          !failed   !failed   !failed   !failed   !failed   !failed   ready     !failed   !failed
get              ready     delayed   leased    ready     ready     delayed   failed    ready     moving
explain          free      delayed   leased    free      free      delayed   failed    free      moving
progress latest  !held     !held     leased    !expired  !expired  !expired  !expired  !held     !expired
progress stale   !held     !held     !held     !held     !held     !held     !held     !held     !held
progress by-id   !held     !held     leased    !held     !held     !held     !held     !held     !held
outcome          ready     delayed   leased    ready     ready     delayed   failed    ready     failed
receive          taken     left      left      taken     taken     left      left      taken     left
enqueue          duplicate duplicate duplicate duplicate duplicate duplicate accepted  duplicate accepted

                 completed expired   deleted   moved     purged    absent    kept
complete latest  !found    !found    !found    !found    !found    !found    !found
complete stale   !found    !found    !found    !found    !found    !found    !found
complete by-id   !found    !found    !found    !found    !found    !found    !found
fail latest      !found    !found    !found    !found    !found    !found    !found
fail stale       !found    !found    !found    !found    !found    !found    !found
fail by-id       !found    !found    !found    !found    !found    !found    !found
retry latest     !found    !found    !found    !found    !found    !found    !found
retry stale      !found    !found    !found    !found    !found    !found    !found
retry by-id      !found    !found    !found    !found    !found    !found    !found
release latest   !found    !found    !found    !found    !found    !found    !found
release stale    !found    !found    !found    !found    !found    !found    !found
release by-id    !found    !found    !found    !found    !found    !found    !found
extend latest    !found    !found    !found    !found    !found    !found    !found
extend stale     !found    !found    !found    !found    !found    !found    !found
extend by-id     !found    !found    !found    !found    !found    !found    !found
delete           !found    !found    !found    !found    !found    !found    !found
delete-by-key    !found    !found    !found    !found    !found    !found    !found
replace          !found    !found    !found    !found    !found    !found    !found
requeue          !found    !found    !found    !found    !found    !found    !found
get              !found    !found    !found    !found    !found    !found    !found
explain          !found    !found    !found    !found    !found    !found    !found
progress latest  !found    !found    !found    !found    !found    !found    !found
progress stale   !found    !found    !found    !found    !found    !found    !found
progress by-id   !found    !found    !found    !found    !found    !found    !found
outcome          !found    !found    !found    !found    !found    !found    completed
receive          left      left      left      left      left      left      left
enqueue          accepted  accepted  accepted  accepted  accepted  accepted  accepted
"""

FIFO = """
                 lapsed    released  retried
complete latest  !expired  !expired  !expired
fail latest      !expired  !expired  !expired
"""

CODES = {
    "lease_not_held": "!held",
    "lease_expired": "!expired",
    "message_not_found": "!found",
    "message_not_failed": "!failed",
    "message_not_waiting": "!waiting",
}

# Commands that name no message, and the tests that speak of them.
ELSEWHERE = {
    c.Purge: "test_purge.py",
    c.Pause: "test_pause_and_settings.py",
    c.Resume: "test_pause_and_settings.py",
    c.PauseGroup: "test_groups.py",
    c.ResumeGroup: "test_groups.py",
    c.Configure: "test_pause_and_settings.py",
    c.Claim: "test_pause_and_settings.py",
    c.SetSchedule: "test_schedules.py",
    c.RemoveSchedule: "test_schedules.py",
    c.ListSchedules: "test_schedules.py",
    c.Tick: "test_schedules.py",
    c.StartTask: "test_tasks.py",
    c.AdvanceTask: "test_tasks.py",
    c.CancelTask: "test_tasks.py",
    c.ListTasks: "test_tasks.py",
    c.NextMove: "test_moves.py",
    c.TakeMove: "test_moves.py",
    c.SettleMove: "test_moves.py",
    c.ReturnMove: "test_moves.py",
    c.Wake: "test_dead_letters.py",
    c.TakeIn: "test_inbox.py",
    c.Peek: "test_looking.py",
    c.Count: "test_looking.py",
    c.Dates: "test_pause_and_settings.py",
    c.Browse: "test_looking.py",
}


class Case(NamedTuple):
    """A message brought into its state, and the tokens of its leases."""

    message: int
    latest: bytes = b"foreign"
    stale: bytes = b"foreign"


def enqueued(queue, **options):
    return Case(queue.enqueue(b"work", dedup_key="key", group="group", **options))


def leased(queue):
    case = enqueued(queue)
    stale = queue.take().token
    queue.ask(c.Release(case.message, stale))
    return case._replace(stale=stale, latest=queue.take().token)


def after(*commands):
    """A leased message, and what is then asked of it."""

    def arrange(queue):
        case = leased(queue)
        for command in commands:
            queue.ask(command(case))
        return case

    return arrange


def lapsed(queue):
    case = leased(queue)
    queue.clock.advance(queue.state.settings.lease_ms)
    return case


def expired(queue):
    case = after(lambda case: c.Release(case.message))(queue)
    queue.clock.advance(days=1)
    return case


def kept(queue):
    case = enqueued(queue, result_ms=1_000)
    stale = queue.take().token
    queue.ask(c.Release(case.message, stale))
    case = case._replace(stale=stale, latest=queue.take().token)
    queue.ask(c.Complete(case.message, case.latest, b"1"))
    return case


def fail(case):
    return c.Fail(case.message, case.latest)


STATES = {
    "ready": enqueued,
    "delayed": lambda queue: enqueued(queue, delay_ms=1_000),
    "leased": leased,
    "lapsed": lapsed,
    "released": after(lambda case: c.Release(case.message)),
    "retried": after(lambda case: c.Retry(case.message, delay_ms=1_000)),
    "failed": after(fail),
    "requeued": after(fail, lambda case: c.Requeue(case.message)),
    "moving": after(fail),
    "completed": after(lambda case: c.Complete(case.message)),
    "expired": expired,
    "deleted": after(lambda case: c.Delete(case.message)),
    "moved": after(fail, lambda _: c.SettleMove(1)),
    "purged": after(lambda _: c.Purge()),
    "kept": kept,
    "absent": lambda queue: Case(queue.enqueue() + 1_000),
}

COMMANDS = {
    f"{name} {token}": (lambda case, build=build, token=token: build(case.message, getattr(case, token)))
    for name, build in {
        "complete": c.Complete,
        "fail": c.Fail,
        "retry": lambda message, token: c.Retry(message, token, delay_ms=1_000),
        "release": c.Release,
        "extend": c.Extend,
        "progress": c.Progress,
    }.items()
    for token in ("latest", "stale")
} | {
    "complete by-id": lambda case: c.Complete(case.message),
    "fail by-id": lambda case: c.Fail(case.message),
    "retry by-id": lambda case: c.Retry(case.message, delay_ms=1_000),
    "release by-id": lambda case: c.Release(case.message),
    "extend by-id": lambda case: c.Extend(case.message),
    "progress by-id": lambda case: c.Progress(case.message),
    "delete": lambda case: c.Delete(case.message),
    "delete-by-key": lambda _: c.DeleteByKey("key", "group"),
    "replace": lambda _: c.Replace("key", b"other", "group"),
    "requeue": lambda case: c.Requeue(case.message),
    "get": lambda case: c.Get(case.message),
    "explain": lambda case: c.Explain(case.message),
    "outcome": lambda case: c.Outcome(case.message),
    "receive": lambda _: c.Receive(100),
    "enqueue": lambda _: c.Enqueue(b"same", Options(dedup_key="key", group="group")),
}


def cells(text):
    """The table as {(state, command): cell}."""
    found, states = {}, []
    for line in text.strip("\n").splitlines():
        command, words = line[:17].strip(), line[17:].split()
        if not command:
            states = words or states
        else:
            found |= {(state, command): word for state, word in zip(states, words, strict=True)}
    return found


PLAIN_CELLS = cells(TABLE)
FIFO_CELLS = PLAIN_CELLS | cells(FIFO)
KINDS = {Groups.ORDERED: PLAIN_CELLS, Groups.FIFO: FIFO_CELLS}


def cell(reply, case):
    """A reply in one word of the table."""
    match reply:
        case CallerError():
            return CODES[reply.code]
        case Accepted():
            return "duplicate" if reply == Accepted(case.message, duplicate=True) else "accepted"
        case Explanation():
            return ",".join(blocker.code for blocker in reply.blockers) or "free"
        case list():
            return "taken" if [delivery.message for delivery in reply] == [case.message] else "left"
    return reply.state


def build(new_queue, state, groups):
    moves = {"dead_letter_queue": "dead"} if state in {"moving", "moved"} else {}
    expires = {"ttl_ms": 60_000} if state == "expired" else {}
    queue = new_queue(groups=groups, **moves, **expires)
    case = STATES[state](queue)
    if state == "absent":
        queue.receive()
    return queue, case


def outcome(new_queue, state, groups, command):
    queue, case = build(new_queue, state, groups)
    return cell(queue.reply(COMMANDS[command](case)), case)


def everything(queue):
    """All one can see of a queue's messages, once what is over is swept."""
    queue.ask(c.Wake())
    looks = (c.Browse(Scope.LIVE), c.Browse(Scope.FAILED), c.NextMove())
    # A crash between two looks takes a sequence, for the claim after it.
    stats = replace(queue.ask(c.Count()), sequence=0)
    return [repr(stats), *(repr(queue.ask(look)) for look in looks)]


@pytest.mark.parametrize("groups", KINDS)
@pytest.mark.parametrize("state", STATES)
def test_every_command_meets_every_state_as_the_table_says(new_queue, state, groups):
    expected = {command: KINDS[groups][state, command] for command in COMMANDS}

    assert {command: outcome(new_queue, state, groups, command) for command in COMMANDS} == expected


@pytest.mark.parametrize("state", STATES)
def test_a_refusal_changes_nothing(new_queue, state):
    refused = [command for command in COMMANDS if PLAIN_CELLS[state, command].startswith("!")]
    queue, case = build(new_queue, state, Groups.ORDERED)
    before = everything(queue)

    for command in refused:
        queue.reply(COMMANDS[command](case))

    assert everything(queue) == before


def test_the_table_has_no_empty_cell_and_none_too_many():
    assert set(PLAIN_CELLS) == {(state, command) for state in STATES for command in COMMANDS}
    assert set(FIFO_CELLS) == set(PLAIN_CELLS)


def test_every_command_has_a_rule():
    assert set(RULES) == set(get_args(c.Command))


def test_every_command_is_in_the_table_or_in_tests_of_its_own():
    in_table = {type(command(Case(1))) for command in COMMANDS.values()}
    folder = Path(__file__).parent

    assert in_table | set(ELSEWHERE) == set(get_args(c.Command))
    for command, file in ELSEWHERE.items():
        assert f"{command.__name__}(" in (folder / file).read_text()
