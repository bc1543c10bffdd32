"""The package that executors need, as an archive: made once, sent by Spark to every one of them."""

from __future__ import annotations

import tempfile
import zipfile
from importlib import import_module
from pathlib import Path

# Fixed, so that the same source is the same archive.
_AT = (1980, 1, 1, 0, 0, 0)


def archive() -> Path:
    """pyspark_hq as a zip, which is all that a job over http needs beside pyarrow."""
    package = import_module("pyspark_hq")
    assert package.__file__ is not None
    folder = Path(package.__file__).parent
    made = Path(tempfile.mkdtemp(prefix="hq-spark-")) / "pyspark_hq.zip"
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as written:
        for module in sorted(folder.glob("*.py")):
            written.writestr(zipfile.ZipInfo(f"pyspark_hq/{module.name}", _AT), module.read_bytes())
    return made
