"""The OpenAPI document, made from the table of routes."""

from __future__ import annotations

import re
from typing import Any

import msgspec

from hq import __version__
from hq.http.models import QUEUE_NAME
from hq.http.problems import PROBLEM, STATUSES, Problem
from hq.http.queries import NoQuery
from hq.http.routes import ROUTES, Route

REF = "#/components/schemas/{name}"
PLACES: dict[str, dict[str, Any]] = {
    "queue": {"type": "string", **QUEUE_NAME},
    "id": {"type": "string", "format": "uuid"},
    "task": {"type": "integer", "minimum": 1},
    "name": {"type": "string"},
}


def document() -> dict[str, Any]:
    """The whole document."""
    said = [*(route.body for route in ROUTES), *(route.reply for route in ROUTES)]
    kinds = [kind for one in said for kind in _kinds(one)]
    queries = [route.query for route in ROUTES if route.query is not NoQuery]
    schemas, components = msgspec.json.schema_components([*kinds, *queries, Problem], ref_template=REF)
    found = dict(zip(map(repr, [*kinds, *queries, Problem]), schemas, strict=True))
    paths: dict[str, dict[str, Any]] = {}
    for route in ROUTES:
        paths.setdefault(route.path, {})[route.method.lower()] = _operation(route, found, components)
    return {
        "openapi": "3.1.0",
        "info": {"title": "hq", "version": __version__, "description": "A message and job queue."},
        "paths": paths,
        "components": {"schemas": components},
    }


def _told(said: Any) -> tuple[Any, ...]:
    return said if isinstance(said, tuple) else (said,)


def _kinds(said: Any) -> tuple[Any, ...]:
    """The types of a body or reply that have a schema."""
    return tuple(kind for kind in _told(said) if kind not in {None, bytes} and not isinstance(kind, str))


def _schema(said: Any, found: dict[str, Any]) -> dict[str, Any]:
    schemas = [found[repr(kind)] for kind in _kinds(said)]
    return schemas[0] if len(schemas) == 1 else {"anyOf": schemas}


def _operation(route: Route, found: dict[str, Any], components: dict[str, Any]) -> dict[str, Any]:
    operation: dict[str, Any] = {
        "summary": route.summary,
        "operationId": f"{route.handler.__module__.rpartition('.')[2]}.{route.handler.__name__}",
        "tags": [route.scope.value],
        "parameters": [*_path_parameters(route), *_query_parameters(route, components)],
        "responses": _responses(route, found),
    }
    if route.body is not None:
        operation["requestBody"] = _body(route, found)
    return operation


def _path_parameters(route: Route) -> list[dict[str, Any]]:
    names = re.findall(r"{(\w+)}", route.path)
    return [{"name": name, "in": "path", "required": True, "schema": PLACES[name]} for name in names]


def _query_parameters(route: Route, components: dict[str, Any]) -> list[dict[str, Any]]:
    if route.query is NoQuery:
        return []
    schema = components[route.query.__name__]
    required = schema.get("required", [])
    return [
        {"name": name, "in": "query", "required": name in required, "schema": kind}
        for name, kind in schema["properties"].items()
    ]


def _body(route: Route, found: dict[str, Any]) -> dict[str, Any]:
    if route.body is bytes:
        return {"content": {"*/*": {"schema": {}}}}
    content = {"application/json": {"schema": _schema(route.body, found)}}
    # A queue can be made or changed by the query alone.
    return {"required": route.query is NoQuery, "content": content}


def _responses(route: Route, found: dict[str, Any]) -> dict[str, Any]:
    problem = {"content": {PROBLEM: {"schema": {"$ref": REF.format(name="Problem")}}}}
    responses: dict[str, Any] = {str(route.status): _success(route, found)}
    if route.status == 201:
        responses["200"] = _success(route, found)
    for status in sorted({*STATUSES.values(), 403, 405, 406, 408, 415, 503}):
        responses.setdefault(str(status), {"description": "See `code`.", **problem})
    return responses


def _success(route: Route, found: dict[str, Any]) -> dict[str, Any]:
    if route.reply is None:
        return {"description": "Done."}
    types = [kind for kind in _told(route.reply) if isinstance(kind, str)]
    if types:
        return {"description": "Rows.", "content": {kind: {"schema": {"type": "string"}} for kind in types}}
    return {"description": "Done.", "content": {"application/json": {"schema": _schema(route.reply, found)}}}
