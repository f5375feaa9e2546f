"""ASGI middleware: each request gets its id, its span and its Request.

``x-request-id`` is kept when it came and made when it did not; the response
carries it back. A server span is started where no other instrumentation has.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, MutableMapping
from contextlib import ExitStack
from typing import Any, Callable

from opentelemetry import trace
from opentelemetry.trace import SpanKind, StatusCode

from inquest import context as ctx
from inquest import runtime

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]


class RequestMiddleware:
    """Wraps an ASGI application. Works before init() too: then ids are kept, but no span is sent."""

    def __init__(self, app: App) -> None:
        """Wrap app."""
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one connection."""
        if scope["type"] not in ("http", "websocket"):
            await self.app(scope, receive, _flushing(send) if scope["type"] == "lifespan" else send)
            return
        headers = _headers(scope)
        outer = trace.get_current_span()
        context = ctx.extract(headers)
        if outer.get_span_context().is_valid:
            # Another instrumentation is outside of us: its span stays the parent.
            context = trace.set_span_in_context(outer, context)
        request = ctx.current(context) or ctx.Request(ctx.new_request_id())
        context = ctx.with_request(request, context)
        with ExitStack() as stack:
            stack.enter_context(ctx.attached(context))
            if outer.get_span_context().is_valid:
                span = outer
                span.set_attribute(ctx.REQUEST_ID, request.id)
            else:
                span = stack.enter_context(
                    _tracer().start_as_current_span(
                        _method(scope), kind=SpanKind.SERVER, attributes=_attributes(scope)
                    )
                )
            sent = headers.get(ctx.HEADER)
            if sent is not None and sent != request.id:
                span.set_attribute("request.id.refused", sent[: ctx.MAX_ID])
            try:
                await self.app(scope, receive, _answering(send, span, request.id))
            finally:
                if span is not outer:
                    _name(span, scope)


def _answering(send: Send, span: trace.Span, request_id: str) -> Send:
    """Return a send that adds the request id to the response and its status to the span."""

    async def answer(message: Message) -> None:
        if message["type"] in ("http.response.start", "websocket.accept"):
            headers = list(message.get("headers") or [])
            if not any(name.lower() == ctx.HEADER.encode() for name, _ in headers):
                headers.append((ctx.HEADER.encode(), request_id.encode("latin-1", "replace")))
            message = {**message, "headers": headers}
        if message["type"] == "http.response.start":
            span.set_attribute("http.response.status_code", message["status"])
            if message["status"] >= 500:
                span.set_status(StatusCode.ERROR)
        await send(message)

    return answer


def _headers(scope: Scope) -> dict[str, str]:
    """Return headers by lower-case name; of several with one name the first, baggage joined."""
    found: dict[str, str] = {}
    for raw_name, raw_value in scope.get("headers") or []:
        name, value = raw_name.decode("latin-1").lower(), raw_value.decode("latin-1")
        if name in ("baggage", "tracestate") and name in found:
            found[name] += "," + value
        else:
            found.setdefault(name, value)
    # Between our own processes only: a client must not tell the hash of what it sends.
    found.pop(ctx.INPUT_HASH_HEADER, None)
    return found


def _method(scope: Scope) -> str:
    return str(scope.get("method") or "WEBSOCKET")


def _attributes(scope: Scope) -> dict[str, str | int]:
    values: dict[str, str | int] = {
        "http.request.method": _method(scope),
        "url.path": scope.get("path", ""),
        "url.scheme": scope.get("scheme", "http"),
    }
    server = scope.get("server")
    if server:
        values["server.address"] = server[0]
        if server[1] is not None:
            values["server.port"] = server[1]
    return values


def _name(span: trace.Span, scope: Scope) -> None:
    """Name the span by the route that the framework found: few names, however many paths."""
    route = getattr(scope.get("route"), "path", None)
    if route:
        span.set_attribute("http.route", route)
        span.update_name(f"{_method(scope)} {route}")


def _tracer() -> trace.Tracer:
    process = runtime.configured()
    return process.tracer if process else trace.get_tracer("inquest", runtime.VERSION)


def _flush() -> None:
    process = runtime.configured()
    if process is not None:
        with contextlib.suppress(Exception):
            process.flush(5.0)


def _flushing(send: Send) -> Send:
    """Send what is queued before the server is told that the application is down.

    Servers such as uvicorn then end by the signal that stopped them, which runs no exit handlers.
    """

    async def flush_first(message: Message) -> None:
        if message["type"].startswith("lifespan.shutdown."):
            await asyncio.get_running_loop().run_in_executor(None, _flush)
        await send(message)

    return flush_first
