"""The files of configs/ load, and sqlite.toml shows every key with its default."""

import re
from pathlib import Path

import pytest

from hq.config import Config, describe, load

CONFIGS = Path(__file__).resolve().parents[2] / "configs"
COMMENTED_KEY = re.compile(r"^#(?=\w+ = )", re.MULTILINE)


@pytest.mark.parametrize("example", sorted(CONFIGS.iterdir()), ids=lambda path: path.name)
def test_an_example_loads(example):
    assert isinstance(load(example), Config)


def test_there_are_examples_to_load():
    assert {path.name for path in CONFIGS.iterdir()} >= {"development.toml", "sqlite.toml"}


def test_the_sqlite_example_shows_every_key_with_its_default(tmp_path):
    shown = COMMENTED_KEY.sub("", (CONFIGS / "sqlite.toml").read_text())
    sections = re.split(r"^\[(\w+)\]$", f"[]\n{shown}", flags=re.MULTILINE)
    found = set(re.findall(r"^(\w+) = ", sections[0], re.MULTILINE))
    for section, body in zip(sections[1::2], sections[2::2], strict=True):
        found |= {f"{section}.{name}" for name in re.findall(r"^(\w+) = ", body, re.MULTILINE)}
    assert found == {key.name for key in describe()}

    (tmp_path / "shown.toml").write_text(shown)
    assert load(tmp_path / "shown.toml") == Config()


@pytest.mark.parametrize("example", sorted(CONFIGS.iterdir()), ids=lambda path: path.name)
def test_every_key_of_an_example_is_explained_above_it(example):
    lines = example.read_text().splitlines()
    keys = [number for number, line in enumerate(lines) if re.match(r"#?\w+ = ", line)]
    assert [lines[number] for number in keys if not lines[number - 1].startswith("# ")] == []
