"""What every test with a real Spark is marked with: slow, and all in one process, so that one JVM runs."""

import pytest

spark_test = [pytest.mark.spark, pytest.mark.slow, pytest.mark.xdist_group("spark")]
