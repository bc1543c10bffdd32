"""The command line, each command as a process of its own."""
