"""Saying what became of a message: by its id, or by id and token, one or many."""

import pytest

from tests.http.shapes import refused
from tests.http.ways import everywhere

NOBODY = "00000000-0000-8000-8400-0000000fffff"
VERBS = ["ack", "nack", "fail", "release", "extend"]


@pytest.fixture
async def held(client, emails):
    """A message that the caller holds."""
    await client.post(f"{emails}/enqueue", content=b"1")
    message = (await client.get(f"{emails}/receive?holder=me")).json()
    return {"id": message["id"], "token": message["token"]}


async def stats(client, *names):
    counts = (await client.get("/queues/emails/stats")).json()
    return tuple(counts[name] for name in names)


@everywhere
@pytest.mark.parametrize(("verb", "state"), [("complete", "completed"), ("fail", "failed")])
async def test_a_held_message_is_settled_by_its_id(client, held, verb, state):
    response = await client.put(f"/messages/{held['id']}/{verb}")
    assert response.status_code == 200
    assert response.json() == {"id": held["id"], "state": state, "until": None}
    assert await stats(client, "leased", state) == (0, 1)


@pytest.mark.parametrize("verb", ["complete", "fail"])
async def test_a_message_that_is_settled_is_not_found_by_its_id(client, held, verb):
    await client.put(f"/messages/{held['id']}/complete")
    refused(await client.put(f"/messages/{held['id']}/{verb}"), 404, "message_not_found")


@pytest.mark.parametrize("verb", ["complete", "fail"])
async def test_a_message_that_nobody_holds_cannot_be_settled_by_its_id(client, emails, verb):
    sent = (await client.post(f"{emails}/enqueue", content=b"1")).json()
    refused(await client.put(f"/messages/{sent['id']}/{verb}"), 409, "lease_not_held")


@pytest.mark.parametrize("verb", ["complete", "fail"])
async def test_an_id_must_name_a_message(client, emails, verb):
    refused(await client.put(f"/messages/nonsense/{verb}"), 400, "invalid_input")
    for nobody in (NOBODY, "d290f1ee-6c54-4b01-90e6-d701748f0851", "00000000-0000-8000-87ff-000000000001"):
        refused(await client.put(f"/messages/{nobody}/{verb}"), 404, "message_not_found")


async def test_a_message_of_a_deleted_queue_is_not_found(client, held, emails):
    await client.delete(emails)
    refused(await client.put(f"/messages/{held['id']}/complete"), 404, "message_not_found")


@everywhere
@pytest.mark.parametrize(
    ("verb", "said", "after"),
    [
        ("ack", {}, ("completed", None)),
        ("nack", {"delay_ms": 500, "error": "no luck"}, ("delayed", 500)),
        ("nack", {"delay_ms": 0}, ("ready", 0)),
        ("fail", {"error": "broken"}, ("failed", None)),
        ("release", {}, ("ready", 0)),
        ("extend", {"lease_ms": 60_000}, ("leased", 60_000)),
        ("extend", {}, ("leased", 30_000)),
    ],
)
async def test_a_message_is_settled_with_its_token(client, held, clock, verb, said, after):
    response = await client.post(f"/queues/emails/{verb}", json={**held, **said})
    assert response.status_code == 200
    state, until = after
    expected = None if until is None else clock.now + until
    assert response.json() == {"id": held["id"], "state": state, "until": expected}


async def test_a_retried_message_waits_as_its_queue_says(client, clock):
    retry = {"backoff": "fixed", "base_ms": 700, "jitter_percent": 0}
    await client.post("/queues", json={"name": "emails", "retry": retry})
    await client.post("/queues/emails/enqueue", content=b"1")
    message = (await client.get("/queues/emails/receive")).json()
    held = {"id": message["id"], "token": message["token"], "error": "no luck"}
    response = await client.post("/queues/emails/nack", json=held)
    assert response.json()["until"] == clock.now + 700
    clock.advance(700)
    again = (await client.get("/queues/emails/receive")).json()
    assert (again["attempts"], again["history"][0]["error"]) == (2, "no luck")


