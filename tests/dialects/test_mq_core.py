"""MQ-Core's contract (softlayer/mq): its cases M4 to M15, and what it got wrong put right."""

import re
import uuid

import pytest

from hq.domain.settings import MAX_PAYLOAD_BYTES
from hq.errors import OutcomeUnknown, Overloaded, PayloadTooLarge, StorageFull
from hq.http.dialects.mq_core import MQ_CORE
from tests.dialects.conftest import WAYS

DIALECT = "mq-core"
DELAY_MS = 10_000

everywhere = pytest.mark.parametrize("client", WAYS, indirect=True)
# With `everywhere`, the way is said by the client.
once = pytest.mark.parametrize("way", ["root"])


async def create(client, queue="queue001"):
    response = await client.put(f"/{queue}")
    assert (response.status_code, response.content) == (201, b"")


async def post(client, body=b"hello", queue="queue001"):
    response = await client.post(f"/{queue}/messages", content=body)
    assert (response.status_code, response.content) == (201, b"")
    return response.headers["x-message-id"]


async def fetch(client, queue="queue001"):
    """The id and the bytes of a message; None if there is none."""
    response = await client.get(f"/{queue}/messages")
    if response.status_code == 204:
        assert response.content == b""
        return None
    assert response.status_code == 200
    return response.headers["x-message-id"], response.content


@everywhere
@once
async def test_a_queue_is_made_checked_and_deleted(client):  # M4
    assert (await client.get("/queue001")).status_code == 404
    await create(client)
    response = await client.get("/queue001")
    assert (response.status_code, response.content) == (200, b"")
    assert (await client.delete("/queue001")).status_code == 200
    assert (await client.get("/queue001")).status_code == 404


@everywhere
@once
async def test_a_message_is_posted_fetched_and_deleted(client):  # M5 to M7
    await create(client)
    message_id = await post(client, b"{}")
    assert str(uuid.UUID(message_id)) == message_id
    assert re.fullmatch("[a-z0-9-]+", message_id)

    assert await fetch(client) == (message_id, b"{}")

    response = await client.delete(f"/queue001/messages/{message_id}")
    assert (response.status_code, response.content) == (202, b"")
    assert await fetch(client) is None


async def test_a_queue_that_is_there_is_made_again(client):  # M8
    await create(client)
    message_id = await post(client)
    await create(client)
    assert await fetch(client) == (message_id, b"hello")


async def test_a_message_comes_again_after_the_delay(client, clock):  # M9
    await create(client)
    message_id = await post(client)
    assert await fetch(client) == (message_id, b"hello")

    clock.advance(DELAY_MS - 1)
    assert await fetch(client) is None
    clock.advance(1)
    assert await fetch(client) == (message_id, b"hello")


async def test_a_message_comes_again_however_often_it_was_fetched(client, clock):
    await create(client)
    message_id = await post(client)
    for _ in range(20):
        assert await fetch(client) == (message_id, b"hello")
        clock.advance(DELAY_MS)


@pytest.mark.parametrize("moment", ["waiting", "in delay", "back in the queue"])
async def test_a_message_is_deleted_at_any_point_of_its_life(client, clock, moment):  # M10
    await create(client)
    message_id = await post(client)
    if moment != "waiting":
        assert await fetch(client)
    if moment == "back in the queue":
        clock.advance(DELAY_MS)

    assert (await client.delete(f"/queue001/messages/{message_id}")).status_code == 202

    clock.advance(10 * DELAY_MS)
    assert await fetch(client) is None


async def test_deleting_what_is_not_there_is_no_error(client):  # M11
    await create(client)
    await post(client)
    other = await post(client)
    for unknown in ("4ad814ab-213e-11e3-a9a3-0025904f6e08", "x", "-", other, "1" * 300):
        for _ in range(2):
            assert (await client.delete(f"/queue001/messages/{unknown}")).status_code == 202
            assert (await client.delete(f"/nothing/messages/{unknown}")).status_code == 202
    assert await fetch(client) is not None


async def test_a_message_of_another_queue_is_not_deleted(client):
    await create(client)
    await create(client, "queue002")
    message_id = await post(client)
    assert (await client.delete(f"/queue002/messages/{message_id}")).status_code == 202
    assert await fetch(client) == (message_id, b"hello")


