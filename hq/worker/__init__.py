"""Workers: handlers for queues, and functions that are jobs."""
