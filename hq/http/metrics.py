"""Metrics for Prometheus: requests as they are answered, queues as they are when they are read.

Only queues that are awake are told: one that sleeps has not changed since it was last seen, and reading
metrics must not wake it.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import asdict
from itertools import accumulate

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector

from hq.actors.node import Node

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
# What a queue holds now; all other counters only grow.
STATES = ("waiting", "leased", "failed", "moving")


class Metrics:
    """The metrics of one server."""

    def __init__(self, node: Node) -> None:
        self._registry = CollectorRegistry()
        self._requests = _Requests()
        self._registry.register(self._requests)
        self._registry.register(_Queues(node))

    def count(self, method: str, route: str, status: int, seconds: float) -> None:
        """One request was answered."""
        self._requests.count((method, route, status), seconds)

    def text(self) -> bytes:
        """All of them, as Prometheus reads them."""
        return generate_latest(self._registry)


class _Requests(Collector):
    """Requests by route and status. Counted by hand: a metric of the library costs several times as much."""

    def __init__(self) -> None:
        self._counts: defaultdict[tuple[str, str, int], int] = defaultdict(int)
        self._buckets: dict[tuple[str, str], list[int]] = {}
        self._sums: defaultdict[tuple[str, str], float] = defaultdict(float)

    def count(self, answered: tuple[str, str, int], seconds: float) -> None:
        """One request was answered."""
        self._counts[answered] += 1
        route = answered[:2]
        buckets = self._buckets.get(route)
        if buckets is None:
            buckets = self._buckets[route] = [0] * (len(SECONDS) + 1)
        buckets[bisect_left(SECONDS, seconds)] += 1
        self._sums[route] += seconds

    def collect(self) -> Iterator[Metric]:
        """Read them."""
        requests = CounterMetricFamily(
            "hq_http_requests", "Requests answered.", labels=["method", "route", "status"]
        )
        for (method, route, status), count in self._counts.items():
            requests.add_metric([method, route, str(status)], count)
        yield requests
        times = HistogramMetricFamily(
            "hq_http_request_seconds", "How long requests took.", labels=["method", "route"]
        )
        for (method, route), buckets in self._buckets.items():
            bounds = [*map(str, SECONDS), "+Inf"]
            named = list(zip(bounds, accumulate(buckets), strict=True))
            times.add_metric([method, route], named, self._sums[method, route])
        yield times


class _Queues(Collector):
    """The counters of every queue that is awake."""

    def __init__(self, node: Node) -> None:
        self._node = node

    def collect(self) -> Iterator[Metric]:
        """Read them."""
        held = GaugeMetricFamily("hq_queue_messages", "Messages in a queue.", labels=["queue", "state"])
        ended: dict[str, CounterMetricFamily] = {}
        for name, counters in self._node.counters():
            for key, value in asdict(counters).items():
                if key in STATES:
                    held.add_metric([name, key], value)
                else:
                    if key not in ended:
                        text = f"Messages: {key}, since the queue was made."
                        ended[key] = CounterMetricFamily(f"hq_messages_{key}", text, labels=["queue"])
                    ended[key].add_metric([name], value)
        yield held
        text = "Receives that wait for messages of a queue; one over a prefix waits for each of its queues."
        waiting = GaugeMetricFamily("hq_queue_waiting_receives", text, labels=["queue"])
        for name, count in self._node.waiting():
            waiting.add_metric([name], count)
        yield waiting
        yield from ended.values()

    def describe(self) -> list[Metric]:
        """Nothing: registering must not read."""
        return []
