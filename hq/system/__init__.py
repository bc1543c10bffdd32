"""hq inside a Python program: open a system, name a queue, enqueue, receive, settle."""
