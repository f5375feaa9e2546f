"""HTTP clients whose requests show their phases: DNS, connect, TLS, first byte, body.

==========  =======================================================================
library     how
==========  =======================================================================
httpx       ``httpx.Client(transport=httpx_transport())``,
            ``httpx.AsyncClient(transport=async_httpx_transport())``
requests    ``session.mount("https://", requests_adapter())``
aiohttp     ``aiohttp.ClientSession(trace_configs=[aiohttp_trace_config()],
            connector=aiohttp.TCPConnector(ssl=aiohttp_ssl_context()))``
existing    ``instrument(client)`` for a client of httpx or a session of requests
==========  =======================================================================

Each request is a CLIENT span (or the current one, where another instrumentation
made it) with a child span for each phase that happened: ``http.pool`` (waiting
for a connection, from 1 ms on), ``http.dns``, ``http.connect``, ``http.tls``,
``http.proxy``, ``http.send``, ``http.first_byte``, ``http.body``. The client span sums
them up: ``http.phase.<phase>.seconds``, ``http.connection.reused`` (then there is no
connect span), ``http.body.complete=false`` where the body was not read to its
end, and on failure ``http.failed_phase``; the error stands on the span of the phase
that failed, too.

Outgoing requests carry ``traceparent``, the baggage, and ``x-request-id``, which is
never rewritten when present.

The libraries are imported by the functions that need them.
"""

from __future__ import annotations

import ssl
import sys
from typing import TYPE_CHECKING, Any, Optional

from opentelemetry.trace import Tracer

from ._http_phases import PHASES, REQUEST_ID_HEADER

if TYPE_CHECKING:
    import aiohttp
    import httpx
    import requests.adapters

__all__ = [
    "PHASES",
    "REQUEST_ID_HEADER",
    "aiohttp_ssl_context",
    "aiohttp_trace_config",
    "async_httpx_transport",
    "httpx_transport",
    "instrument",
    "requests_adapter",
]


def httpx_transport(
    transport: Optional[httpx.BaseTransport] = None, *, tracer: Optional[Tracer] = None
) -> httpx.BaseTransport:
    """Return a transport for ``httpx.Client`` around ``transport``, by default a new one."""
    from ._http_httpx import PhasedTransport

    return PhasedTransport(transport, tracer=tracer)


def async_httpx_transport(
    transport: Optional[httpx.AsyncBaseTransport] = None, *, tracer: Optional[Tracer] = None
) -> httpx.AsyncBaseTransport:
    """Return a transport for ``httpx.AsyncClient``; see ``httpx_transport``."""
    from ._http_httpx import AsyncPhasedTransport

    return AsyncPhasedTransport(transport, tracer=tracer)


def requests_adapter(*, tracer: Optional[Tracer] = None, **options: Any) -> requests.adapters.HTTPAdapter:
    """Return an adapter for ``requests.Session.mount``; ``options`` are those of ``HTTPAdapter``."""
    from ._http_requests import PhasedAdapter

    return PhasedAdapter(tracer=tracer, **options)


def aiohttp_trace_config(*, tracer: Optional[Tracer] = None) -> aiohttp.TraceConfig:
    """Return a trace configuration for ``aiohttp.ClientSession``."""
    from ._http_aiohttp import trace_config

    return trace_config(tracer)


def aiohttp_ssl_context(cafile: Optional[str] = None) -> ssl.SSLContext:
    """Return a TLS context that lets ``aiohttp`` show the handshake as a phase of its own.

    Args:
        cafile: PEM file of the authorities to trust; default are the system's.
    """
    from ._http_aiohttp import phased_ssl_context

    return phased_ssl_context(cafile)


def instrument(client: Any, *, tracer: Optional[Tracer] = None) -> None:
    """Instrument an existing ``httpx.Client``, ``httpx.AsyncClient`` or ``requests.Session``, in place.

    Raises:
        TypeError: for any other client, and for aiohttp, whose sessions take
            their configuration only when they are made.
    """
    httpx = sys.modules.get("httpx")
    if httpx is not None and isinstance(client, (httpx.Client, httpx.AsyncClient)):
        from ._http_httpx import instrument_client

        instrument_client(client, tracer)
        return
    requests = sys.modules.get("requests")
    if requests is not None and isinstance(client, requests.Session):
        from ._http_requests import instrument_session

        instrument_session(client, tracer)
        return
    raise TypeError(
        f"cannot instrument {type(client).__name__}: pass an httpx client or a requests session; "
        "for aiohttp use aiohttp_trace_config() when the session is made"
    )
