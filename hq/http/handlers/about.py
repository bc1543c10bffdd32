"""What this server is: metrics, the OpenAPI document and a page that shows it."""

from __future__ import annotations

from functools import cache
from html import escape
from importlib import import_module

from hq.http.calls import Call
from hq.http.metrics import CONTENT_TYPE
from hq.http.replies import Reply, encode

HTML = "text/html; charset=utf-8"
POLICY = b"default-src 'none'; style-src 'unsafe-inline'"
STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; }
code { font-family: ui-monospace, monospace; } table { border-collapse: collapse; width: 100%; }
td { padding: .3rem .6rem; border-top: 1px solid #ddd; vertical-align: top; }
"""


async def metrics(call: Call) -> Reply:
    """For Prometheus."""
    return Reply(200, call.api.metrics.text(), CONTENT_TYPE)


async def openapi(_: Call) -> Reply:
    """The OpenAPI document."""
    return Reply(200, _document())


async def page(_: Call) -> Reply:
    """A list of all routes, without anything from elsewhere."""
    return Reply(200, _page(), HTML, ((b"content-security-policy", POLICY),))


@cache
def _document() -> bytes:
    # Imported late: the document is made from the table that this handler is in.
    return encode(import_module("hq.http.openapi").document())


@cache
def _page() -> bytes:
    routes = import_module("hq.http.routes").ROUTES
    rows = "".join(
        f"<tr><td><code>{route.method}</code></td><td><code>{escape(route.path)}</code></td>"
        f"<td>{escape(route.summary)}</td><td>{route.scope.value}</td></tr>"
        for route in routes
    )
    text = (
        "<!doctype html><html lang=en><meta charset=utf-8><title>hq</title>"
        f"<style>{STYLE}</style><h1>hq</h1>"
        "<p>All of it is in <a href=/openapi.json>/openapi.json</a>.</p>"
        f"<table>{rows}</table></html>"
    )
    return text.encode()