async def test_the_last_attempt_makes_a_dead_letter(client, clock):
    await client.post("/queues?name=emails&max_attempts=1")
    await client.post("/queues/emails/enqueue", content=b"1")
    message = (await client.get("/queues/emails/receive")).json()
    held = {"id": message["id"], "token": message["token"]}
    assert (await client.post("/queues/emails/nack", json=held)).json()["state"] == "failed"


async def test_a_released_message_was_never_tried(client, emails, held):
    await client.post(f"{emails}/release", json=held)
    again = (await client.get(f"{emails}/receive")).json()
    assert (again["attempts"], again["receives"]) == (1, 2)


async def test_a_lease_extended_to_nothing_ends_now(client, emails, held):
    await client.post(f"{emails}/extend", json={**held, "lease_ms": 0})
    assert (await client.get(f"{emails}/receive")).json()["attempts"] == 2


async def test_why_a_message_failed_is_kept(client, emails, held):
    await client.post(f"{emails}/fail", json={**held, "error": "broken"})
    [dead] = (await client.get(f"{emails}/dlq")).json()["messages"]
    assert (dead["id"], dead["error"], dead["reason"], dead["state"]) == (
        held["id"],
        "broken",
        "failed",
        "failed",
    )


@pytest.mark.parametrize("verb", VERBS)
async def test_another_token_settles_nothing(client, emails, held, verb):
    response = await client.post(f"{emails}/{verb}", json={**held, "token": "00" * 16})
    refused(response, 409, "lease_not_held")
    assert await stats(client, "leased") == (1,)


@pytest.mark.parametrize("verb", ["nack", "release", "extend"])
async def test_a_token_whose_lease_is_over_settles_nothing(client, emails, held, clock, verb):
    clock.advance(seconds=30)
    refused(await client.post(f"{emails}/{verb}", json=held), 409, "lease_expired")


@pytest.mark.parametrize("verb", ["ack", "fail"])
async def test_work_that_was_done_late_counts_until_another_holds_it(client, emails, held, clock, verb):
    clock.advance(seconds=30)
    other = (await client.get(f"{emails}/receive")).json()
    refused(await client.post(f"{emails}/{verb}", json=held), 409, "lease_not_held")
    clock.advance(seconds=30)
    late = {"id": other["id"], "token": other["token"]}
    assert (await client.post(f"{emails}/{verb}", json=late)).status_code == 200


@pytest.mark.parametrize("verb", VERBS)
async def test_a_message_is_settled_in_its_own_queue(client, emails, held, verb):
    await client.post("/queues?name=other")
    refused(await client.post(f"/queues/other/{verb}", json=held), 404, "message_not_found")
    refused(await client.post(f"/queues/none/{verb}", json=held), 404, "queue_not_found")
    assert await stats(client, "leased") == (1,)


@pytest.mark.parametrize("verb", VERBS)
async def test_what_names_no_held_message_is_refused(client, emails, held, verb):
    for wrong in (
        {},
        {"id": held["id"]},
        {"token": held["token"]},
        {**held, "id": "nonsense"},
        {**held, "id": 5},
        {**held, "token": "xyz"},
        {**held, "token": "é"},
        {**held, "token": None},
        {**held, "unknown": 1},
        None,
        "text",
    ):
        refused(await client.post(f"{emails}/{verb}", json=wrong), 400, "invalid_input")
    refused(await client.post(f"{emails}/{verb}", json={**held, "id": NOBODY}), 404, "message_not_found")
    refused(await client.post(f"{emails}/{verb}", content=b""), 400, "invalid_input")
    refused(await client.post(f"{emails}/{verb}?x=1", json=held), 400, "invalid_input")
    assert await stats(client, "leased") == (1,)


