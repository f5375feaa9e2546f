"""Phases of an HTTP request as child spans: what the three client libraries share.

A phase's span is made when the phase ends, with the times that were measured,
so that nothing is left open whatever happens to the request.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Mapping
from contextvars import ContextVar
from typing import Any, Optional, Union
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

from opentelemetry import baggage, propagate, trace
from opentelemetry import context as otel_context
from opentelemetry.trace import Span, SpanKind, Status, StatusCode, Tracer

__all__ = ["CURRENT", "PHASES", "REQUEST_ID_HEADER", "PhaseRecorder", "begin"]

PHASES = ("pool", "dns", "connect", "tls", "proxy", "send", "first_byte", "body")
"""Names of the phases, in their order. Spans are named ``http.<phase>``."""

REQUEST_ID_HEADER = "x-request-id"

_SCOPE = "inquest.http_client"
_POOL_SPAN_SECONDS = 0.001  # a shorter wait for a connection has no span, only its attribute
# Signatures in the query of a URL are credentials.
_SECRET_QUERY = frozenset(
    {"awsaccesskeyid", "signature", "sig", "x-goog-signature", "x-amz-signature", "api_key", "key"}
)

AttributeValue = Union[str, bool, int, float]

CURRENT: ContextVar[Optional[PhaseRecorder]] = ContextVar("inquest_http_phases", default=None)
"""The request whose connection is being made in this thread or task."""


class PhaseRecorder:
    """Records the phases of one request under its client span. Not safe for concurrent use."""

    def __init__(self, tracer: Tracer, span: Span, owns_span: bool) -> None:
        self.span = span
        self.context = trace.set_span_in_context(span)
        self._tracer = tracer
        self._owns_span = owns_span
        self._open: dict[str, tuple[int, dict[str, AttributeValue]]] = {}
        self._seconds: dict[str, float] = {}
        self._failed: Optional[str] = None
        self._finished = False
        self.connected = False
        self.sent = False
        self.start("pool")

    @property
    def finished(self) -> bool:
        """Whether the request's end was recorded."""
        return self._finished

    def is_open(self, phase: str) -> bool:
        """Return whether ``phase`` has started and not ended."""
        return phase in self._open

    def start(
        self, phase: str, attributes: Optional[Mapping[str, AttributeValue]] = None, at: Optional[int] = None
    ) -> None:
        """Start a phase, at ``at`` (Unix nanoseconds) or now. A phase may happen several times."""
        if phase != "pool":
            self.end("pool", at)
        if phase in ("dns", "connect"):
            self.connected = True
        if phase == "first_byte":
            self.sent = True
        self._open[phase] = (time.time_ns() if at is None else at, dict(attributes or {}))

    def discard(self, phase: str) -> None:
        """Forget a phase that turned out not to have begun."""
        self._open.pop(phase, None)

    def end(self, phase: str, at: Optional[int] = None, **attributes: AttributeValue) -> None:
        """End a phase; without effect where it is not open."""
        self._emit(phase, at, attributes, None)

    def fail(self, phase: Optional[str], error: BaseException, at: Optional[int] = None) -> None:
        """End ``phase``, or the one that is open, with an error."""
        phase = phase if phase is not None else next(reversed(self._open), None)
        if phase is not None and phase in self._open:
            self._failed = phase
            self._emit(phase, at, {}, error)

    def _emit(
        self,
        phase: str,
        at: Optional[int],
        attributes: Mapping[str, AttributeValue],
        error: Optional[BaseException],
    ) -> None:
        opened = self._open.pop(phase, None)
        if opened is None:
            return
        start, known = opened
        end = max(start, time.time_ns() if at is None else at)
        seconds = (end - start) / 1e9
        self._seconds[phase] = self._seconds.get(phase, 0.0) + seconds
        if phase == "pool" and error is None and seconds < _POOL_SPAN_SECONDS:
            return
        span = self._tracer.start_span(
            f"http.{phase}",
            context=self.context,
            attributes={"http.phase": phase, **known, **attributes},
            start_time=start,
        )
        if error is not None:
            span.set_attribute("error.type", _error_type(error))
            span.record_exception(error, timestamp=end)
            span.set_status(Status(StatusCode.ERROR, str(error)[:500]))
        span.end(end)

    def response(self, status: int, version: Optional[str] = None) -> None:
        """Record the response's status, and version such as ``1.1`` or ``2``."""
        self.span.set_attribute("http.response.status_code", status)
        if version:
            self.span.set_attribute("network.protocol.version", version)
        if status >= 400:
            self.span.set_attribute("error.type", str(status))
            self.span.set_status(Status(StatusCode.ERROR))

    def finish(
        self,
        error: Optional[BaseException] = None,
        *,
        complete: bool = True,
        size: int = -1,
        failed_phase: Optional[str] = None,
    ) -> None:
        """Record the end of the request; only the first end counts.

        Args:
            error: what the caller of the request got, if not a response.
            complete: whether the response's body was read to its end.
            size: bytes of the body as they came, if known.
            failed_phase: what failed, where it is known better than from the open phase.
        """
        if self._finished:
            return
        self._finished = True
        failed = self._failed
        if error is not None and self._open:
            self.fail(None, error)
            failed = self._failed
        for phase in list(self._open):
            self.end(phase)
        span = self.span
        if self.sent:
            span.set_attribute("http.connection.reused", not self.connected)
        for phase, seconds in self._seconds.items():
            span.set_attribute(f"http.phase.{phase}.seconds", round(seconds, 9))
        if size >= 0:
            span.set_attribute("http.response.body.size", size)
        if error is not None:
            span.set_attribute("error.type", _error_type(error))
            span.set_attribute("http.failed_phase", failed_phase or failed or "unknown")
            span.record_exception(error)
            span.set_status(Status(StatusCode.ERROR, str(error)[:500]))
        elif not complete:
            span.set_attribute("http.body.complete", False)
        if self._owns_span:
            span.end()


