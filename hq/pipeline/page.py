"""A report as one HTML page that loads nothing from anywhere and follows the reader's light or dark."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from html import escape

from hq.pipeline.plots import Series, Span, bar, lines, number
from hq.pipeline.report import Percentiles, Point, QueueReport, Report

NOTHING = "-"
_UNITS = ((86_400_000, "d"), (3_600_000, "h"), (60_000, "min"), (1_000, "s"))
MOST_PLOTTED = 12
"""Queues that get plots, those with most messages first; all are in the table."""

_STYLE = """
:root{color-scheme:light dark;--ink:#1c2430;--soft:#5d6b7d;--ground:#f6f7f9;--card:#fff;--line:#e2e6ec;
--c0:#2f6fed;--c1:#12a594;--c2:#e5484d;--area:#2f6fed1c;--good:#2b9a66;--fair:#d9940f;--bad:#e5484d}
@media(prefers-color-scheme:dark){:root{--ink:#e6eaf0;--soft:#93a1b3;--ground:#11151b;--card:#1a2029;
--line:#2a323e;--c0:#6ea0ff;--c1:#3fd0bd;--c2:#ff7a7f;--area:#6ea0ff22;--good:#4cc38a;--fair:#f0b93a;
--bad:#ff7a7f}}
*{box-sizing:border-box}body{margin:0 auto;max-width:1360px;padding:32px 24px 64px;background:var(--ground);
color:var(--ink);font:14px/1.5 system-ui,-apple-system,"Segoe UI",Roboto,sans-serif}
h1{font-size:26px;margin:0}h2{font-size:18px;margin:40px 0 12px}p.when{color:var(--soft);margin:4px 0 24px}
.tiles{display:grid;grid-template-columns:repeat(auto-fit,minmax(150px,1fr));gap:12px}
.tile,figure,.table{background:var(--card);border:1px solid var(--line);border-radius:10px}
.tile{padding:14px 16px}.tile b{display:block;font-size:24px;font-weight:600;line-height:1.2}
.tile span{color:var(--soft);font-size:12px}.table{overflow-x:auto;margin-top:16px}
table{border-collapse:collapse;width:100%;font-variant-numeric:tabular-nums;font-size:13px}
th,td{padding:8px 9px;text-align:right;white-space:nowrap;border-top:1px solid var(--line)}
thead th{border-top:0;color:var(--soft);font-weight:500;font-size:12px}
th:first-child,td:first-child{text-align:left}
td small{color:var(--soft)}.plots{display:grid;grid-template-columns:repeat(auto-fit,minmax(460px,1fr));
gap:12px}
figure{margin:0;padding:14px 16px 8px}figcaption{display:flex;justify-content:space-between;font-weight:500}
.legend{display:flex;white-space:nowrap;gap:12px;list-style:none;margin:0;padding:0;color:var(--soft);font-weight:400;
font-size:12px}
.legend i{display:inline-block;width:10px;height:10px;border-radius:3px;margin-right:5px}
.k0{background:var(--c0)}.k1{background:var(--c1)}.k2{background:var(--c2)}svg{display:block;width:100%;
height:auto}
.grid{stroke:var(--line);stroke-width:1}.tick{fill:var(--soft);font-size:11px}
.l0,.l1,.l2{fill:none;stroke-width:1.8;stroke-linejoin:round}.l0{stroke:var(--c0)}.l1{stroke:var(--c1)}
.l2{stroke:var(--c2)}.p0{fill:var(--c0)}.p1{fill:var(--c1)}.p2{fill:var(--c2)}.area{fill:var(--area)}
.mark{fill:transparent}.mark:hover{fill:var(--area)}
.bar{display:inline-block;width:72px;height:8px;border-radius:4px;background:var(--line);margin-left:8px}
.bar span{display:block;height:100%;border-radius:4px}.good{background:var(--good)}
.fair{background:var(--fair)}
.bad{background:var(--bad)}footer{margin-top:40px;color:var(--soft);font-size:12px}
"""
_HEADS = (
    "queue", "enqueued", "completed", "per minute", "wait p50 / p95 / p99",
    "work p50 / p95 / p99", "attempts",
    "retried", "lapsed", "failed", "depth", "oldest", "in time", "error budget",
)  # fmt: skip


def page(made: Report) -> str:
    """The whole page."""
    plotted = sorted(made.queues, key=lambda one: (-one.enqueued - one.received, one.queue))[:MOST_PLOTTED]
    since, until = (datetime.fromtimestamp(at / 1_000, UTC) for at in (made.since, made.until))
    goal = made.objective
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width,initial-scale=1">'
        f"<title>hq report</title><style>{_STYLE}</style></head><body><h1>Queues</h1>"
        f'<p class="when">{since:%d %b %Y %H:%M} to {until:%d %b %Y %H:%M} UTC. Objective:'
        f" {goal.share:.4g} of messages are received within {span_of(goal.wait_ms)} of being ready.</p>"
        f"{_tiles(made.queues)}{_table(made.queues)}"
        f"{''.join(_plots(one, made) for one in plotted)}{_reasons(made.queues)}"
        "<footer>Waiting is from ready to received, working from received to settled. Percentiles in plots"
        " are those of sketches, in the table exact.</footer></body></html>"
    )


def span_of(ms: float | None) -> str:
    """A span of time in the unit that fits it."""
    if ms is None:
        return NOTHING
    for size, unit in _UNITS:
        if ms >= size:
            return f"{ms / size:.3g} {unit}"
    return f"{ms:.3g} ms"


def percent(share: float | None) -> str:
    """A share, so that what is not all of it never looks so."""
    if share is None:
        return NOTHING
    text = f"{share * 100:.2f}"
    return f"{'99.99' if text == '100.00' and share < 1 else text.rstrip('0').rstrip('.')} %"


def _tiles(queues: Sequence[QueueReport]) -> str:
    ended = sum(one.completed + one.failed for one in queues)
    failed = sum(one.failed for one in queues)
    tiles = (
        ("queues", str(len(queues))),
        ("enqueued", number(sum(one.enqueued for one in queues))),
        ("completed", number(sum(one.completed for one in queues))),
        ("a minute", number(sum(one.per_minute for one in queues))),
        ("waiting or leased now", number(sum(one.depth for one in queues))),
        (f"failed, {percent(failed / ended if ended else None)} of what ended", number(failed)),
    )
    return '<div class="tiles">' + "".join(
        f'<div class="tile"><b>{escape(value)}</b><span>{escape(name)}</span></div>' for name, value in tiles
    ) + "</div>"  # fmt: skip


def _table(queues: Sequence[QueueReport]) -> str:
    head = "".join(f"<th>{name}</th>" for name in _HEADS)
    return (
        f'<div class="table"><table><thead><tr>{head}</tr></thead><tbody>'
        f"{''.join(_row(one) for one in queues)}</tbody></table></div>"
    )


def _row(one: QueueReport) -> str:
    budget = NOTHING if one.budget_left is None else f"{one.budget_left * 100:.0f} %{bar(one.budget_left)}"
    cells = (
        escape(one.queue or "(deleted)"), f"{one.enqueued:,}", f"{one.completed:,}", number(one.per_minute),
        _three(one.wait_ms), _three(one.work_ms), NOTHING if one.attempts is None else f"{one.attempts:.2f}",
        percent(one.retry_rate), percent(one.lapse_rate),
        f"{one.failed:,} <small>{percent(one.failure_rate)}</small>", f"{one.depth:,}",
        span_of(one.oldest_ms), percent(one.attained), budget,
    )  # fmt: skip
    return "<tr>" + "".join(f"<td>{cell}</td>" for cell in cells) + "</tr>"


def _three(values: Percentiles | None) -> str:
    return NOTHING if values is None else " / ".join(span_of(value) for value in values)


def _plots(one: QueueReport, made: Report) -> str:
    points = _without_gaps([point for point in made.points if point.queue == one.queue], made)
    span = Span(made.since, made.until, made.step_ms)
    minutes = made.step_ms / 60_000
    drawn = (
        lines("messages a minute", [
            Series("enqueued", [(p.start, p.enqueued / minutes) for p in points]),
            Series("completed", [(p.start, p.completed / minutes) for p in points]),
            Series("failed", [(p.start, p.failed / minutes) for p in points]),
        ], span),
        _times("waiting time", points, "wait_ms", span),
        _times("working time", points, "work_ms", span),
        lines("depth", [Series("waiting or leased", [(p.start, p.depth) for p in points])], span),
    )  # fmt: skip
    return f'<h2>{escape(one.queue or "(deleted)")}</h2><div class="plots">{"".join(drawn)}</div>'


def _without_gaps(points: Sequence[Point], made: Report) -> list[Point]:
    """Where nothing happened, nothing came and the depth stayed."""
    there = {point.start: point for point in points}
    found, depth = [], 0
    for start in range(made.since // made.step_ms * made.step_ms, made.until, made.step_ms):
        nothing = Point(queue="", start=start, enqueued=0, completed=0, retried=0, failed=0, depth=depth)
        found.append(there.get(start, nothing))
        depth = found[-1].depth
    return found


def _times(title: str, points: Sequence[Point], name: str, span: Span) -> str:
    """Percentiles, in the unit that fits the longest."""
    found: list[tuple[int, Percentiles | None]] = [(point.start, getattr(point, name)) for point in points]
    longest = max((three.p99 for _, three in found if three is not None), default=0.0)
    size, unit = next((pair for pair in _UNITS if longest >= pair[0]), (1, "ms"))
    series = [
        Series(part, [(at, None if three is None else three[place] / size) for at, three in found])
        for place, part in enumerate(Percentiles._fields)
    ]
    return lines(title, series, span, f" {unit}")


def _reasons(queues: Sequence[QueueReport]) -> str:
    rows = [(one.queue, reason, count, one.failed) for one in queues for reason, count in one.reasons]
    if not rows:
        return ""
    cells = "".join(
        f"<tr><td>{escape(queue)}</td><td>{escape(reason)}</td><td>{count:,}</td></tr>"
        for queue, reason, count, _ in rows
    )
    return (
        '<h2>Dead letters</h2><div class="table"><table><thead><tr><th>queue</th><th>reason</th>'
        f"<th>messages</th></tr></thead><tbody>{cells}</tbody></table></div>"
    )