@pytest.mark.parametrize(
    ("verb", "said"),
    [
        ("nack", {"delay_ms": -1}),
        ("nack", {"delay_ms": 1.5}),
        ("nack", {"error": "x" * 5_000}),
        ("fail", {"error": 5}),
        ("extend", {"lease_ms": -1}),
        ("extend", {"lease_ms": 86_400_001}),
        ("ack", {"delay_ms": 1}),
    ],
)
async def test_what_makes_no_sense_is_refused(client, emails, held, verb, said):
    refused(await client.post(f"{emails}/{verb}", json={**held, **said}), 400, "invalid_input")


@pytest.mark.parametrize("verb", VERBS)
async def test_tokens_are_declared_as_json(client, emails, held, verb):
    sent = {"content": b"{}", "headers": {"content-type": "text/plain"}}
    refused(await client.post(f"{emails}/{verb}", **sent), 415, "unsupported_media_type")


@everywhere
@pytest.mark.parametrize("verb", VERBS)
async def test_many_are_settled_with_a_result_for_each(client, emails, verb):
    await client.post(f"{emails}/messages", json=[{"payload": n} for n in range(3)])
    received = (await client.post(f"{emails}/poll?batch=3")).json()["messages"]
    first, second, third = ({"id": one["id"], "token": one["token"]} for one in received)
    asked = [first, {**second, "token": "00"}, {**second, "id": NOBODY}, {"id": "x"}, third, 5]

    response = await client.post(f"{emails}/{verb}", json=asked)

    assert response.status_code == 200
    results = response.json()["results"]
    assert [result.get("id") for result in results] == [first["id"], None, None, None, third["id"], None]
    assert [result["error"]["code"] for result in results if "error" in result] == [
        "lease_not_held",
        "message_not_found",
        "invalid_input",
        "invalid_input",
    ]
    assert all(result["error"]["detail"] for result in results if "error" in result)


async def test_many_are_settled_by_lines(client, emails, held):
    lines = f'{{"id":"{held["id"]}","token":"{held["token"]}"}}\n{{}}\n'
    response = await client.post(
        f"{emails}/ack", content=lines, headers={"content-type": "application/x-ndjson"}
    )
    done, not_done = response.json()["results"]
    assert (done["state"], not_done["error"]["code"]) == ("completed", "invalid_input")


@pytest.mark.parametrize("verb", VERBS)
async def test_at_most_a_thousand_are_settled_at_once(client, emails, held, verb):
    assert (await client.post(f"{emails}/{verb}", json=[])).json() == {"results": []}
    refused(await client.post(f"{emails}/{verb}", json=[held] * 1_001), 400, "invalid_input")
    assert await stats(client, "leased") == (1,)


async def test_one_message_said_twice_is_settled_once(client, emails, held):
    first, second = (await client.post(f"{emails}/ack", json=[held, held])).json()["results"]
    assert first["state"] == "completed"
    assert second["error"]["code"] == "message_not_found"


@everywhere
async def test_a_message_is_deleted_in_whatever_state_it_is(client, emails, held):
    ready = (await client.post(f"{emails}/enqueue", content=b"2")).json()
    for message in (held, ready):
        response = await client.delete(f"{emails}/messages/{message['id']}")
        assert response.json() == {"id": message["id"], "state": "deleted", "until": None}
        refused(await client.delete(f"{emails}/messages/{message['id']}"), 404, "message_not_found")
    assert await stats(client, "ready", "leased", "deleted") == (0, 0, 2)


async def test_what_is_deleted_must_be_there(client, emails):
    refused(await client.delete(f"{emails}/messages/{NOBODY}"), 404, "message_not_found")
    refused(await client.delete(f"{emails}/messages/nonsense"), 400, "invalid_input")
    refused(await client.delete(f"/queues/none/messages/{NOBODY}"), 404, "queue_not_found")
