"""Real processes that die: the shim that kills at every write and sync, and the loop that kills at random."""
