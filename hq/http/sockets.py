"""The listening socket, and the files a process may have open."""

from __future__ import annotations

import resource
import socket

from hq.config import Listen, Server
from hq.errors import ConfigInvalid

BACKLOG = 1_024


def allow_files(count: int) -> None:
    """Let this process have so many files open, as far as the system lets it: a connection is a file."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = count if hard == resource.RLIM_INFINITY else min(count, hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def listen(server: Server | Listen) -> socket.socket:
    """The listening socket; its port is chosen by the system if none is."""
    family = socket.AF_INET6 if ":" in server.host else socket.AF_INET
    listening = socket.socket(family, socket.SOCK_STREAM)
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        listening.bind((server.host, server.port))
        listening.listen(BACKLOG)
        listening.setblocking(False)  # noqa: FBT003 - the name of the standard library
    except OSError as error:
        listening.close()
        raise ConfigInvalid(
            f"{server.host}, port {server.port}, cannot be listened on: {error.strerror}"
        ) from error
    return listening
