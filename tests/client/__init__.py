"""hq from another process."""
