"""FastAPI and Starlette: one call puts the request's id and span on all that a request does."""

from __future__ import annotations

from typing import TYPE_CHECKING

from inquest.asgi import App, RequestMiddleware

if TYPE_CHECKING:
    from starlette.applications import Starlette


def instrument(app: Starlette) -> None:
    """Put the middleware around an application. Call it before the first request is served.

    It goes around the framework's own error handling, which add_middleware
    cannot, so that an answer of 500 carries the request id too.
    """
    build = app.build_middleware_stack

    def wrapped() -> App:
        return RequestMiddleware(build())

    app.build_middleware_stack = wrapped  # type: ignore[method-assign]
