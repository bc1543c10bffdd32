"""Spark on hq's tables: sessions that find a Java, the same Python, and hq on every executor."""

from hq.pipeline.session import session

__all__ = ["session"]
