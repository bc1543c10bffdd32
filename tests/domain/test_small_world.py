"""The small world, as far as a minute goes; `make explore` walks it whole."""

import pytest

from hq.domain import commands as c
from tests.domain.small_world import OPTIONS, WORLDS, Broken, SilentTwin, as_test, walk

EDGES = 110_000


@pytest.mark.slow
@pytest.mark.parametrize("world", WORLDS)
def test_every_promise_holds_on_every_edge(world):
    try:
        done = walk(world, EDGES)
    except Broken as broken:
        pytest.fail(as_test(broken))

    assert done.edges == EDGES
    assert done.states > EDGES / 100


def test_a_broken_promise_is_told_as_a_test_to_paste(monkeypatch):
    monkeypatch.setattr("hq.domain.verbs.settle.is_token", lambda *_: True)

    with pytest.raises(Broken) as found:
        walk("ordered", 30_000)

    told = as_test(found.value)
    assert "def test_found_by_the_small_world():" in told
    assert "twin.take(c.Receive(" in told
    compile(told, "pasted", "exec")


def test_a_dead_letter_that_outlived_a_purge_is_received_when_requeued():
    twin = SilentTwin(WORLDS["ordered"])
    twin.take(c.Enqueue(b"p", OPTIONS[0]))
    twin.take(c.Receive(holder="x"))
    twin.take(c.Release(message=1, token=1))
    twin.take(c.Fail(message=1, token=1))
    twin.take(c.Purge())
    twin.take(c.Requeue(message=1))
    twin.take(c.Receive(holder="x"))
