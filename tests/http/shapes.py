"""What every refusal looks like."""

import re

import httpx

# A path of the server, a statement, a line of Python, the name or number of a version.
INTERNALS = re.compile(
    r"/[a-z]+/|\.py\b|\.db\b|Traceback|File \"|\b(SELECT|INSERT|UPDATE|DELETE FROM)\b"
    r"|sqlite|python|quart|msgspec|\d+\.\d+\.\d+",
    re.IGNORECASE,
)


def refused(response: httpx.Response, status: int, code: str) -> str:
    """Assert that this is a problem of this status and code, and nothing more; gives its detail."""
    assert (response.status_code, response.json().get("code")) == (status, code), response.text
    return check_problem(response)


def check_problem(response: httpx.Response) -> str:
    """Assert that this is a problem in the one shape there is."""
    problem = response.json()
    assert response.headers["content-type"] == "application/problem+json"
    assert response.headers["cache-control"] == "no-store"
    assert response.headers["x-content-type-options"] == "nosniff"
    assert set(problem) - {"retry_at", "first"} == {"title", "status", "code", "detail"}
    assert problem["status"] == response.status_code
    assert re.fullmatch("[a-z_]+", problem["code"])
    assert problem["title"]
    assert problem["detail"]
    assert not INTERNALS.search(problem["title"] + "\n" + problem["detail"]), problem
    if response.status_code in {429, 503}:
        assert int(response.headers["retry-after"]) >= 1
    return problem["detail"]
