"""A server that others can reach wants keys."""

import pytest

from hq.config import load
from hq.errors import ConfigInvalid

ANYWHERE = [
    "0.0.0.0",  # noqa: S104 - the bind that is refused
    "::",
    "192.168.1.5",
    "2001:db8::1",
    "queue.example.com",
    "localhost.example.com",
    "0",
    "127.1",
    "::ffff:127.0.0.1",
]


@pytest.mark.parametrize(
    "host", ["127.0.0.1", "127.8.8.8", "::1", "0:0:0:0:0:0:0:1", "localhost", "LocalHost"]
)
def test_a_loopback_host_needs_no_keys(host):
    load(flags={"--host": host}).server.check_bind(keys=0)


@pytest.mark.parametrize("host", ANYWHERE)
def test_any_other_host_without_keys_is_refused(host):
    found = load(flags={"--host": host})
    with pytest.raises(ConfigInvalid) as refused:
        found.server.check_bind(keys=0)
    assert repr(host) in str(refused.value)
    assert "server.allow_unauthenticated_bind" in str(refused.value)


@pytest.mark.parametrize("host", ANYWHERE)
def test_any_host_is_taken_with_keys_or_by_saying_so(host):
    load(flags={"--host": host}).server.check_bind(keys=1)
    load(flags={"--host": host, "--allow-unauthenticated-bind": True}).server.check_bind(keys=0)
