"""Phases for aiohttp, from its ``TraceConfig``.

aiohttp reports connecting and the TLS handshake as one step. With an
``ssl=phased_ssl_context()`` they are two spans; without it ``http.connect`` has
``http.connect.includes_tls=true``.
"""

from __future__ import annotations

import ssl
import time
from types import SimpleNamespace
from typing import Any, Optional

import aiohttp
from opentelemetry.trace import Tracer

from ._http_phases import CURRENT, PhaseRecorder, begin

__all__ = ["phased_ssl_context", "trace_config"]


class _PhasedContext(ssl.SSLContext):
    """Tells when a handshake begins: an event loop asks for the TLS object right after TCP is connected."""

    def wrap_bio(self, *args: Any, **kwargs: Any) -> ssl.SSLObject:
        recorder = CURRENT.get()
        if recorder is not None and recorder.is_open("connect"):
            recorder.end("connect")
            recorder.start("tls")
        return super().wrap_bio(*args, **kwargs)


def phased_ssl_context(cafile: Optional[str] = None) -> ssl.SSLContext:
    """Return a client context that shows TLS as a phase; it trusts the system's authorities or ``cafile``."""
    context = _PhasedContext(ssl.PROTOCOL_TLS_CLIENT)
    if cafile is None:
        context.load_default_certs(ssl.Purpose.SERVER_AUTH)
    else:
        context.load_verify_locations(cafile)
    return context


class _Request:
    """State of one request: the recorder, and when what was sent last was sent."""

    def __init__(self, recorder: PhaseRecorder, secure: bool) -> None:
        self.recorder = recorder
        self.secure = secure
        self.ready: Optional[int] = None
        self.sent: Optional[int] = None
        self.redirects = 0
        self.outer: Optional[PhaseRecorder] = None


async def _on_start(session: Any, context: Any, params: aiohttp.TraceRequestStartParams) -> None:
    recorder = begin(params.method, str(params.url), params.headers, tracer=context.tracer)
    context.request = _Request(recorder, params.url.scheme == "https")
    context.request.outer = CURRENT.get()
    CURRENT.set(recorder)


async def _on_create_start(session: Any, context: Any, params: Any) -> None:
    attributes = {"http.connect.includes_tls": True} if context.request.secure else None
    context.request.recorder.start("connect", attributes)


async def _on_dns_start(session: Any, context: Any, params: aiohttp.TraceDnsResolveHostStartParams) -> None:
    recorder = context.request.recorder
    recorder.discard("connect")
    recorder.start("dns", {"dns.question.name": params.host})


async def _on_dns_end(session: Any, context: Any, params: Any) -> None:
    context.request.recorder.end("dns")
    await _on_create_start(session, context, params)


async def _on_create_end(session: Any, context: Any, params: Any) -> None:
    request = context.request
    request.recorder.end("tls")
    request.recorder.end("connect")
    request.ready = time.time_ns()


async def _on_reuse(session: Any, context: Any, params: Any) -> None:
    context.request.recorder.end("pool")
    context.request.ready = time.time_ns()


async def _on_sent(session: Any, context: Any, params: Any) -> None:
    context.request.sent = time.time_ns()


def _answered(request: _Request, error: Optional[BaseException] = None) -> None:
    """Record sending and waiting: aiohttp tells the end of sending only in hindsight."""
    recorder = request.recorder
    if request.ready is None:
        return
    sent = request.sent or request.ready
    recorder.start("send", at=request.ready)
    recorder.end("send", at=sent)
    recorder.start("first_byte", at=sent)
    if error is None:
        recorder.end("first_byte")
    else:
        recorder.fail("first_byte", error)
    request.ready = request.sent = None


async def _on_redirect(session: Any, context: Any, params: Any) -> None:
    request = context.request
    _answered(request)
    request.redirects += 1
    request.recorder.span.set_attribute("http.request.redirects", request.redirects)


async def _on_exception(session: Any, context: Any, params: aiohttp.TraceRequestExceptionParams) -> None:
    request = context.request
    error = params.exception
    # A name that does not resolve leaves dns open; what fails later leaves connect or tls open.
    _answered(request, error)
    # Where connecting and TLS are one span, the error still tells which of them failed.
    failed_phase = "tls" if isinstance(error, aiohttp.ClientSSLError) else None
    request.recorder.finish(error, failed_phase=failed_phase)
    CURRENT.set(request.outer)


async def _on_end(session: Any, context: Any, params: aiohttp.TraceRequestEndParams) -> None:
    request, response = context.request, params.response
    recorder: PhaseRecorder = request.recorder
    _answered(request)
    CURRENT.set(request.outer)
    version = response.version
    recorder.response(response.status, f"{version.major}.{version.minor}" if version else None)
    if response.status == 101:
        recorder.finish()
        return
    recorder.start("body")
    content = response.content

    def size() -> int:
        return int(getattr(content, "total_bytes", -1))

    def complete() -> None:
        recorder.end("body")
        recorder.finish(size=size())

    def ending(method: Any) -> Any:
        def call() -> Any:
            error = content.exception()
            if error is not None:
                recorder.fail("body", error)
            recorder.finish(error, complete=content.is_eof(), size=size())
            return method()

        return call

    content.on_eof(complete)
    # An error of the connection or an early end shows only when the response is closed.
    response.close, response.release = ending(response.close), ending(response.release)  # type: ignore[method-assign]


def trace_config(tracer: Optional[Tracer] = None) -> aiohttp.TraceConfig:
    """Return the configuration for ``aiohttp.ClientSession(trace_configs=[…])``."""

    def make_context(trace_request_ctx: Any = None) -> Any:
        return SimpleNamespace(tracer=tracer, request=None)

    config = aiohttp.TraceConfig(trace_config_ctx_factory=make_context)  # type: ignore[arg-type]
    config.on_request_start.append(_on_start)
    config.on_connection_create_start.append(_on_create_start)
    config.on_dns_resolvehost_start.append(_on_dns_start)
    config.on_dns_resolvehost_end.append(_on_dns_end)
    config.on_connection_create_end.append(_on_create_end)
    config.on_connection_reuseconn.append(_on_reuse)
    config.on_request_headers_sent.append(_on_sent)
    config.on_request_chunk_sent.append(_on_sent)
    config.on_request_redirect.append(_on_redirect)
    config.on_request_exception.append(_on_exception)
    config.on_request_end.append(_on_end)
    return config
