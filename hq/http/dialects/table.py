"""The dialects there are, each with its routes."""

from __future__ import annotations

from hq.http.dialects import cl_sqs, hq, mq_core
from hq.http.dialects.dialect import Dialect
from hq.http.routes import Route

DIALECTS: dict[Dialect, list[Route]] = {
    hq.HQ: hq.ROUTES,
    cl_sqs.CL_SQS: cl_sqs.ROUTES,
    mq_core.MQ_CORE: mq_core.ROUTES,
}

BY_NAME = {dialect.name: dialect for dialect in DIALECTS}