def _error_type(error: BaseException) -> str:
    kind = type(error)
    return kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"


def begin(
    method: str,
    url: str,
    headers: Any,
    *,
    tracer: Optional[Tracer] = None,
    generate_request_id: bool = True,
) -> PhaseRecorder:
    """Start recording a request, and put ``traceparent`` and ``x-request-id`` in its headers.

    The client span is the current span where another instrumentation has made
    one, else a new one. ``headers`` is any mutable mapping that ignores case. An
    ``x-request-id`` that is present is never rewritten; else it is the baggage
    member ``request.id``, else new.
    """
    tracer = tracer or trace.get_tracer(_SCOPE)
    current = trace.get_current_span()
    owns_span = not _is_client_span(current)
    span = current
    if owns_span:
        parts = urlsplit(url)
        attributes: dict[str, AttributeValue] = {
            "http.request.method": method,
            "url.full": _safe_url(url),
            "server.address": parts.hostname or "",
        }
        port = parts.port or {"http": 80, "https": 443}.get(parts.scheme)
        if port is not None:
            attributes["server.port"] = port
        span = tracer.start_span(method, kind=SpanKind.CLIENT, attributes=attributes)
    recorder = PhaseRecorder(tracer, span, owns_span)
    _inject(headers, span, generate_request_id)
    return recorder


def _is_client_span(span: Span) -> bool:
    if not span.is_recording() or getattr(span, "kind", None) is not SpanKind.CLIENT:
        return False
    attributes = getattr(span, "attributes", None) or {}
    return "http.request.method" in attributes or "http.method" in attributes


def _inject(headers: Any, span: Span, generate_request_id: bool) -> None:
    carrier: dict[str, str] = {}
    # The caller's context with the client span in it: its baggage goes along.
    propagate.inject(carrier, context=trace.set_span_in_context(span, otel_context.get_current()))
    for name, value in carrier.items():
        headers[name] = value
    request_id = headers.get(REQUEST_ID_HEADER)
    if not request_id:
        found = baggage.get_baggage("request.id")
        request_id = found if isinstance(found, str) and found else None
        if request_id is None and generate_request_id:
            request_id = uuid.uuid4().hex
        if request_id is not None:
            headers[REQUEST_ID_HEADER] = request_id
    if isinstance(request_id, bytes):
        request_id = request_id.decode("latin-1")
    if request_id:
        span.set_attribute("request.id", str(request_id))


def _safe_url(url: str) -> str:
    """The URL without its user, password and signatures."""
    parts = urlsplit(url)
    netloc = parts.netloc.rpartition("@")[2]
    query = parts.query
    if query and any(k.lower() in _SECRET_QUERY for k, _ in parse_qsl(query)):
        pairs = parse_qsl(query, keep_blank_values=True)
        query = urlencode([(k, "REDACTED" if k.lower() in _SECRET_QUERY else v) for k, v in pairs])
    return urlunsplit((parts.scheme, netloc, parts.path, query, ""))
