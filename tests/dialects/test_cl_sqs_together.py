"""cl-sqs under load (C1, C13): whoever asks at once, nothing is lost, doubled or reordered."""

import asyncio
import random
from collections import Counter, defaultdict

import httpx
import pytest

from hq.http.dialects.table import BY_NAME
from tests.dialects.asgi import ask
from tests.dialects.conftest import dialect_application
from tests.http.ways import opened, served

PRODUCERS = CONSUMERS = 10
EACH = 100
GROUPS = 100


@pytest.fixture
async def api(clock, terms):
    async with opened(clock, terms) as opened_api:
        yield opened_api


@pytest.fixture
async def app(api):
    return await dialect_application(api, BY_NAME["cl-sqs"])


@pytest.mark.parametrize("engine", ["hypercorn", "uvicorn"])
async def test_nothing_is_consumed_twice_and_nothing_is_lost(api, app, engine):  # C1
    chance = random.Random(1)
    consumed = []

    async with (
        served(engine, api, app) as address,
        httpx.AsyncClient(base_url=address, timeout=60) as client,
    ):

        async def produce(number):
            for one in range(EACH):
                group = f"g{chance.randrange(GROUPS)}"
                sent = await client.post("/queue", params={"group-id": group}, content=f"{number}-{one}")
                assert sent.status_code == 200

        async def consume():
            while len(consumed) < PRODUCERS * EACH:
                got = await client.get("/queue?visibility-timeout=86400")
                if got.status_code == 204:
                    continue
                receipt = got.headers["message-receipt-id"]
                deleted = await client.delete("/queue", params={"receipt-id": receipt})
                assert deleted.status_code == 200
                consumed.append(got.text)

        async with asyncio.TaskGroup() as tasks:
            for number in range(PRODUCERS):
                tasks.create_task(produce(number))
            for _ in range(CONSUMERS):
                tasks.create_task(consume())
        assert (await client.get("/queue?visibility-timeout=0")).status_code == 204

    sent = {f"{number}-{one}" for number in range(PRODUCERS) for one in range(EACH)}
    assert Counter(consumed) == Counter(sent)


async def test_two_that_ask_at_once_get_the_heads_of_two_groups(app):  # C13
    for group in "ab":
        assert (await ask(app, "POST", "/queue", f"group-id={group}", group.encode()))[0] == 200
    got = await asyncio.gather(*(ask(app, "GET", "/queue") for _ in range(3)))
    assert sorted((status, body) for status, _, body in got) == [(200, b"a"), (200, b"b"), (204, b"")]


async def test_of_two_that_delete_at_once_one_has_deleted(app):
    await ask(app, "POST", "/queue", "group-id=a", b"x")
    _, headers, _ = await ask(app, "GET", "/queue")
    query = f"receipt-id={headers[b'message-receipt-id'].decode()}"
    deleted = await asyncio.gather(*(ask(app, "DELETE", "/queue", query) for _ in range(2)))
    assert sorted(status for status, _, _ in deleted) == [200, 204]


@pytest.mark.slow
async def test_a_thousand_groups_are_drained_in_order(app):
    groups, each = 1_000, 20
    order = [group for group in range(groups) for _ in range(each)]
    random.Random(1).shuffle(order)
    sent = defaultdict(list)
    for number, group in enumerate(order):
        status, _, _ = await ask(app, "POST", "/queue", f"group-id={group}", b"%d %d" % (group, number))
        assert status == 200
        sent[group].append(number)
    got = defaultdict(list)

    async def consume():
        while True:
            status, headers, body = await ask(app, "GET", "/queue", "visibility-timeout=86400")
            if status == 204:
                return
            group, number = map(int, body.split())
            got[group].append(number)
            query = f"receipt-id={headers[b'message-receipt-id'].decode()}"
            assert (await ask(app, "DELETE", "/queue", query))[0] == 200

    await asyncio.gather(*(consume() for _ in range(CONSUMERS)))
    # A consumer leaves when all that is left is with others, and the last leaves nothing.
    await consume()
    assert got == sent
