"""Receiving: one message or several, from one queue or all under a prefix, waiting if the caller wants to."""

import anyio
import pytest

import hq
from hq.http import models as m
from hq.http.calls import Terms
from tests.http.shapes import refused
from tests.http.ways import everywhere


async def enqueue(client, *payloads, queue="emails", **options):
    for payload in payloads:
        response = await client.post(f"/queues/{queue}/messages", json={"payload": payload, **options})
        assert response.status_code == 201, response.text


def payloads_of(response):
    assert response.status_code == 200, response.text
    return [message["payload"] for message in response.json()["messages"]]


@pytest.fixture
async def waiting(client):
    """Begins requests that wait; gives the list that their responses come into."""
    async with anyio.create_task_group() as tasks:

        async def begin(*asked):
            responses = []

            async def request(method, url):
                responses.append(await client.request(method, url))

            for method, url in asked:
                tasks.start_soon(request, method, url)
                await anyio.wait_all_tasks_blocked()
            return responses

        yield begin
        tasks.cancel_scope.cancel()


@pytest.mark.parametrize("options", [{}, {"priority": 3, "group": "g", "headers": {"h": "v"}}])
async def test_every_message_is_said_in_the_order_of_the_model(client, emails, options):
    await enqueue(client, 1, 2, **options)
    received = await client.get(f"{emails}/receive")
    polled = await client.post(f"{emails}/poll")

    for message in (received.json(), *polled.json()["messages"]):
        assert {"id", "queue", "token", "payload", *options} <= message.keys()
        assert [*message] == [name for name in m.Received.__struct_fields__ if name in message]


@everywhere
async def test_a_received_message_is_leased_and_comes_whole(client, emails, clock):
    await enqueue(client, {"to": "a"}, priority=3, headers={"h": "v"})

    response = await client.get(f"{emails}/receive")

    message = response.json()
    assert response.status_code == 200
    assert response.headers["cache-control"] == "no-store"
    assert bytes.fromhex(message.pop("token"))
    assert message == {
        "id": message["id"],
        "queue": "emails",
        "payload": {"to": "a"},
        "content_type": "application/json",
        "headers": {"h": "v"},
        "priority": 3,
        "attempts": 1,
        "receives": 1,
        "enqueued_at": clock.now,
        "lease_expires_at": clock.now + 30_000,
    }


@everywhere
async def test_nothing_to_receive_is_null(client, emails):
    response = await client.get(f"{emails}/receive")
    assert (response.status_code, response.content) == (200, b"null")
    assert (await client.post(f"{emails}/poll")).json() == {"messages": []}


async def test_a_lease_lasts_as_long_as_the_caller_says(client, emails, clock):
    await enqueue(client, 1, 2, 3)
    for query in ("receive?lease_ms=500", "poll?lease_ms=500", "poll?visibility_ms=500"):
        method = "GET" if query.startswith("receive") else "POST"
        response = (await client.request(method, f"{emails}/{query}")).json()
        message = response["messages"][0] if "messages" in response else response
        assert message["lease_expires_at"] == clock.now + 500


async def test_who_holds_a_message_can_be_seen(client, emails):
    await enqueue(client, 1)
    message = (await client.get(f"{emails}/receive?holder=worker-1")).json()
    assert (await client.get(f"{emails}/messages/{message['id']}")).json()["holder"] == "worker-1"


async def test_a_lease_that_ends_gives_the_message_to_the_next_with_its_history(client, emails, clock):
    await enqueue(client, 1)
    first = (await client.get(f"{emails}/receive?lease_ms=100&holder=a")).json()
    clock.advance(100)
    second = (await client.get(f"{emails}/receive")).json()
    assert (second["id"], second["attempts"], second["receives"]) == (first["id"], 2, 2)
    assert second["token"] != first["token"]
    assert second["history"] == [
        {
            "receives": 1,
            "holder": "a",
            "received_at": clock.now - 100,
            "ended_at": clock.now,
            "outcome": "lapsed",
            "error": None,
        }
    ]


