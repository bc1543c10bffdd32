"""hq from another process: the verbs of a node, turned into requests of its HTTP API."""
