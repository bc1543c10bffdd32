"""The application: every route in Quart, the hot ones in the express lane, each dialect under its prefix."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any

from quart import Quart, Response, request
from werkzeug.exceptions import HTTPException, MethodNotAllowed, RequestEntityTooLarge, RequestTimeout

from hq.http import problems
from hq.http.answers import answer
from hq.http.calls import Api
from hq.http.dialects.dialect import Dialect
from hq.http.dialects.table import DIALECTS
from hq.http.door import Door
from hq.http.express import Asgi, Express, Hot, Send
from hq.http.reading import Receive
from hq.http.replies import Reply
from hq.http.routes import ROUTES, Route


def create_app(api: Api, *, express: bool = True, dialects: Mapping[Dialect, list[Route]] = DIALECTS) -> Door:
    """The whole application; without the express lane Quart serves everything."""
    mounted = {one.prefix: _lanes(api, routes, one, express=express) for one, routes in dialects.items()}
    own = _lanes(api, ROUTES, None, express=express)
    return Door(api, Mounts(mounted, own) if mounted else own)


def create_dialect_app(api: Api, dialect: Dialect, *, express: bool = True) -> Door:
    """One dialect alone, at the root."""
    return Door(api, _lanes(api, DIALECTS[dialect], dialect, express=express), dialect)


class Mounts:
    """An ASGI application for each prefix, and one for everything else."""

    def __init__(self, mounted: Mapping[str, Asgi], own: Asgi) -> None:
        self._mounted = {prefix.strip("/"): app for prefix, app in mounted.items()}
        self._own = own

    async def __call__(self, scope: Any, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            path: str = scope["path"]
            prefix, slash, rest = path[1:].partition("/")
            app = self._mounted.get(prefix)
            if app is not None and path[:1] == "/":
                await app({**scope, "path": slash + rest or "/"}, receive, send)
                return
        await self._own(scope, receive, send)


def _lanes(api: Api, routes: list[Route], dialect: Dialect | None, *, express: bool) -> Asgi:
    app = _quart(api, routes, dialect)
    return Express(api, Hot(routes), app) if express else app


def _quart(api: Api, routes: list[Route], dialect: Dialect | None) -> Quart:
    app = Quart("hq", static_folder=None)
    app.config["MAX_CONTENT_LENGTH"] = api.terms.max_body_bytes
    app.config["BODY_TIMEOUT"] = api.terms.read_timeout_s
    # A long poll may take as long as it said.
    app.config["RESPONSE_TIMEOUT"] = None
    # To the seeds a slash at the end leads elsewhere.
    app.url_map.strict_slashes = dialect is not None
    # Else werkzeug would send /queues//enqueue elsewhere, which the express lane does not.
    app.url_map.merge_slashes = False
    for route in routes:
        app.add_url_rule(
            route.path.replace("{", "<").replace("}", ">"),
            endpoint=f"{route.method} {route.path}",
            view_func=_view(api, route, routes),
            methods=[route.method],
            provide_automatic_options=False,
        )
    app.register_error_handler(HTTPException, _refused(api, dialect))
    app.register_error_handler(Exception, lambda error: _response(problems.internal_error(error)))
    return app


def _view(api: Api, route: Route, routes: Iterable[Route]) -> Callable[..., Awaitable[Response]]:
    async def view(**path: str) -> Response:
        if request.method != route.method:  # werkzeug lets HEAD in with GET
            raise MethodNotAllowed([other.method for other in routes if other.path == route.path])
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
    if reply.status == 204 or not reply.content_type:
        response.headers.remove("content-type")
    if reply.status == 204:
        # There is no content to tell the type or the length of (RFC 9110, 8.6).
        response.headers.remove("content-length")
    return response


def _refused(api: Api, dialect: Dialect | None) -> Callable[[HTTPException], Awaitable[Response]]:
    """What answers for Quart where it refuses by itself: in hq's shape, or as the dialect does."""

    async def refused(error: HTTPException) -> Response:
        refusal = _refusal(error)
        if dialect is None:
            response = _response(problems.reply_of(refusal, 0))
        else:
            scope = request.scope
            response = _response(dialect.refuse(api, refusal, scope["query_string"], dict(scope["headers"])))
        if isinstance(error, MethodNotAllowed) and response.status_code == 405:
            response.headers["allow"] = ", ".join(sorted({*(error.valid_methods or ())} - {"HEAD"}))
        if isinstance(error, RequestEntityTooLarge | RequestTimeout):
            # The rest of the body may still come, and would be taken for a request.
            response.headers["connection"] = "close"
        return response

    return refused


def _refusal(error: HTTPException) -> problems.Refused:
    if isinstance(error, MethodNotAllowed):
        return problems.MethodNotAllowed()
    if isinstance(error, RequestEntityTooLarge):
        return problems.BodyTooLarge()
    if isinstance(error, RequestTimeout):
        return problems.RequestTimeout()
    return problems.NoSuchRoute() if error.code == 404 else problems.Refused(error.name)