@everywhere
async def test_a_poll_brings_up_to_a_batch(client, emails):
    await enqueue(client, 1, 2, 3, 4)
    assert payloads_of(await client.post(f"{emails}/poll")) == [1]
    assert payloads_of(await client.post(f"{emails}/poll?batch=2")) == [2, 3]
    assert payloads_of(await client.post(f"{emails}/poll?batch=1000")) == [4]


async def test_the_urgent_come_first_and_the_delayed_when_it_is_time(client, emails, clock):
    await enqueue(client, "plain")
    await enqueue(client, "later", delay_ms=100)
    await enqueue(client, "low", priority=1)
    await enqueue(client, "high", priority=2)
    assert payloads_of(await client.post(f"{emails}/poll?batch=9")) == ["high", "low", "plain"]
    clock.advance(100)
    assert payloads_of(await client.post(f"{emails}/poll?batch=9")) == ["later"]


@pytest.mark.parametrize(
    "asked",
    [
        "receive?lease_ms=-1",
        "receive?lease_ms=86400001",
        "receive?wait_ms=-1",
        "receive?wait_ms=300001",
        "receive?wait_ms=x",
        "receive?batch=2",
        "receive?holder=" + "h" * 129,
        "poll?batch=0",
        "poll?batch=1001",
        "poll?batch=-1",
        "poll?batch=1&batch=2",
        "poll?lease_ms=1&visibility_ms=1",
        "poll?visibility_ms=-1",
        "poll?limit=1",
    ],
)
async def test_a_receive_that_makes_no_sense_is_refused(client, emails, asked):
    method = "GET" if asked.startswith("receive") else "POST"
    refused(await client.request(method, f"{emails}/{asked}"), 400, "invalid_input")


async def test_a_queue_that_is_not_there_gives_nothing(client):
    refused(await client.get("/queues/none/receive"), 404, "queue_not_found")
    refused(await client.get("/queues/none/receive?wait_ms=1000"), 404, "queue_not_found")
    refused(await client.post("/queues/none/poll"), 404, "queue_not_found")


@everywhere
async def test_head_takes_nothing(client, emails):
    await enqueue(client, 1)
    assert (await client.head(f"{emails}/receive")).status_code == 405
    assert (await client.get(f"{emails}/stats")).json()["leased"] == 0


@everywhere
async def test_a_wait_ends_when_a_message_comes(client, emails, waiting, until):
    responses = await waiting(("GET", f"{emails}/receive?wait_ms=60000"))
    assert responses == []

    await enqueue(client, "news")

    await until(lambda: responses)
    assert responses[0].json()["payload"] == "news"


async def test_who_waits_longest_is_served_first(client, emails, waiting):
    first = await waiting(("POST", f"{emails}/poll?wait_ms=60000&batch=5"))
    second = await waiting(("GET", f"{emails}/receive?wait_ms=60000"))
    await enqueue(client, 1, 2)
    await anyio.wait_all_tasks_blocked()
    assert payloads_of(first[0]) == [1]
    assert second[0].json()["payload"] == 2


async def test_a_wait_ends_when_its_time_is_over(client, emails, waiting, clock):
    responses = await waiting(
        ("GET", f"{emails}/receive?wait_ms=1000"), ("POST", f"{emails}/poll?wait_ms=2000")
    )
    clock.advance(999)
    await anyio.wait_all_tasks_blocked()
    assert responses == []
    clock.advance(1)
    await anyio.wait_all_tasks_blocked()
    assert [response.content for response in responses] == [b"null"]
    clock.advance(1_000)
    await anyio.wait_all_tasks_blocked()
    assert [response.content for response in responses] == [b"null", b'{"messages":[]}']


