"""Reports: figures worked out by hand, percentiles against numpy, and a page that stands by itself."""

import asyncio
import json
import re
from html.parser import HTMLParser

import numpy as np
import pyarrow.parquet as pq
import pytest
from msgspec.structs import replace

from hq.pipeline.archive import archive, by_spark
from hq.pipeline.build import build
from hq.pipeline.page import page
from hq.pipeline.report import Objective, report, write_tables
from hq.pipeline.store import Place
from tests.pipeline.fixed import START, S, write_first, write_second
from tests.pipeline.lakes import lake_at
from tests.pipeline.marks import spark_test

pytestmark = spark_test


@pytest.fixture(scope="module")
def lake(spark, tmp_path_factory):
    folder = tmp_path_factory.mktemp("report")
    place = Place(f"sqlite:///{folder}/hq.db")
    asyncio.run(write_first(place.url))
    asyncio.run(write_second(place.url))
    made = lake_at(folder / "lake")
    archive(made, place, by_spark(spark, place))
    build(spark, made)
    return made


@pytest.fixture(scope="module")
def made(spark, lake):
    return report(spark, lake, Objective(wait_ms=4_000, share=0.8))


def test_figures_are_those_worked_out_by_hand(made):
    emails, other = made.queues
    assert (made.since, made.until) == (START, START + 900 * S)
    assert (emails.queue, emails.enqueued, emails.received, emails.completed) == ("emails", 5, 5, 2)
    assert (emails.retried, emails.lapsed, emails.failed, emails.expired) == (1, 1, 1, 0)
    assert emails.per_minute == pytest.approx(2 / 15)
    assert emails.attempts == pytest.approx((1 + 2 + 2) / 3)
    assert emails.depth == 1
    assert emails.oldest_ms == 900 * S
    assert (emails.retry_rate, emails.lapse_rate) == (1 / 5, 1 / 5)
    assert emails.failure_rate == pytest.approx(1 / 3)
    # Three of five were received within four seconds; of five, one might have been late.
    assert emails.attained == 3 / 5
    assert emails.budget_left == pytest.approx(-1)
    assert emails.reasons == (("failed", 1),)
    assert (other.enqueued, other.depth, other.oldest_ms, other.wait_ms) == (3, 0, None, None)


def test_percentiles_are_those_of_numpy(made):
    emails = made.queues[0]
    assert emails.wait_ms == pytest.approx(np.percentile([2_000, 2_000, 2_000, 9_000, 5_000], [50, 95, 99]))
    assert emails.work_ms == pytest.approx(np.percentile([3_000, 1_000, 1_000, 6_000, 1_000], [50, 95, 99]))
    assert emails.total_ms == pytest.approx(np.percentile([5_000, 10_000], [50, 95, 99]))


def test_depth_follows_what_came_in_and_what_left(made):
    depths = {(one.queue, (one.start - START) // S): one.depth for one in made.points}
    assert depths == {("emails", 0): 1, ("emails", 600): 1, ("other", 0): 3, ("other", 600): 0}


def test_a_report_of_one_queue_and_a_later_span_has_nothing_else(spark, lake):
    made = report(spark, lake, Objective(), since=START + 600 * S, queue="emails")
    [emails] = made.queues
    assert (emails.enqueued, emails.completed, emails.wait_ms, emails.depth) == (1, 0, None, 1)


def test_tables_are_written_as_json_and_parquet(made, tmp_path):
    write_tables(made, tmp_path / "out")
    told = json.loads((tmp_path / "out" / "report.json").read_bytes())
    queues = pq.read_table(tmp_path / "out" / "queues.parquet").to_pylist()
    assert [one["queue"] for one in told["queues"]] == [one["queue"] for one in queues] == ["emails", "other"]
    assert queues[0]["wait_p99_ms"] == made.queues[0].wait_ms.p99
    assert pq.read_table(tmp_path / "out" / "points.parquet").num_rows == len(made.points)


class Tags(HTMLParser):
    """What a page is made of."""

    def __init__(self, text):
        super().__init__()
        self.found, self.open = [], []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.found.append((tag, dict(attrs)))
        if tag != "meta":
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.found.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def test_the_page_stands_by_itself(made):
    text = page(made)
    tags = Tags(text)
    assert tags.open == []
    assert not {tag for tag, _ in tags.found} & {"script", "link", "img", "iframe"}
    assert not re.findall(r"url\(|@import|src=|href=|https?:", text)
    assert sum(tag == "svg" for tag, _ in tags.found) == 4 * len(made.queues)
    assert "prefers-color-scheme:dark" in text
    for told in ("emails", "2 s / 8.2 s / 8.84 s", "33.33 %", "-100 %", "60 %"):
        assert told in text, told


def test_what_a_queue_is_called_cannot_change_the_page(made):
    hostile = made.queues[0]
    text = page(replace(made, queues=(replace(hostile, queue="<script>", reasons=(("<b>", 1),)),)))
    assert "<script>" not in text
    assert "<b>" not in text.split("Dead letters")[1]
