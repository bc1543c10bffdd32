"""The OpenAPI document is true: schemathesis asks for whatever it allows, and for what it does not (X-20)."""

import httpx
import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, settings
from schemathesis.generation import GenerationMode
from schemathesis.specs.openapi.checks import positive_data_acceptance

from hq.http.openapi import document
from tests.http.process import hq_serve

EXAMPLES = 20
EXCLUDED = [
    # A schema cannot say all that must hold between fields: settings in the query or in the body, a group or
    # a concurrency key, an interval or a cron line.
    positive_data_acceptance,
]

# A stream of events does not end by itself; tests/http/test_events.py reads some.
schema = schemathesis.openapi.from_dict(document()).exclude(path_regex=r"/events$")
schema.config.seed = 1

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def server():
    with (
        hq_serve("--database", ":memory:", "--engine", "uvicorn") as (_, address),
        httpx.Client(base_url=address) as client,
    ):
        yield client


@schema.parametrize()
@settings(
    max_examples=EXAMPLES,
    derandomize=True,
    deadline=None,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=list(HealthCheck),
)
def test_the_document_tells_what_the_server_does(case, server):
    if case.meta.generation.mode is GenerationMode.POSITIVE:
        lead_somewhere(case, server)
    case.call_and_validate(base_url=str(server.base_url), excluded_checks=EXCLUDED)


def lead_somewhere(case, server):
    """Most names lead nowhere; these lead to a queue and to a message."""
    server.post("/queues?name=emails")
    message = server.post("/queues/emails/enqueue", content=b"{}").json()
    for name, value in {"queue": "emails", "id": message.get("id")}.items():
        if value and name in case.path_parameters:
            case.path_parameters[name] = value
