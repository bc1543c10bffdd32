"""hq for scripts and threads: the same verbs without await, from any number of threads.

A system runs in an event loop of its own, in a thread of its own; every verb calls over and waits.
"""

from hq.system.blocking.message import Message
from hq.system.blocking.queue import Queue
from hq.system.blocking.system import System, open

__all__ = ["Message", "Queue", "System", "open"]
