"""Spark on hq, with real Spark."""
