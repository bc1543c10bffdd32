"""cl-sqs's contract (carlosganzerla/cl-sqs): its cases C3 to C12, and what it got wrong put right."""

import hashlib
import re
from itertools import pairwise

import pytest

from hq.errors import OutcomeUnknown, Overloaded, StorageFull
from hq.http.calls import Terms
from hq.http.dialects.cl_sqs import CL_SQS
from tests.dialects.conftest import WAYS

DIALECT = "cl-sqs"
UUID = re.compile("[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
UNKNOWN = "2af18f7d-6475-5e64-87f3-e8e7334810ac"

everywhere = pytest.mark.parametrize("client", WAYS, indirect=True)
# With `everywhere`, the way is said by the client.
once = pytest.mark.parametrize("way", ["root"])


async def post(client, body, group="g1", **more):
    """The headers of an accepted message, or None if it is a duplicate."""
    response = await client.post("/queue", params={"group-id": group, **more}, content=body)
    assert response.content == b""
    if response.status_code == 204:
        assert not [name for name in response.headers if name.startswith("message-")]
        return None
    assert (response.status_code, response.headers["content-type"]) == (200, "text/plain")
    assert UUID.fullmatch(response.headers["message-id"])
    return response.headers


async def get(client, seconds=None):
    """A message as its payload and headers, or None."""
    params = {} if seconds is None else {"visibility-timeout": seconds}
    response = await client.get("/queue", params=params)
    if response.status_code == 204:
        assert response.content == b""
        return None
    assert (response.status_code, response.headers["content-type"]) == (200, "text/plain")
    assert UUID.fullmatch(response.headers["message-receipt-id"])
    return response


async def delete(client, response):
    return await client.delete("/queue", params={"receipt-id": response.headers["message-receipt-id"]})


async def change(client, response, seconds):
    receipt = response.headers["message-receipt-id"]
    return await client.patch("/queue", params={"receipt-id": receipt, "visibility-timeout": seconds})


@everywhere
@once
async def test_a_message_is_posted_got_and_deleted(client):
    sent = await post(client, b"Waddap")
    assert sent["message-md5"] == "c59688cd1ef3ed3c377f240939d63a5a"

    got = await get(client)

    assert got.content == b"Waddap"
    for name in ("message-id", "message-timestamp"):
        assert got.headers[name] == sent[name]
    deleted = await delete(client, got)
    assert (deleted.status_code, deleted.content) == (200, b"")
    assert deleted.headers["message-id"] == sent["message-id"]
    assert await get(client, 0) is None


async def test_before_anything_was_posted_there_is_nothing(client):
    assert await get(client) is None
    for method in ("DELETE", "PATCH"):
        params = {"receipt-id": UNKNOWN, **({"visibility-timeout": 1} if method == "PATCH" else {})}
        assert (await client.request(method, "/queue", params=params)).status_code == 204


@everywhere
@once
async def test_a_payload_is_posted_once_to_a_group(client):  # C3
    assert await post(client, b"P")
    assert await post(client, b"P") is None
    assert await post(client, b"P", "g2")


async def test_the_default_deduplication_id_is_the_hash_of_the_payload(client):
    assert await post(client, b"other", **{"deduplication-id": hashlib.sha256(b"P").hexdigest()})
    assert await post(client, b"P") is None


async def test_another_deduplication_id_makes_it_another_message(client):  # C4
    first = await post(client, b"P")
    second = await post(client, b"P", **{"deduplication-id": "no-dupes"})
    assert first["message-id"] != second["message-id"]
    assert first["message-md5"] == second["message-md5"]
    assert await post(client, b"Q", **{"deduplication-id": "no-dupes"}) is None


async def test_one_message_of_a_group_is_out_at_a_time(client):  # C5
    for body, group in ((b"1", "g1"), (b"2", "g1"), (b"3", "g2")):
        await post(client, body, group)
    assert [(await get(client)).content for _ in range(2)] == [b"1", b"3"]
    assert await get(client) is None


async def test_the_next_of_a_group_comes_when_its_head_is_deleted(client):  # C6
    for body, group in ((b"1", "g1"), (b"2", "g1"), (b"3", "g2")):
        await post(client, body, group)
    head, _ = await get(client), await get(client)
    assert (await delete(client, head)).status_code == 200
    assert (await get(client)).content == b"2"


async def test_a_later_message_never_overtakes_the_head_of_its_group(client, clock):
    for body in (b"1", b"2"):
        await post(client, body)
    for _ in range(20):
        assert (await get(client)).content == b"1"
        clock.advance(60_000)


async def test_without_a_visibility_timeout_it_comes_again_after_a_minute(client, clock):
    await post(client, b"1")
    await get(client)
    clock.advance(59_999)
    assert await get(client) is None
    clock.advance(1)
    assert await get(client)


async def test_got_for_no_time_a_message_comes_again_with_another_receipt(client):  # C7
    await post(client, b"1")
    first, second = await get(client, 0), await get(client, 0)
    assert first.headers["message-id"] == second.headers["message-id"]
    assert first.headers["message-receipt-id"] != second.headers["message-receipt-id"]


async def test_a_receipt_that_was_superseded_does_nothing(client):  # C8
    await post(client, b"1")
    first, second = await get(client, 0), await get(client)
    for response in (await delete(client, first), await change(client, first, 0)):
        assert (response.status_code, response.content) == (204, b"")
        assert "message-id" not in response.headers
    assert await get(client) is None
    assert (await delete(client, second)).status_code == 200


async def test_a_message_nobody_else_has_got_is_deleted_after_its_timeout(client, clock):  # C9
    await post(client, b"1")
    got = await get(client, 1)
    clock.advance(5_000)
    assert (await delete(client, got)).status_code == 200
    assert await get(client) is None


async def test_a_payload_may_come_back_once_its_message_is_deleted(client):  # C10
    first = await post(client, b"P")
    await delete(client, await get(client))
    second = await post(client, b"P")
    assert first["message-id"] != second["message-id"]


async def test_visibility_is_changed_from_now_on(client, clock):  # C11
    sent = await post(client, b"1")
    got = await get(client, 5)
    changed = await change(client, got, 30)
    assert (changed.status_code, changed.content) == (200, b"")
    assert changed.headers["message-id"] == sent["message-id"]
    clock.advance(29_999)
    assert await get(client) is None
    clock.advance(1)
    assert await get(client)


async def test_visibility_changed_to_nothing_shows_the_message_at_once(client):
    await post(client, b"1")
    got = await get(client)
    assert (await change(client, got, 0)).status_code == 200
    assert (await get(client)).content == b"1"


async def test_a_day_is_the_longest(client, clock):
    await post(client, b"1")
    assert await get(client, 86_400)
    clock.advance(86_399_999)
    assert await get(client) is None
    clock.advance(1)
    assert await get(client)


async def test_a_receipt_is_good_once(client):  # C12
    await post(client, b"1")
    await post(client, b"2")
    got = await get(client)
    assert (await delete(client, got)).status_code == 200
    assert (await delete(client, got)).status_code == 204
    assert (await get(client)).content == b"2"


@pytest.mark.parametrize("receipt", [UNKNOWN, "00000000-0000-8000-8000-000000000001"])
async def test_an_unknown_receipt_does_nothing(client, receipt):
    await post(client, b"1")
    assert (await client.delete("/queue", params={"receipt-id": receipt})).status_code == 204


@everywhere
@once
@pytest.mark.parametrize(
    "body", [b"", bytes(range(256)), rb"\x4869 \ ".strip(), "ä€\0".encode(), b"x" * 65_536 * 2]
)
async def test_any_bytes_come_back(client, body):
    sent = await post(client, body)
    assert sent["message-md5"] == hashlib.md5(body, usedforsecurity=False).hexdigest()
    assert (await get(client)).content == body


async def test_time_stamps_are_microseconds_that_strictly_increase(client, clock):
    stamps = []
    for number in range(50):
        stamps.append(int((await post(client, b"%d" % number, f"g{number % 7}"))["message-timestamp"]))
        if number % 10 == 0:
            clock.advance(1)
            await delete(client, await get(client))
    assert all(early < late for early, late in pairwise(stamps))
    assert 0 <= stamps[0] - 1_000_000 * 1_000 < 1_000


@pytest.mark.parametrize(
    ("method", "query"),
    [
        ("POST", ""),
        ("POST", "group-id"),
        ("POST", f"group-id={'g' * 129}"),
        ("POST", f"group-id=g&deduplication-id={'d' * 129}"),
        ("POST", "group-id=g&visibility-timeout=1"),
        ("POST", "group-id=g&other=1"),
        ("POST", "group-id=%ff"),
        ("GET", "visibility-timeout="),
        ("GET", "visibility-timeout=-1"),
        ("GET", "visibility-timeout=86401"),
        ("GET", "visibility-timeout=1.5"),
        ("GET", "visibility-timeout=1_0"),
        ("GET", "group-id=g"),
        ("GET", "visibility-timeout"),
        ("DELETE", ""),
        ("DELETE", "receipt-id=x"),
        ("DELETE", f"receipt-id={UNKNOWN.upper()}"),
        ("DELETE", f"receipt-id={UNKNOWN}&visibility-timeout=1"),
        ("PATCH", f"receipt-id={UNKNOWN}"),
        ("PATCH", "visibility-timeout=1"),
        ("PATCH", f"receipt-id={UNKNOWN}?visibility-timeout=30"),
        ("GET", "&".join(["visibility-timeout=1"] * 101)),
    ],
)
async def test_other_parameters_are_refused(client, method, query):
    assert (await client.request(method, f"/queue?{query}")).status_code == 422


@pytest.mark.parametrize(
    "query",
    [
        "GROUP-ID=g",
        "Group-Id=g&group-id=h",
        "group-id=",
        f"group-id={'g' * 128}",
        "group-id=g&deduplication-id=",
        "group-id=%C3%A4%20b",
        "group-id=a+b",
    ],
)
async def test_these_are_taken(client, query):
    assert (await client.post(f"/queue?{query}", content=b"x")).status_code == 200


async def test_of_a_parameter_said_twice_the_first_is_heard(client):
    for group in ("g&group-id=h", "h"):
        assert (await client.post(f"/queue?group-id={group}", content=b"x")).status_code == 200
    assert await post(client, b"x", "g") is None


async def test_a_number_may_have_a_sign(client, clock):
    await post(client, b"x")
    assert (await client.get("/queue?visibility-timeout=%2B5")).status_code == 200
    clock.advance(5_000)
    assert await get(client)


async def test_a_payload_without_a_length_is_refused(client):
    async def body():
        yield b"x"

    assert (await client.post("/queue?group-id=g", content=body())).status_code == 422
    assert await get(client) is None


@everywhere
@once
async def test_there_is_one_path_and_it_takes_four_methods(client):
    for path in ("/", "/queue/", "/queue/x", "/queues", "/Queue", "//queue"):
        assert (await client.get(path)).status_code == 404, path
    for method in ("PUT", "HEAD", "OPTIONS", "REPORT"):
        assert (await client.request(method, "/queue")).status_code == 405


KEY = {"api-key": "k"}


class TestWithAKey:
    @pytest.fixture
    def terms(self):
        return Terms(cl_sqs_key="k")

    @everywhere
    @once
    async def test_only_who_has_it_is_served(self, client):
        for headers in ({}, {"api-key": "other"}, {"api-key": ""}):
            for method in ("POST", "GET", "DELETE", "PATCH"):
                assert (await client.request(method, "/queue", headers=headers)).status_code == 401
        posted = await client.post("/queue?group-id=g", content=b"x", headers=KEY)
        assert posted.status_code == 200

    @everywhere
    @once
    @pytest.mark.parametrize(
        ("method", "address", "headers", "status"),
        [
            ("GET", "/other?x=%zz", {}, 422),
            ("PUT", "/queue?x=%zz", {}, 422),
            ("GET", "/queue?x=%zz", {}, 422),
            ("GET", "/other?x=1", {}, 404),
            ("PUT", "/queue?x=1", {}, 401),
            ("PUT", "/queue?x=1", KEY, 405),
            ("GET", "/queue?x=1", {}, 401),
            ("GET", "/queue?x=1", KEY, 422),
        ],
    )
    async def test_checks_come_in_their_order(self, client, method, address, headers, status):
        request = client.build_request(method, address, headers=headers)
        if "%zz" in address:
            request.url = request.url.copy_with(raw_path=request.url.raw_path.replace(b"%25zz", b"%zz"))
        assert (await client.send(request)).status_code == status


@pytest.mark.parametrize("error", [StorageFull(), OutcomeUnknown(), Overloaded()])
def test_what_the_server_cannot_do_is_told_in_words(error):
    reply = CL_SQS.tell(error, 0)
    assert (reply.status, reply.body.decode()) == (500, type(error).__doc__)
