"""The handlers: plain functions of a call. They know queues and JSON, and nothing of any server."""
