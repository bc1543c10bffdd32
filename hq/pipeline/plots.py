"""Plots as SVG: lines over time and bars, drawn with nothing but text."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from html import escape
from math import ceil, floor, log10
from typing import NamedTuple

WIDTH, HEIGHT = 640, 220
LEFT, RIGHT, TOP, BOTTOM = 56, 12, 12, 28
TICKS = 4
TIMES = 4
DAY_MS = 86_400_000


class Series(NamedTuple):
    """A line: its name, and values at instants; a gap where there is none."""

    name: str
    values: Sequence[tuple[int, float | None]]


class Span(NamedTuple):
    """From when to when a plot goes, and how far its points are from each other."""

    since: int
    until: int
    step: int


def lines(title: str, series: Sequence[Series], span: Span, unit: str = "") -> str:
    """Lines over one axis of time, the first of them filled."""
    highest = max((value for one in series for _, value in one.values if value is not None), default=0)
    top = _round_up(highest)
    body = [_grid(top, unit), _times(span)]
    for place, one in enumerate(series):
        body += [_run(run, place, span, top) for run in _runs(one, span.step)]
    instants = sorted({at for one in series for at, value in one.values if value})
    marks = "".join(_mark(series, at, span, unit) for at in instants)
    legend = "".join(
        f'<li><i class="k{number}"></i>{escape(one.name)}</li>' for number, one in enumerate(series)
    )
    return (
        f'<figure><figcaption>{escape(title)}<ul class="legend">{legend}</ul></figcaption>'
        f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{escape(title)}">'
        f"{''.join(body)}{marks}</svg></figure>"
    )


def bar(share: float) -> str:
    """A bar that is full at one."""
    width = 100 * min(1.0, max(0.0, share))
    kind = "good" if share > 0.25 else "fair" if share > 0 else "bad"  # noqa: PLR2004 - a quarter left is a warning
    return f'<span class="bar"><span class="{kind}" style="width:{width:.0f}%"></span></span>'


def _runs(one: Series, step: int) -> list[list[tuple[int, float]]]:
    """Points that follow each other without a gap."""
    runs: list[list[tuple[int, float]]] = []
    before = None
    for at, value in one.values:
        if value is None:
            before = None
            continue
        if before is None or at - before > step:
            runs.append([])
        runs[-1].append((at, value))
        before = at
    return runs


def _run(run: list[tuple[int, float]], number: int, span: Span, top: float) -> str:
    places = [(_x(at, span), _y(value, top)) for at, value in run]
    if len(places) == 1:
        x, y = places[0]
        return f'<circle class="p{number}" cx="{x:.1f}" cy="{y:.1f}" r="2.5"/>'
    path = " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
    drawn = f'<polyline class="l{number}" points="{path}"/>'
    if number:
        return drawn
    floor_y = HEIGHT - BOTTOM
    area = f"{places[0][0]:.1f},{floor_y} {path} {places[-1][0]:.1f},{floor_y}"
    return f'<polygon class="area" points="{area}"/>{drawn}'


def _mark(series: Sequence[Series], at: int, span: Span, unit: str) -> str:
    """What is told where the pointer rests."""
    said = [_clock(at, span)]
    for one in series:
        for here, value in one.values:
            if here == at and value is not None:
                said.append(f"{one.name}: {number(value)}{unit}")
    width = max(1.0, (WIDTH - LEFT - RIGHT) * span.step / (span.until - span.since))
    return (
        f'<rect class="mark" x="{_x(at, span) - width / 2:.1f}" y="{TOP}" width="{width:.1f}"'
        f' height="{HEIGHT - TOP - BOTTOM}"><title>{escape(chr(10).join(said))}</title></rect>'
    )


def _grid(top: float, unit: str) -> str:
    drawn = []
    for tick in range(TICKS + 1):
        value = top * tick / TICKS
        y = _y(value, top)
        drawn.append(f'<line class="grid" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y:.1f}" y2="{y:.1f}"/>')
        told = f"{number(value)}{unit}"
        drawn.append(f'<text class="tick" x="{LEFT - 6}" y="{y + 3.5:.1f}" text-anchor="end">{told}</text>')
    return "".join(drawn)


def _times(span: Span) -> str:
    drawn = []
    for tick in range(TIMES + 1):
        at = span.since + (span.until - span.since) * tick // TIMES
        place = "start" if tick == 0 else "end" if tick == TIMES else "middle"
        drawn.append(
            f'<text class="tick" x="{_x(at, span):.1f}" y="{HEIGHT - 8}" text-anchor="{place}">'
            f"{_clock(at, span)}</text>"
        )
    return "".join(drawn)


def _clock(at: int, span: Span) -> str:
    instant = datetime.fromtimestamp(at / 1_000, UTC)
    return instant.strftime("%d %b %H:%M" if span.until - span.since > DAY_MS else "%H:%M")


def _x(at: int, span: Span) -> float:
    return LEFT + (WIDTH - LEFT - RIGHT) * (at - span.since) / (span.until - span.since)


def _y(value: float, top: float) -> float:
    return HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * max(0.0, value) / top


def _round_up(value: float) -> float:
    """The next number that makes even ticks."""
    if value <= 0:
        return float(TICKS)
    unit = 10.0 ** floor(log10(value))
    return next(
        unit * step for step in (1, 1.2, 1.6, 2, 3, 4, 6, 8, 10) if ceil(value / unit * 1e6) <= step * 1e6
    )


def number(value: float) -> str:
    """A number as short as it can be told."""
    for size, letter in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(value) >= size:
            return f"{value / size:.3g}{letter}"
    return f"{value:.3g}"
