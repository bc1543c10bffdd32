"""What holds of every dialect, whatever it speaks: guards stand before it, and it is counted and bounded."""

import pytest

from hq.http.calls import Terms
from hq.http.dialects.table import BY_NAME, DIALECTS
from hq.http.routes import ROUTES
from tests.dialects.asgi import ask
from tests.dialects.conftest import WAYS, reached
from tests.http.ways import application, opened

PLACES = {"{queue}": "emails", "{id}": "00000000-0000-8000-8400-000000000001"}


def filled(path):
    for place, value in PLACES.items():
        path = path.replace(place, value)
    return path


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("dialect", BY_NAME)
async def test_guards_stand_before_every_route(dialect, way, clock):
    async with reached(dialect, way, clock, Terms()) as client:
        for route in DIALECTS[BY_NAME[dialect]]:
            for headers, status in (
                ({"content-encoding": "gzip"}, 415),
                ({"origin": "http://elsewhere.example"}, 403),
            ):
                response = await client.request(route.method, filled(route.path), headers=headers)
                assert response.status_code == status, (route.address, response.text)


@pytest.mark.parametrize("way", ["prefix", "root"])
@pytest.mark.parametrize("dialect", BY_NAME)
async def test_what_is_too_large_is_told_alike_by_both_lanes(dialect, way, clock):
    async with reached(dialect, way, clock, Terms(max_body_bytes=1_000)) as client:
        for route in DIALECTS[BY_NAME[dialect]]:
            if route.body is not None:

                async def body():
                    for _ in range(3):
                        yield b"x" * 500

                response = await client.request(route.method, filled(route.path), content=body())
                assert response.status_code == 413
                assert response.headers["connection"] == "close"


async def test_requests_are_counted_by_where_they_are_on_the_main_port(clock):
    async with opened(clock, Terms()) as api:
        app = await application(api)
        await ask(app, "PUT", "/mq/emails")
        await ask(app, "POST", "/mq/emails/messages", body=b"x")
        _, _, metrics = await ask(app, "GET", "/metrics")
    for line in (
        b'hq_http_requests_total{method="PUT",route="/mq/{queue}",status="201"} 1.0',
        b'hq_http_requests_total{method="POST",route="/mq/{queue}/messages",status="201"} 1.0',
    ):
        assert line in metrics


def test_no_prefix_hides_an_address_of_hqs_own():
    firsts = {route.path.split("/")[1] for route in ROUTES}
    for dialect, routes in DIALECTS.items():
        assert dialect.prefix.strip("/") not in firsts
        assert {route.dialect for route in routes} == {dialect}
