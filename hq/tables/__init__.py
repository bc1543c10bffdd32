"""The journal and the messages of a queue as tables, for readers that want many rows at once."""
