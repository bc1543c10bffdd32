"""The Unix socket beside a SQLite file, on which the process that holds the file listens for the others."""

from __future__ import annotations

import logging
import os
import socket
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from weakref import WeakSet

log = logging.getLogger("hq.shared")

BACKLOG = 1_024
LONGEST = 100
"""Of the path to a socket, in bytes: the shortest that a system allows is 104."""
NEEDED = ("hypercorn", "prometheus_client", "quart")

_listening: WeakSet[socket.socket] = WeakSet()


def socket_beside(database: str) -> Path:
    """Where the socket of a database is."""
    path = Path(database).absolute()
    return path.with_name(path.name + "-socket")


def listen(place: Path) -> socket.socket | None:
    """Listen for processes of the same user; None if that cannot be, and the log says why.

    Only who holds the lock of the database comes here, so a socket that is there is left from a process that
    ended. What serves it may be loaded later: until then those who connect wait.
    """
    missing = [name for name in NEEDED if find_spec(name) is None]
    if missing:
        log.info("not shared: pip install 'hq-queue[shared]'", extra={"missing": missing})
        return None
    if len(os.fsencode(place)) > LONGEST:
        log.warning("not shared: the path of its socket would be too long", extra={"path": str(place)})
        return None
    listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    with suppress(FileNotFoundError):
        place.unlink()
    listening.bind(str(place))
    # Before it listens: nobody else ever gets in.
    place.chmod(0o600)
    listening.listen(BACKLOG)
    listening.setblocking(False)  # noqa: FBT003 - the name of the standard library
    _listening.add(listening)
    return listening


def hang_up(listening: socket.socket, place: Path) -> None:
    """Listen no more, and leave nothing behind."""
    listening.close()
    with suppress(FileNotFoundError):
        place.unlink()


def _forget() -> None:
    # The child of a fork would keep the socket and its connections alive when its parent has ended, and
    # whoever is at the other end waiting.
    places = {listening.getsockname() for listening in _listening if listening.fileno() >= 0}
    for listening in _listening:
        listening.close()
    if places:
        _let_go(places)


def _let_go(places: set[str]) -> None:
    """Put nothing in the place of every connection that was accepted there.

    They are not closed: objects that the parent's loop left in this process know them by their numbers, and
    would close whatever was opened under these later.
    """
    nothing = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
    for number in [int(entry.name) for entry in Path("/dev/fd").iterdir()]:
        # Most of them are no sockets.
        with suppress(OSError):
            one = socket.socket(fileno=number)
            try:
                is_ours = one.family == socket.AF_UNIX and one.getsockname() in places
            finally:
                one.detach()
            if is_ours:
                os.dup2(nothing, number, inheritable=False)
    os.close(nothing)


os.register_at_fork(after_in_child=_forget)
