"""What the server says of itself, and how it says no."""

import re
from functools import partial

import httpx
import pytest
from prometheus_client.parser import text_string_to_metric_families

from hq import __version__
from hq.actors.node import Node
from hq.backends.port import Ending
from hq.errors import JournalPruned, StorageFull
from hq.http.answers import answer
from hq.http.calls import Api, Terms
from hq.http.routes import ROUTES, Route, Scope
from hq.system.system import Opening, embedded
from hq.testing import SeededChance
from tests.actors.scripted import ScriptedBackend
from tests.http.shapes import check_problem, refused
from tests.http.ways import application, everywhere, opened

PLACES = {"{queue}": "emails", "{id}": "00000000-0000-8000-8400-000000000001", "{name}": "n", "{task}": "1"}
METHODS = {"GET", "HEAD", "POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "BREW"}


def filled(path):
    for place, value in PLACES.items():
        path = path.replace(place, value)
    return path


@everywhere
async def test_a_process_that_runs_says_so(client):
    response = await client.get("/healthz")
    assert (response.status_code, response.json()) == (200, {"status": "ok", "now": 1_000_000})
    assert "server" not in response.headers


@everywhere
async def test_a_server_that_can_store_says_so_and_how_well(client, emails):
    response = await client.get("/readyz")
    assert (response.status_code, response.json()) == (
        200,
        {"status": "ok", "durability": "nothing", "queues": 1},
    )


async def test_a_server_that_stops_is_not_ready(api, in_process):
    api.drain()
    refused(await in_process.get("/readyz"), 503, "stopping")
    assert (await in_process.get("/healthz")).status_code == 200


@everywhere
async def test_metrics_count_requests_and_messages(client, emails):
    await client.post(f"{emails}/enqueue", content=b"x")
    await client.get(f"{emails}/receive")
    await client.get("/queues/none")

    response = await client.get("/metrics")

    assert response.headers["content-type"].startswith("text/plain; version=0.0.4")
    found = {
        (sample.name, *sorted(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(response.text)
        for sample in family.samples
    }
    route = ("method", "POST"), ("route", "/queues/{queue}/enqueue"), ("status", "200")
    assert found["hq_http_requests_total", *route] == 1
    assert found["hq_queue_messages", ("queue", "emails"), ("state", "leased")] == 1
    assert found["hq_messages_enqueued_total", ("queue", "emails")] == 1


@everywhere
async def test_every_route_is_in_the_openapi_document(client):
    document = (await client.get("/openapi.json")).json()
    assert document["openapi"] == "3.1.0"
    assert document["info"]["version"] == __version__
    told = {(method.upper(), path) for path, methods in document["paths"].items() for method in methods}
    assert told == {(route.method, route.path) for route in ROUTES}
    references = set(re.findall(r'"#/components/schemas/([^"]+)"', (await client.get("/openapi.json")).text))
    assert references <= document["components"]["schemas"].keys()


@everywhere
async def test_the_page_for_people_loads_nothing_from_elsewhere(client):
    response = await client.get("/docs")
    assert response.headers["content-type"] == "text/html; charset=utf-8"
    assert "default-src 'none'" in response.headers["content-security-policy"]
    assert re.findall(r"(?:src|href|action)=[\"']?([^\"'\s>]+)", response.text) == ["/openapi.json"]
    assert not re.search(r"<script|<link|<img|<iframe|@import|url\(|//", response.text)
    for route in ROUTES:
        assert route.path in response.text


@everywhere
async def test_there_is_nothing_at_another_address(client):
    for path in ("/", "/nothing", "/queues/a/b/c/d", "/queues/a/nothing", "/web", "/static/x"):
        refused(await client.get(path), 404, "not_found")


async def test_an_address_takes_the_methods_it_says(client):
    for path in {route.path for route in ROUTES}:
        methods = {route.method for route in ROUTES if route.path == path}
        for method in METHODS - methods:
            response = await client.request(method, filled(path))
            assert response.status_code == 405
            if method != "HEAD":
                refused(response, 405, "method_not_allowed")
            assert set(response.headers["allow"].split(", ")) == methods


@pytest.mark.parametrize("path", ["/queues/", "/healthz/", "/queues/emails/", "/queues/emails/stats/"])
async def test_a_slash_at_the_end_makes_no_difference(client, emails, path):
    assert (await client.get(path)).content == (await client.get(path.rstrip("/"))).content


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("POST", "/queues//enqueue"),
        ("GET", "/queues//receive"),
        ("PUT", "/messages//complete"),
        ("GET", "/queues/emails//receive"),
    ],
)
async def test_a_path_with_nothing_between_two_slashes_leads_nowhere(client, emails, method, path):
    request = client.build_request(method, "http://127.0.0.1:9999/x")
    request.url = request.url.copy_with(raw_path=path.encode())
    response = await client.send(request)
    assert response.status_code == 404
    check_problem(response)


@pytest.fixture
async def api(clock):
    async with opened(clock, Terms()) as opened_api:
        yield opened_api


@pytest.fixture
async def in_process(api):
    transport = httpx.ASGITransport(await application(api))
    async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1:9999") as client:
        yield client


async def broken(_):
    raise ZeroDivisionError("at /home/hq/secret.py, SELECT * FROM messages")


async def out_of_space(_):
    raise StorageFull("/var/lib/hq/hq.db: disk full")


async def pruned(_):
    raise JournalPruned(17)


async def told_by(api, handler):
    """What a caller is told when a handler does this."""
    route = Route("GET", "/", Scope.PUBLIC, handler, "")
    reply = await answer(api, route, {}, b"", {}, b"")
    headers = {
        "content-type": reply.content_type,
        "cache-control": "no-store",
        "x-content-type-options": "nosniff",
    }
    return httpx.Response(reply.status, content=reply.body, headers={**headers, **dict(reply.headers)})


async def test_a_breakdown_says_nothing_of_what_is_inside(api):
    refused(await told_by(api, broken), 500, "internal")


async def test_a_full_disk_says_when_to_come_again_and_not_where_it_is(api):
    refused(await told_by(api, out_of_space), 503, "storage_full")


async def test_what_is_pruned_says_where_the_journal_begins(api):
    assert "17" in refused(await told_by(api, pruned), 410, "journal_pruned")


@pytest.fixture
def backend():
    return ScriptedBackend()


@pytest.fixture
async def on_bad_storage(backend, clock, terms):
    """A client of a server whose storage does as it is told."""

    async def open_backend():
        return backend

    async with Opening(embedded(open_backend, partial(Node, clock=clock, chance=SeededChance()))) as system:
        transport = httpx.ASGITransport(await application(Api(system.line, terms)))
        async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1:9999") as client:
            await client.post("/queues?name=emails")
            await client.get("/queues/emails/receive")
            yield client


@pytest.mark.parametrize(
    ("ending", "code"),
    [(Ending.UNKNOWN, "outcome_unknown"), (Ending.REFUSED, "not_stored"), (Ending.NOT_OWNER, "not_owner")],
)
async def test_how_an_append_ended_is_told_as_it_is(on_bad_storage, backend, ending, code):
    backend.script.append(ending)
    refused(await on_bad_storage.post("/queues/emails/enqueue", content=b"x"), 503, code)


@pytest.mark.parametrize("terms", [Terms(request_timeout_s=0.05)])
async def test_a_write_that_takes_too_long_may_have_happened(on_bad_storage, backend):
    backend.hold()
    refused(await on_bad_storage.post("/queues/emails/enqueue", content=b"x"), 503, "outcome_unknown")
    backend.let_go()


async def test_one_item_of_many_says_that_its_outcome_is_unknown(on_bad_storage, backend):
    backend.script.append(Ending.UNKNOWN)
    response = await on_bad_storage.post("/queues/emails/messages", json=[{"payload": 1}])
    assert response.json()["results"][0]["error"]["code"] == "outcome_unknown"
