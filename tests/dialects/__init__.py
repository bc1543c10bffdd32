"""The dialects, each at its prefix and at the root of a port of its own."""
