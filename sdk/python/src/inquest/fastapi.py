"""FastAPI and Starlette: one call puts the request's id and span on all that a request does."""

from __future__ import annotations

from typing import TYPE_CHECKING

from inquest.asgi import RequestMiddleware

if TYPE_CHECKING:
    from starlette.applications import Starlette


def instrument(app: Starlette) -> None:
    """Add the middleware to an application, outermost of those added so far. Call it once, last."""
    app.add_middleware(RequestMiddleware)
