"""docs/spark.md: its examples run in order, and every option and column is there."""

import dataclasses
import re
from pathlib import Path

import pytest

from hq.tables import events, messages
from pyspark_hq.options import Options

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "spark.md").read_text()
EXAMPLES = re.findall(r"^```python\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.xdist_group("spark")
def test_the_examples_run(spark, own_server, tmp_path):
    own_server.create("emails")
    assert len(EXAMPLES) == 4
    said = {}
    for example in EXAMPLES:
        here = example.replace("http://127.0.0.1:9999", own_server.url).replace(
            '"lake/', f'"{tmp_path}/lake/'
        )
        exec(compile(here, "docs/spark.md", "exec"), said)

    assert sorted(own_server.keys("emails")) == ["1", "2"]
    assert spark.read.parquet(str(tmp_path / "lake" / "events")).count() == 1


def test_every_option_and_column_is_on_the_page():
    _, _, options = PAGE.partition("\n## Options\n")
    assert set(re.findall(r"`(\w+)`", "".join(re.findall(r"^\| (`[^|]+) \|", options, re.MULTILINE)))) == {
        field.name for field in dataclasses.fields(Options)
    }
    [of_events] = re.findall(r"^\| `events` \|[^|]+\|([^|]+)\|$", PAGE, re.MULTILINE)
    [of_messages] = re.findall(r"^\| `messages` \|[^|]+\|([^|]+)\|$", PAGE, re.MULTILINE)
    assert re.findall(r"`(\w+)`", of_events) == events.SCHEMA.names
    assert re.findall(r"`(\w+)`", of_messages) == messages.SCHEMA.names