async def test_a_wait_ends_when_a_delayed_message_is_due(client, emails, waiting, clock):
    await enqueue(client, "later", delay_ms=500)
    responses = await waiting(("GET", f"{emails}/receive?wait_ms=1000"))
    clock.advance(500)
    await anyio.wait_all_tasks_blocked()
    assert responses[0].json()["payload"] == "later"


async def test_a_wait_ends_when_its_queue_is_deleted(client, emails, waiting):
    responses = await waiting(("GET", f"{emails}/receive?wait_ms=60000"))
    await client.delete(emails)
    await anyio.wait_all_tasks_blocked()
    assert [response.content for response in responses] == [b"null"]


@pytest.mark.parametrize("limits", [hq.Limits(waiters=1)])
async def test_one_too_many_is_told_to_come_again(client, emails, waiting):
    responses = await waiting(*[("GET", f"{emails}/receive?wait_ms=60000")] * 2)
    [response] = responses
    refused(response, 429, "overloaded")


@pytest.mark.parametrize("terms", [Terms(request_timeout_s=0.05)])
async def test_a_wait_is_no_longer_than_a_request_may_take(client, emails):
    refused(await client.get(f"{emails}/receive?wait_ms=60000"), 408, "request_timeout")
    refused(await client.post("/receive?prefix=&wait_ms=60000"), 408, "request_timeout")
    await enqueue(client, 1)
    message = (await client.get(f"{emails}/receive")).json()
    assert message["receives"] == 1, "a receive that was given up takes nothing"


@pytest.fixture
async def tree(client):
    """Queues under mail, and one beside it."""
    for name in ("mail.a", "mail.b", "mails"):
        await client.post(f"/queues?name={name}")


@everywhere
async def test_the_queues_under_a_prefix_take_turns(client, tree):
    for name in ("mail.a", "mail.b", "mails"):
        await enqueue(client, name, name, queue=name)

    served = [(await client.post("/receive?prefix=mail")).json()["messages"] for _ in range(5)]

    assert [[(message["queue"], message["payload"]) for message in one] for one in served] == [
        [("mail.a", "mail.a")],
        [("mail.b", "mail.b")],
        [("mail.a", "mail.a")],
        [("mail.b", "mail.b")],
        [],
    ]


async def test_a_message_of_a_prefix_is_settled_in_its_queue(client, tree):
    await enqueue(client, 1, queue="mail.b")
    response = await client.post("/receive?prefix=&batch=10&lease_ms=1000&holder=h")
    [message] = response.json()["messages"]
    held = {"id": message["id"], "token": message["token"]}
    assert (await client.post(f"/queues/{message['queue']}/ack", json=held)).json()["state"] == "completed"


@everywhere
async def test_a_wait_under_a_prefix_ends_when_any_queue_has_something(client, tree, waiting, until):
    responses = await waiting(("POST", "/receive?prefix=mail&wait_ms=60000"))

    await enqueue(client, "late", queue="mail.b")

    await until(lambda: responses)
    assert payloads_of(responses[0]) == ["late"]


async def test_a_wait_under_a_prefix_ends_when_its_time_is_over(client, tree, waiting, clock):
    responses = await waiting(("POST", "/receive?prefix=mail&wait_ms=1000"))
    clock.advance(1_000)
    await anyio.wait_all_tasks_blocked()
    assert [response.content for response in responses] == [b'{"messages":[]}']


async def test_nothing_is_under_a_prefix_without_queues(client, tree):
    assert (await client.post("/receive?prefix=mai")).json() == {"messages": []}


@pytest.mark.parametrize(
    "query",
    [
        "",
        "prefix=a..b",
        "prefix=mail.",
        "prefix=a%20b",
        "prefix=mail&batch=0",
        "prefix=mail&wait_ms=-1",
        "prefix=a&prefix=b",
    ],
)
async def test_a_prefix_that_makes_no_sense_is_refused(client, tree, query):
    refused(await client.post(f"/receive?{query}"), 400, "invalid_input")
