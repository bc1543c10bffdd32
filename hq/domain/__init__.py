"""The rules of the queue, pure: no clock, no chance, no I/O; time and randomness come in as arguments.

`decide` turns a command into events and a reply, `apply` turns an event into state. Start at decide.py.
"""
