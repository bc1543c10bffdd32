"""POST /queues/{queue}/import: lines of an export, each of them once."""

import json

from tests.http.shapes import refused


async def test_an_export_is_imported_once(client, emails):
    await client.post("/queues", json={"name": "copies"})
    body = b'{\n"a": 1\n}'
    await client.post(f"{emails}/enqueue", content=body, headers={"content-type": "application/json"})
    await client.post(f"{emails}/enqueue", content=b"\0", headers={"content-type": "image/png"})
    exported = await client.get(f"{emails}/export")
    assert len(exported.content.splitlines()) == 2

    first = await client.post("/queues/copies/import", content=exported.content)
    again = await client.post("/queues/copies/import", content=exported.content)

    assert first.json() == {"imported": 2, "duplicates": 0, "refused": []}
    assert again.json() == {"imported": 0, "duplicates": 2, "refused": []}
    copied = [json.loads(line) for line in (await client.get("/queues/copies/export")).content.splitlines()]
    assert [(one.get("payload"), one.get("payload_base64")) for one in copied] == [
        ({"a": 1}, None),
        (None, "AA=="),
    ]


async def test_lines_are_told_by_their_numbers_in_the_file(client, emails):
    told = await client.post(f"{emails}/import?first=1001", content=b'{"payload": 1}\n\n{}\n')
    [refusal] = told.json()["refused"]
    assert (told.json()["imported"], refusal["line"], refusal["error"]["code"]) == (1, 1003, "invalid_input")


async def test_too_many_lines_and_a_queue_that_is_not_there_are_refused(client, emails):
    many = b'{"payload": 1}\n' * 1_001
    refused(await client.post(f"{emails}/import", content=many), 400, "invalid_input")
    refused(await client.post("/queues/none/import", content=b'{"payload": 1}'), 404, "queue_not_found")
