"""The garbage collector of a server: calm, and still at work; in a process of its own, which has one."""

import subprocess
import sys
from textwrap import dedent

SERVING = """
    import asyncio, gc, os, signal
    from hq.config import Config, Server
    from hq.http.server import serve

    def ready(*_):
        print(gc.get_freeze_count() > 10_000, gc.get_threshold()[0] > 10_000, gc.isenabled())
        os.kill(os.getpid(), signal.SIGTERM)

    asyncio.run(serve(Config(database="memory:", server=Server(port=0)), ready=ready))
"""
CYCLES = """
    import weakref
    from hq.system.collector import YOUNG, calm_collector

    class Cycle:
        def __init__(self):
            self.me = self

    calm_collector()
    first = weakref.ref(Cycle())
    for made in range(YOUNG):
        Cycle()
    print(first() is None)
"""


def told(program):
    done = subprocess.run(
        [sys.executable, "-c", dedent(program)], capture_output=True, text=True, check=True, timeout=60
    )
    return done.stdout.split()


def test_a_server_that_is_ready_does_not_look_through_all_it_loaded():
    assert told(SERVING) == ["True", "True", "True"]


def test_what_lies_in_cycles_is_still_freed():
    assert told(CYCLES) == ["True"]
