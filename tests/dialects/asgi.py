"""An application asked without a network, for tests that ask very often."""

import asyncio


async def ask(app, method, path, query="", body=b""):
    """The status, the headers and the body of an answer."""
    said = []
    asked = [{"type": "http.request", "body": body, "more_body": False}]

    async def receive():
        if not asked:
            # The client stays until it is answered.
            await asyncio.Event().wait()
        return asked.pop()

    async def send(message):
        said.append(message)

    scope = {
        "type": "http", "method": method, "path": path, "query_string": query.encode(), "http_version": "1.1",
        "scheme": "http",
        "headers": [(b"host", b"hq"), (b"content-length", str(len(body)).encode())],
    }  # fmt: skip
    await app(scope, receive, send)
    start, *parts = said
    return start["status"], dict(start["headers"]), b"".join(part["body"] for part in parts)
