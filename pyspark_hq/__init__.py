"""hq for Spark: queues as a source and a sink, by the name `hq`.

Spark finds this module by its name, on the driver and on executors, so nothing is registered. It needs
pyarrow and Spark alone, so a cluster needs no hq: only a journal that is read where it is stored does.
"""

from pyspark_hq.source import HqSource as DefaultSource

__all__ = ["DefaultSource"]
