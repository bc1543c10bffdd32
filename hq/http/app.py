"""The Quart application: every route of the table, errors in one shape."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from quart import Quart, Response, request
from werkzeug.exceptions import HTTPException, MethodNotAllowed, RequestEntityTooLarge, RequestTimeout

from hq.http import problems
from hq.http.answers import answer
from hq.http.calls import Api
from hq.http.door import Door
from hq.http.express import Express
from hq.http.replies import Reply
from hq.http.routes import ROUTES, Route


def create_app(api: Api, *, express: bool = True) -> Door:
    """The whole application; without the express lane Quart serves everything."""
    app = Quart("hq", static_folder=None)
    app.config["MAX_CONTENT_LENGTH"] = api.terms.max_body_bytes
    app.config["BODY_TIMEOUT"] = api.terms.read_timeout_s
    # A long poll may take as long as it said.
    app.config["RESPONSE_TIMEOUT"] = None
    app.url_map.strict_slashes = False
    # Else werkzeug would send /queues//enqueue elsewhere, which the express lane does not.
    app.url_map.merge_slashes = False
    for route in ROUTES:
        app.add_url_rule(
            route.path.replace("{", "<").replace("}", ">"),
            endpoint=f"{route.method} {route.path}",
            view_func=_view(api, route),
            methods=[route.method],
            provide_automatic_options=False,
        )
    app.register_error_handler(HTTPException, _refused)
    app.register_error_handler(Exception, lambda error: _response(problems.internal_error(error)))
    return Door(api, Express(api, app) if express else app)


def _view(api: Api, route: Route) -> Callable[..., Awaitable[Response]]:
    async def view(**path: str) -> Response:
        if request.method != route.method:  # werkzeug lets HEAD in with GET
            raise MethodNotAllowed([other.method for other in ROUTES if other.path == route.path])
        body = await request.get_data(cache=False)
        assert isinstance(body, bytes)
        scope = request.scope
        return _response(await answer(api, route, path, scope["query_string"], dict(scope["headers"]), body))

    return view


def _response(reply: Reply) -> Response:
    body = reply.body if reply.stream is None else reply.stream
    response = Response(body, reply.status, content_type=reply.content_type)
    response.headers["cache-control"] = "no-store"
    response.headers["x-content-type-options"] = "nosniff"
    for name, value in reply.headers:
        response.headers[name.decode()] = value.decode()
    if reply.status == 204:
        # There is no content to tell the type or the length of (RFC 9110, 8.6).
        response.headers.remove("content-type")
        response.headers.remove("content-length")
    return response


async def _refused(error: HTTPException) -> Response:
    """What Quart itself refuses, in hq's shape."""
    refusal: problems.Refused
    if isinstance(error, MethodNotAllowed):
        refusal = problems.MethodNotAllowed()
        response = _response(problems.reply_of(refusal, 0))
        response.headers["allow"] = ", ".join(sorted({*(error.valid_methods or ())} - {"HEAD"}))
        return response
    if isinstance(error, RequestEntityTooLarge):
        refusal = problems.BodyTooLarge()
    elif isinstance(error, RequestTimeout):
        refusal = problems.RequestTimeout()
    elif error.code == 404:
        refusal = problems.NoSuchRoute()
    else:
        refusal = problems.Refused(error.name)
    response = _response(problems.reply_of(refusal, 0))
    if isinstance(error, RequestEntityTooLarge | RequestTimeout):
        # The rest of the body may still come, and would be taken for a request.
        response.headers["connection"] = "close"
    return response