async def test_an_id_of_other_characters_leads_nowhere(client):
    await create(client)
    for wrong in ("ABC", "a_b", "a.b", "a%20b"):
        assert (await client.delete(f"/queue001/messages/{wrong}")).status_code == 404


async def test_a_message_for_a_missing_queue_is_not_taken(client):  # M12, where it was taken and lost
    response = await client.post("/nothing/messages", content=b"x")
    assert (response.status_code, response.content) == (404, b"")
    assert "x-message-id" not in response.headers
    await create(client, "nothing")
    assert await fetch(client, "nothing") is None


async def test_a_missing_queue_gives_no_message(client):
    assert await fetch(client, "nothing") is None


async def test_a_queue_that_is_deleted_takes_its_messages_with_it(client, clock):  # M13
    await create(client)
    fetched, _ = await post(client), await post(client)
    assert (await fetch(client))[0] == fetched
    assert (await client.delete("/queue001")).status_code == 200
    assert (await client.delete("/queue001")).status_code == 200

    await create(client)
    clock.advance(10 * DELAY_MS)
    assert await fetch(client) is None


async def test_messages_come_in_the_order_they_were_posted(client, clock):  # M14, where there was none
    await create(client)
    sent = [await post(client, str(number).encode()) for number in range(6)]
    assert [(await fetch(client))[0] for _ in sent] == sent
    clock.advance(DELAY_MS)
    assert [(await fetch(client))[0] for _ in sent] == sent


@everywhere
@once
@pytest.mark.parametrize("body", [b"", bytes(range(256)), "ä\0\r\n".encode(), b"x" * 100_000])  # M15
async def test_any_bytes_come_back(client, body):
    await create(client)
    message_id = await post(client, body)
    assert await fetch(client) == (message_id, body)


async def test_what_is_declared_of_a_body_is_not_looked_at(client):
    await create(client)
    declared = {"Content-Type": "application/json"}
    assert (await client.post("/queue001/messages", content=b"{", headers=declared)).status_code == 201
    assert (await fetch(client))[1] == b"{"


@pytest.mark.parametrize("queue", ["queue001", "a", "Orders-2026", "mail.out_1", "messages", "healthz"])
async def test_any_name_that_hq_takes_is_a_queue(client, queue):
    await create(client, queue)
    message_id = await post(client, queue=queue)
    assert await fetch(client, queue) == (message_id, b"hello")


@pytest.mark.parametrize("queue", ["-a", "a%20b", "%C3%A4", "a..b", "a" * 129])
async def test_any_other_name_leads_nowhere(client, queue):
    for method in ("PUT", "GET", "DELETE"):
        assert (await client.request(method, f"/{queue}")).status_code == 404
    assert (await client.post(f"/{queue}/messages", content=b"x")).status_code == 404


@everywhere
@once
async def test_another_path_or_method_leads_nowhere_too(client):
    await create(client)
    for method, path in (
        ("POST", "/queue001"),
        ("PATCH", "/queue001"),
        ("HEAD", "/queue001"),
        ("HEAD", "/queue001/messages"),
        ("PUT", "/queue001/messages"),
        ("GET", "/queue001/messages/1"),
        ("GET", "/queue001/"),
        ("GET", "/queue001/messages/"),
        ("GET", "/queue001/other"),
        ("GET", "/a/b/c/d"),
        ("GET", "/"),
        ("GET", ""),
        ("OPTIONS", "/queue001"),
    ):
        response = await client.request(method, path)
        assert (response.status_code, response.content) == (404, b""), (method, path)


async def test_a_query_is_not_looked_at(client):
    await create(client)
    message_id = (await client.post("/queue001/messages?x=%zz&x=1", content=b"x")).headers["x-message-id"]
    assert (await client.get("/queue001/messages?wait_ms=abc")).headers["x-message-id"] == message_id


@pytest.mark.parametrize("error", [StorageFull(), OutcomeUnknown(), Overloaded()])
def test_what_may_not_be_stored_is_to_be_sent_again_later(error):
    reply = MQ_CORE.tell(error, 0)
    assert (reply.status, dict(reply.headers)) == (503, {b"retry-after": b"10"})
    assert reply.body


def test_what_is_too_large_is_told():
    assert MQ_CORE.tell(PayloadTooLarge(), 0).status == 413
    assert MAX_PAYLOAD_BYTES >= 64 << 20
