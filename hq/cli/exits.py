"""What the exit code of a command means."""

from __future__ import annotations

from hq import errors
from hq.errors import HQError

FAILURE = 1
USAGE = 2
NOT_FOUND = 3
CONFLICT = 4

_USAGE = (errors.InvalidInput, errors.UnsupportedUrl)
_NOT_FOUND = (
    errors.QueueNotFound,
    errors.MessageNotFound,
    errors.ScheduleNotFound,
    errors.TaskNotFound,
)
_CONFLICT = (
    errors.QueueExists,
    errors.LeaseNotHeld,
    errors.LeaseExpired,
    errors.MessageNotWaiting,
    errors.MessageNotFailed,
    errors.SettingFixed,
    errors.StoreNotEmpty,
)


def exit_code(error: HQError) -> int:
    """The exit code of a command that this error ended."""
    if isinstance(error, _USAGE):
        return USAGE
    if isinstance(error, _NOT_FOUND):
        return NOT_FOUND
    return CONFLICT if isinstance(error, _CONFLICT) else FAILURE


def worst(refused: list[HQError]) -> int:
    """The exit code where some of many were refused: theirs if they agree, else that of a failure."""
    codes = {exit_code(error) for error in refused}
    return codes.pop() if len(codes) == 1 else FAILURE
