"""A Spark session that works as it is: on this machine with nothing but pip, or on any cluster."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping

from pyspark.sql import SparkSession

from hq.pipeline.java import java_home
from hq.pipeline.shipping import archive

LOOPBACK = "127.0.0.1"
_DEFAULTS = {
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.python.filterPushdown.enabled": "true",
    "spark.ui.showConsoleProgress": "false",
}
_LOCAL = {
    "spark.driver.host": LOOPBACK,
    "spark.driver.bindAddress": LOOPBACK,
    "spark.ui.enabled": "false",
}


def session(
    master: str = "local[*]", *, name: str = "hq", settings: Mapping[str, str] | None = None
) -> SparkSession:
    """The session of this process, made if there is none; `settings` are Spark's own, and win.

    Sets JAVA_HOME and PYSPARK_PYTHON of this process where they are not set. Executors of a cluster get
    pyspark_hq with the job; they need Python with pyarrow.
    """
    os.environ["JAVA_HOME"] = str(java_home(os.environ))
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
    defaults = dict(_DEFAULTS)
    if master.startswith("local"):
        os.environ.setdefault("SPARK_LOCAL_IP", LOOPBACK)
        defaults |= _LOCAL
    builder = SparkSession.builder.master(master).appName(name)
    for key, value in {**defaults, **(settings or {})}.items():
        builder = builder.config(key, value)
    made = builder.getOrCreate()
    if not master.startswith("local[") and master != "local":
        made.sparkContext.addPyFile(str(archive()))
    return made
